// The table of the longest waits.

import { byId, el } from './dom.js';
import { formatCount, formatDuration, plural } from './format.js';
import { RowList } from './rowlist.js';
import { MAX_LONGEST, longestWaits } from './switches.js';

/** @import { TimelineData, TimeRange } from './types.d.ts' */

const WAIT_COLUMNS = [['Began', 'time'], ['Lasted', 'time'], ['Thread', 'thread'], ['Kind', 'kind'], ['Call chain', 'chain'], ['Woken by', 'waker']];

/** The waker of a wait, in words.
 *  @param {TimelineData} timeline
 *  @param {number} span */
function wakerName({ wakers, waker }, span) {
  return waker[span] > 0 ? wakers.names[wakers.name[waker[span] - 1]] : '';
}

export class LongestWaits {
  /** @param {HTMLElement} container
   *  @param {TimelineData} timeline
   *  @param {{ choose: (span: number) => void, range: (from: number, to: number) => void }} on */
  constructor(container, timeline, on) {
    this.timeline = timeline;
    this.on = on;
    /** @type {number[]} Spans. */
    this.waits = [];
    const head = WAIT_COLUMNS.map(([label, kind]) => el('span', { role: 'columnheader', class: `wait-${kind}` }, label));
    this.list = new RowList(container, 'Longest waits', {
      current: (index) => on.choose(this.waits[index]),
      key: (event, index) => this.#key(event, index),
    }, head);
  }

  /** Shows those of `threads` within a range, without classes with these numbers, group by group.
   *  @param {Uint8Array} threads
   *  @param {TimeRange} range
   *  @param {{ hidden: ReadonlySet<number>, groupOf: (span: number) => number }} options */
  show(threads, range, options) {
    const { waits, count } = longestWaits(this.timeline, threads, range, options);
    if (waits.join() !== this.waits.join()) {
      this.list.current = -1;
      this.list.scroller.scrollTop = 0;
    }
    this.waits = waits;
    this.list.show(waits.length, (index) => this.#row(waits[index]));
    const { grainNs } = this.timeline;
    const more = count > waits.length ? ` of ${formatCount(count)}: a page lists ${MAX_LONGEST}` : '';
    const joined = grainNs > 0 ? `; those within joined intervals, shorter than ${formatDuration(grainNs)}, are not listed` : '';
    byId('longest-count').textContent = `${plural(waits.length, 'wait')}${more}${joined}`;
  }

  /** The row of a wait becomes the current one.
   *  @param {number} span */
  mark(span) {
    this.list.current = this.waits.indexOf(span);
    if (this.list.current >= 0) {
      this.list.reveal(this.list.current);
    } else {
      this.list.render();
    }
  }

  /** @param {number} span */
  #row(span) {
    const { timeline } = this;
    /** @param {string} kind
     *  @param {string} text */
    const cell = (kind, text, title = text) => el('span', { role: 'gridcell', class: `wait-${kind}`, title }, text);
    const reason = timeline.reason[span];
    const [chain, whole] = reason > 0 ? [timeline.programReasons[reason - 1], timeline.reasons[reason - 1]] : ['(no call chain)', ''];
    const lossy = timeline.lossy[span] > 0 ? ', lossy' : '';
    return [
      cell('time', formatDuration(timeline.startNs[span])),
      cell('time', formatDuration(timeline.durationNs[span])),
      cell('thread', timeline.threads[timeline.thread[span]]),
      cell('kind', `${timeline.classes[timeline.class[span] - 1] ?? 'other'}${lossy}`),
      cell('chain', chain, whole),
      cell('waker', wakerName(timeline, span)),
    ];
  }

  /** @param {KeyboardEvent} event
   *  @param {number} index */
  #key(event, index) {
    if (event.key === 'Enter' && index >= 0) {
      event.preventDefault();
      const span = this.waits[index];
      const [start, length] = [this.timeline.startNs[span], this.timeline.durationNs[span]];
      this.on.range(Math.max(0, start - length / 4), start + length * 1.25);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      this.mark(-1);
      this.on.choose(-1);
    }
  }
}
