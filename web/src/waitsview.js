// The view of waits: facts, the longest waits or their call tree, and the lanes of the threads.

import { themePaint } from './colors.js';
import { byId, choiceButton, el } from './dom.js';
import { formatDuration } from './format.js';
import { LongestWaits } from './longest.js';
import { Tooltip } from './popups.js';
import { hiddenClasses } from './switches.js';
import { SwitchTable } from './switchtable.js';
import { Timeline, renderActivities, spanTip } from './timeline.js';

/** How the call tree of waits counts in a selection, in words. */
function waitTreeNote(range, grainNs, foldedNs) {
  const parts = [];
  if (range !== null) {
    parts.push('a wait counts where a part of it lies in the range; its time is that part');
    if (grainNs > 0) {
      parts.push(`waits within joined intervals, shorter than ${formatDuration(grainNs)}, are left out`);
    }
  }
  if (foldedNs > 0) {
    parts.push(`${formatDuration(foldedNs)} of light call stacks is left out`);
  }
  return parts.join('; ');
}

export class WaitsView {
  /** `on` has go(change) and wheel(event, ns).
   *  @param {any} switches
   *  @param {any} model
   *  @param {any} on */
  constructor(switches, model, on) {
    this.switches = switches;
    this.model = model;
    this.on = on;
    choiceButton('view=switches').hidden = false;
    byId('switch-facts').replaceChildren(...switches.facts.map((fact) => el('p', {}, fact)));
    this.switchTable = new SwitchTable(byId('switch-table'));
    this.spanTip = new Tooltip((index) => spanTip(switches.timeline, index));
    const hasStrip = model.moments !== null;
    const inStrip = (range) => range.map((ns) => Math.round(ns + this.#begin()));
    this.longest = new LongestWaits(byId('longest-waits'), switches.timeline, {
      choose: (span) => {
        this.timeline.choose(span);
        byId('status').textContent = span < 0 ? '' : spanTip(switches.timeline, span).map(({ textContent }) => textContent).join('; ');
      },
      range: (from, to) => (hasStrip ? on.go({ range: inStrip([from, to]) }) : this.timeline.zoom(from, to)),
    });
    this.timeline = new Timeline(byId('timeline'), switches.timeline, {
      choose: (span) => this.longest.mark(span),
      hover: (index, event) => {
        if (index < 0) {
          this.spanTip.hide();
        } else {
          this.spanTip.show(index, index, event.clientX, event.clientY);
        }
      },
      range: (text) => {
        byId('timeline-range').textContent = text;
      },
      wheel: (event, ns) => hasStrip && on.wheel(event, ns + this.#begin()),
      // The strip's range is that of all views.
      select: hasStrip ? (range) => on.go({ range: range === null ? null : inStrip(range) }) : null,
    });
    byId('timeline-whole').addEventListener('click', () => this.timeline.whole());
  }

  /** Beginning of the waits' time line in the time of the strip. */
  #begin() {
    return this.model.moments?.waitsBeginNs ?? 0;
  }

  /** Shows the waits of a state in a theme. */
  show(state, theme) {
    const { switches: { timeline } } = this;
    const paint = themePaint(theme);
    const hidden = new Set(state.without.split(',').filter((kind) => kind !== ''));
    renderActivities(byId('switch-legend'), paint, timeline, {
      hidden,
      toggle: (kind) => {
        const kinds = hidden.has(kind) ? [...hidden].filter((other) => other !== kind) : [...hidden, kind];
        this.on.go({ without: kinds.sort().join(',') });
      },
    });
    const { pid, tid, comm, range } = state;
    const matches = (id) => (pid === null || id.pid === pid) && (tid === null || id.tid === tid) && (comm === null || id.comm === comm);
    const within = this.model.moments === null ? null
      : range === null ? [0, Math.max(1, timeline.spanNs)] : range.map((ns) => ns - this.#begin());
    const threads = Uint8Array.from(timeline.ids, (id) => (matches(id) ? 1 : 0));
    const isTree = state.waits === 'tree';
    byId('longest-waits').hidden = isTree;
    byId('longest-count').hidden = isTree;
    byId('switch-table').hidden = !isTree;
    byId('switch-directions').hidden = !isTree;
    byId('tree-note').textContent = '';
    if (isTree) {
      this.#showTree(state, threads, within ?? [0, Math.max(1, timeline.spanNs)]);
    } else {
      this.longest.show(threads, within ?? [0, Math.max(1, timeline.spanNs)], hiddenClasses(timeline, hidden));
    }
    this.timeline.show(paint, threads, within);
  }

  /** Sums over everything come with the page; those of a selection are made here. */
  #showTree({ pid, tid, comm, direction }, threads, within) {
    const { model, switches } = this;
    const isWhole = [pid, tid, comm, model.range].every((choice) => choice === null);
    const tree = isWhole ? null : model.waitTree(switches.timeline, threads, within, direction);
    this.switchTable.show(tree ?? switches.trees[direction], direction);
    byId('tree-note').textContent = tree === null ? '' : waitTreeNote(model.range, switches.timeline.grainNs, tree.foldedNs);
  }
}
