// Tracks over time: runs on each CPU, events as counters or markers, and stacks of threads. Knows nothing of the document.

import { isClockEvent, isWallEvent } from './format.js';
import { seriesOver } from './moments.js';
import { ROLES } from './roles.js';
import { ACTIVITIES } from './switches.js';
import { firstRun } from './trackcanvas.js';

/** @import { ChartGraph, Lane, Moments, PageEvent, Profile, Rows, TimelineData, TimeRange, TrackEvent, TrackRuns } from './types.d.ts' */

const RUNNING = ACTIVITIES.findIndex(({ id }) => id === 'running');
/** A modifier behind an event's name, such as `cycles:u`. */
const MODIFIER = /:[ukhGHPpSDeWb]+$/;
/** Events of the recorder that are no track of their own. */
const INTERNAL = /^(dummy(:|$)|whit-)/;
/** Part of the time that a stack's frame has where it is common to all stacks of a lane. */
const COMMON = 0.95;

/** True for events that happen at moments, such as tracepoints and probes; others count.
 *  @param {string} name */
export function isMarker(name) {
  return /^[^:/\s]+:\w/.test(name) && !MODIFIER.test(name);
}

/** The events that are tracks: those with samples, except the one that stacks are of and those that only the recorder needs.
 *  @param {readonly PageEvent[]} events
 *  @param {number} shown the event of the stacks
 *  @returns {TrackEvent[]} */
export function trackEvents(events, shown) {
  return events.flatMap(({ name, samples }, event) => (
    event === shown || samples === 0 || isWallEvent(name) || INTERNAL.test(name) ? [] : [{ event, name, isMarker: isMarker(name) }]));
}

/** The event whose samples say which thread a CPU ran: the shown one, or the first that is no wait, if there is any.
 *  @param {readonly PageEvent[]} events
 *  @param {number} shown */
export function sampledEvent(events, shown) {
  const isSampled = (/** @type {number} */ event) => events[event] !== undefined && !isWallEvent(events[event].name) && events[event].samples > 0
    && !INTERNAL.test(events[event].name) && !isMarker(events[event].name);
  return isSampled(shown) ? shown : events.findIndex((_, event) => isSampled(event));
}

/** The track of each row, -1 for none, and the weight of each entry: markers count samples.
 *  @param {readonly TrackEvent[]} tracks
 *  @param {Rows} rows
 *  @param {Moments} moments */
export function eventWeights(tracks, rows, moments) {
  const place = new Map(tracks.map(({ event }, track) => [event, track]));
  const seriesOf = Int32Array.from(rows.event, (event) => place.get(event) ?? -1);
  const marks = Uint8Array.from(seriesOf, (track) => Number(tracks[track]?.isMarker ?? false));
  const weight = moments.period.slice();
  for (let i = 0; i < weight.length; i++) {
    if (weight[i] === 0 || marks[moments.row[i]] === 1) {
      weight[i] = moments.samples[i];
    }
  }
  return { seriesOf, weight };
}

/** Weight of each track's event in columns of buckets [from, to): column by column, tracks within.
 *  @param {{ seriesOf: Int32Array, weight: Float64Array }} weights
 *  @param {Moments} moments
 *  @param {number} stride tracks, one at least
 *  @param {number} columns
 *  @param {TimeRange} buckets */
export function eventColumns({ seriesOf, weight }, moments, stride, columns, buckets) {
  return seriesOver(moments, seriesOf, stride, columns, weight, buckets);
}

/** Runs on each CPU by switches, in order of time, in the time of the strip; joined intervals are none.
 *  @param {TimelineData} timeline
 *  @param {number} beginNs
 *  @returns {Map<number, TrackRuns>} */
export function switchedRuns(timeline, beginNs) {
  /** @type {Map<number, number[]>} */
  const spans = new Map();
  timeline.activity.forEach((activity, span) => {
    if (activity === RUNNING && timeline.cpu[span] > 0) {
      const cpu = timeline.cpu[span] - 1;
      const own = spans.get(cpu) ?? [];
      spans.set(cpu, own);
      own.push(span);
    }
  });
  return new Map([...spans].map(([cpu, own]) => {
    own.sort((a, b) => timeline.startNs[a] - timeline.startNs[b]);
    return [cpu, {
      from: Float64Array.from(own, (span) => timeline.startNs[span] + beginNs),
      to: Float64Array.from(own, (span) => timeline.startNs[span] + timeline.durationNs[span] + beginNs),
      thread: Int32Array.from(own, (span) => timeline.thread[span]),
    }];
  }));
}

/** Runs on each CPU by samples of an event: a sample stands for the time since the one before it on its CPU, no longer than
 *  its period says.
 *  @param {Profile} profile
 *  @param {Moments} moments
 *  @param {number} event
 *  @returns {Map<number, TrackRuns>} */
export function sampledRuns({ rows, events, threads }, moments, event) {
  /** @type {Map<number, number[][]>} */
  const found = new Map();
  const isClock = event >= 0 && isClockEvent(events[event].name);
  for (let bucket = 0; bucket < moments.buckets; bucket++) {
    for (let i = moments.first[bucket]; i < moments.first[bucket + 1]; i++) {
      const row = moments.row[i];
      if (rows.event[row] === event && moments.cpu[i] > 0 && threads[rows.thread[row]].pid !== 0) {
        const cpu = moments.cpu[i] - 1;
        const own = found.get(cpu) ?? [];
        found.set(cpu, own);
        const ns = bucket * moments.bucketNs;
        const lengthNs = Math.max(moments.bucketNs, isClock ? moments.period[i] : 0);
        own.push([Math.max(own.at(-1)?.[1] ?? 0, ns + moments.bucketNs - lengthNs), ns + moments.bucketNs, rows.thread[row]]);
      }
    }
  }
  return new Map([...found].map(([cpu, own]) => [cpu, {
    from: Float64Array.from(own, ([from]) => from),
    to: Float64Array.from(own, ([, to]) => to),
    thread: Int32Array.from(own, ([, , thread]) => thread),
  }]));
}

/** The run at a moment, or -1.
 *  @param {TrackRuns} runs
 *  @param {number} ns */
export function runAt(runs, ns) {
  const at = firstRun(runs, ns);
  return at < runs.from.length && runs.from[at] <= ns ? at : -1;
}

/** The deepest row of a chart that is one frame for nearly all of the time: what lies below says nothing about changes.
 *  @param {ChartGraph} chart */
export function commonRow({ layout, weight, treeNode }) {
  let [row, before] = [0, Infinity];
  for (; row + 2 < layout.rowStart.length; row++) {
    /** @type {Map<number, number>} */
    const sums = new Map();
    let all = 0;
    for (let at = layout.rowStart[row + 1]; at < layout.rowStart[row + 2]; at++) {
      const box = layout.order[at];
      sums.set(treeNode[box], (sums.get(treeNode[box]) ?? 0) + weight[box]);
      all += weight[box];
    }
    before = before === Infinity ? all : before;
    if (Math.max(0, ...sums.values()) < COMMON * before) {
      break;
    }
  }
  return Math.max(1, row);
}

/** Threads in the order of their tracks: work first, then those of the kernel, then the recorder's; the heaviest first.
 *  @param {readonly Lane[]} threads
 *  @param {Uint8Array} roles of the page's threads
 *  @param {{ hideIdle: boolean, hideKernel: boolean }} state */
export function trackThreads(threads, roles, { hideIdle, hideKernel }) {
  const roleOf = (/** @type {Lane} */ lane) => Math.max(ROLES.work, ...lane.threads.map((thread) => roles[thread]));
  const shown = threads.filter((lane) => lane.pid !== 0 && !(hideKernel && roleOf(lane) === ROLES.kernel) && !(hideIdle && lane.weight === 0));
  return shown.sort((a, b) => roleOf(a) - roleOf(b) || b.weight - a.weight);
}
