// The view of waits: facts, the longest waits or their call tree, and the lanes of the threads.

import { themePaint, waitKind } from './colors.js';
import { byId, el, setStatus } from './dom.js';
import { formatDuration } from './format.js';
import { LongestWaits } from './longest.js';
import { Tooltip } from './popups.js';
import { ROLES } from './roles.js';
import { SiteTable } from './sitetable.js';
import { hiddenClasses, timeOnCpu } from './switches.js';
import { SwitchTable } from './switchtable.js';
import { Timeline, renderActivities, spanTip } from './timeline.js';
import { isHiddenGroup, laneRoles, spanGroups } from './waitsites.js';

/** @import { Page } from './page.d.ts' */
/** @import { State, Switches, TimeRange } from './types.d.ts' */

/** How the call tree of waits counts in a selection, in words.
 *  @param {TimeRange | null} range
 *  @param {number} grainNs
 *  @param {number} foldedNs */
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
  /** @param {Page} page
   *  @param {Switches} switches */
  constructor(page, switches) {
    this.page = page;
    this.switches = switches;
    this.model = page.model;
    const [first = '', ...others] = switches.facts;
    byId('switch-facts').replaceChildren(el('summary', { title: 'How waits are counted' }, first), ...others.map((fact) => el('p', {}, fact)));
    this.roles = laneRoles(switches.timeline, page.model.profile, page.model.roles());
    this.groupOf = spanGroups(switches.timeline, this.roles);
    this.ranNs = timeOnCpu(switches.timeline);
    this.sites = new SiteTable(byId('wait-sites'), switches.timeline, (span) => this.#choose(span));
    this.switchTable = new SwitchTable(byId('switch-table'));
    this.spanTip = new Tooltip((index) => spanTip(switches.timeline, index));
    const hasStrip = page.strip !== null;
    /** @type {(range: TimeRange) => TimeRange} */
    const inStrip = ([from, to]) => [Math.round(from + this.#begin()), Math.round(to + this.#begin())];
    this.longest = new LongestWaits(byId('longest-waits'), switches.timeline, {
      choose: (span) => this.#choose(span),
      range: (from, to) => (hasStrip ? page.go({ range: inStrip([from, to]) }) : this.timeline.zoom(from, to)),
    });
    /** @type {Timeline} */
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
      wheel: (event, ns) => page.strip?.wheel(event, ns + this.#begin()) ?? false,
      // The strip's range is that of all views.
      select: hasStrip ? (range) => page.go({ range: range === null ? null : inStrip(range) }) : null,
    });
    byId('timeline-whole').addEventListener('click', () => this.timeline.whole());
  }

  /** Outlines a wait in its lane; -1 for none.
   *  @param {number} span */
  #choose(span) {
    this.timeline.choose(span);
    setStatus(span < 0 ? '' : spanTip(this.switches.timeline, span).map(({ textContent }) => textContent).join('; '));
  }

  /** Beginning of the waits' time line in the time of the strip. */
  #begin() {
    return this.model.moments?.waitsBeginNs ?? 0;
  }

  show() {
    const { switches: { timeline }, page: { state, theme } } = this;
    const hidden = new Set(state.without.split(',').filter((kind) => kind !== ''));
    this.#renderLegend(hidden);
    const [threads, within] = [this.#threads(), this.#within()];
    const shown = within ?? this.#whole();
    const sites = state.waits === 'sites' ? this.model.waitSites(timeline, threads, shown) : null;
    // A page without times has no event of waits.
    const table = state.waits === 'sites' && sites === null ? 'longest' : state.waits;
    for (const [id, owner] of [['wait-sites', 'sites'], ['site-note', 'sites'], ['longest-waits', 'longest'], ['longest-count', 'longest'],
      ['switch-table', 'tree'], ['switch-directions', 'tree']]) {
      byId(id).hidden = owner !== table;
    }
    byId('tree-note').textContent = '';
    if (table === 'tree') {
      this.#showTree(state, threads, shown);
    } else if (sites !== null) {
      const shownKinds = sites.sites.filter((site) => !hidden.has(waitKind(site.class).id));
      this.sites.show({ ...sites, sites: shownKinds }, state);
    } else {
      const groupOf = (/** @type {number} */ span) => (isHiddenGroup(this.groupOf(span), state) ? -1 : this.groupOf(span));
      this.longest.show(threads, shown, { hidden: hiddenClasses(timeline, hidden), groupOf });
    }
    this.timeline.show(themePaint(theme.name), this.#lanes(threads), within);
  }

  /** @param {ReadonlySet<string>} hidden */
  #renderLegend(hidden) {
    const { switches: { timeline }, page } = this;
    renderActivities(byId('switch-legend'), themePaint(page.theme.name), timeline, {
      hidden,
      toggle: (kind) => {
        const kinds = hidden.has(kind) ? [...hidden].filter((other) => other !== kind) : [...hidden, kind];
        page.go({ without: kinds.sort().join(',') });
      },
    });
  }

  /** 1 for the threads of the selection. */
  #threads() {
    const { pid, tid, comm } = this.page.state;
    return Uint8Array.from(this.switches.timeline.ids, (id) => (
      (pid === null || id.pid === pid) && (tid === null || id.tid === tid) && (comm === null || id.comm === comm) ? 1 : 0));
  }

  /** The lanes of these threads in their order: those of the kernel and the recorder stand last, in each role those that
   *  ran most stand first.
   *  @param {Uint8Array} threads */
  #lanes(threads) {
    const { roles, ranNs, page: { state } } = this;
    const lanes = [...threads.keys()].filter((lane) => threads[lane] === 1
      && !(state.hideKernel && roles[lane] === ROLES.kernel) && !(state.hideIdle && ranNs[lane] === 0));
    return lanes.sort((a, b) => roles[a] - roles[b] || ranNs[b] - ranNs[a] || a - b);
  }

  /** All of the time of the lanes.
   *  @returns {TimeRange} */
  #whole() {
    return [0, Math.max(1, this.switches.timeline.spanNs)];
  }

  /** The range of the strip in the time of the lanes; null where lanes have a range of their own.
   *  @returns {TimeRange | null} */
  #within() {
    const { range } = this.page.state;
    if (this.page.strip === null) {
      return null;
    }
    return range === null ? this.#whole() : [range[0] - this.#begin(), range[1] - this.#begin()];
  }

  /** Sums over everything come with the page; those of a selection are made here.
   *  @param {State} state
   *  @param {Uint8Array} threads
   *  @param {TimeRange} within */
  #showTree({ pid, tid, comm, direction }, threads, within) {
    const { model, switches } = this;
    const isWhole = [pid, tid, comm, model.range].every((choice) => choice === null);
    const tree = isWhole ? null : model.waitTree(switches.timeline, threads, within, direction);
    this.switchTable.show(tree ?? switches.trees[direction], direction);
    byId('tree-note').textContent = tree === null ? '' : waitTreeNote(model.range, switches.timeline.grainNs, tree.foldedNs);
  }
}
