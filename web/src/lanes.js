// The lanes of the stack chart: threads and CPUs of a selection, their samples, runs and waits. Knows nothing of the
// document.

import { isClockEvent, isWallEvent } from './format.js';
import { chartGraph, joinSlices, laneSamples, sampleSlices, usualDistance, usualGap } from './stackchart.js';
import { ACTIVITIES, spanAt, wokenAt } from './switches.js';
import { functionOf, rowFilter } from './tree.js';
import { waitPart } from './waittree.js';

/** @import { Model } from './model.js' */
/** @import { ChartGraph, Lane, LaneEntries, LaneSamples, LaneSlices, Moments, Rows, Slices, TimeRange, TimelineData } from './types.d.ts' */

const RUN_QUEUE_FRAME = '[run queue]';
/** Activities in which a thread has a CPU, wholly or in parts. */
const ON_CPU = new Set(ACTIVITIES.flatMap(({ id }, index) => (id === 'running' || id === 'mixed' ? [index] : [])));

/** 1 for rows of waits.
 *  @param {Model} model
 *  @param {Rows} rows
 *  @returns {Uint8Array} */
function waitRows(model, rows) {
  const { nodes, frames, functions, dsos } = model.profile;
  return Uint8Array.from(rows.node, (node) => {
    const fn = node < 0 ? -1 : frames.function[nodes.frame[node]];
    return fn >= 0 && waitPart(functions.names[fn], dsos[functions.dso[fn]].kind) !== null ? 1 : 0;
  });
}

/** Threads and CPUs with samples of the selection over all of the time, the heaviest first, and CPUs by number.
 *  @param {Model} model
 *  @returns {{ threads: Lane[], cpus: Lane[] }} */
export function lanesOf(model) {
  const { profile, selection, allRows: rows } = model;
  const moments = model.timed();
  const weight = model.byPeriod ? rows.period : rows.samples;
  const selected = rowFilter(rows, selection);
  const isWait = waitRows(model, rows);
  const shown = Uint8Array.from(rows.node, (_, row) => (selected(row) && isWait[row] === 0 ? 1 : 0));
  const byThread = new Float64Array(profile.threads.length);
  const waits = new Uint8Array(profile.threads.length);
  rows.node.forEach((_, row) => {
    byThread[rows.thread[row]] += shown[row] === 1 ? weight[row] : 0;
    waits[rows.thread[row]] |= isWait[row] === 1 && selected(row) ? 1 : 0;
  });
  /** @type {Map<string, Lane>} */
  const threads = new Map();
  profile.threads.forEach(({ pid, tid, comm }, thread) => {
    if (byThread[thread] === 0 && waits[thread] === 0) {
      return;
    }
    const id = `${pid}.${tid}`;
    const lane = threads.get(id) ?? { id, pid, tid, cpu: -1, weight: 0, threads: /** @type {number[]} */ ([]), name: tid < 0 ? profile.comms[comm] : `${profile.comms[comm]} (${tid})` };
    lane.weight += byThread[thread];
    lane.threads.push(thread);
    threads.set(id, lane);
  });
  return {
    threads: [...threads.values()].sort((a, b) => b.weight - a.weight || a.tid - b.tid),
    cpus: moments.hasCpus ? cpuLanes(moments, shown, model.byPeriod ? moments.period : moments.samples) : [],
  };
}

/** @param {Moments} moments
 *  @param {Uint8Array} shown
 *  @param {Float64Array} weight
 *  @returns {Lane[]} */
function cpuLanes(moments, shown, weight) {
  /** @type {Map<number, number>} */
  const byCpu = new Map();
  for (let i = 0; i < moments.count; i++) {
    if (shown[moments.row[i]] === 1 && moments.cpu[i] > 0) {
      byCpu.set(moments.cpu[i], (byCpu.get(moments.cpu[i]) ?? 0) + weight[i]);
    }
  }
  return [...byCpu].sort((a, b) => a[0] - b[0]).map(([cpu, sum]) => (
    { id: `cpu${cpu - 1}`, pid: -1, tid: -1, cpu, weight: sum, threads: [], name: `CPU ${cpu - 1}` }));
}

/** The lane of an address, or the heaviest where it names none that there is; null without lanes.
 *  @param {{ threads: Lane[], cpus: Lane[] }} lanes
 *  @param {string} id
 *  @returns {Lane | null} */
export function chosenLane({ threads, cpus }, id) {
  return [...threads, ...cpus].find((lane) => lane.id === id) ?? threads[0] ?? cpus[0] ?? null;
}

/** Lanes of the time line by process and thread.
 *  @param {TimelineData | null} timeline
 *  @returns {Map<string, number>} */
export function timelineLanes(timeline) {
  return new Map((timeline?.ids ?? []).map(({ pid, tid }, index) => [`${pid}.${tid}`, index]));
}

/** Waits of a lane as slices: each stands on the call stack at which the thread left its CPU.
 *  @param {Model} model
 *  @param {Lane} lane
 *  @param {TimelineData} timeline
 *  @param {number} place
 *  @param {number} beginNs
 *  @returns {Slices} */
function waitSlices(model, lane, timeline, place, beginNs) {
  const { tree, allRows: rows, profile } = model;
  const own = new Set(lane.threads);
  // The rows of the thread's waits, by node of the profile, and those of waking by the stack that they stand on.
  /** @type {[Map<number, number>, Map<number, number>]} */
  const [byNode, ready] = [new Map(), new Map()];
  const selected = rowFilter(rows, model.selection);
  rows.node.forEach((node, row) => {
    if (node >= 0 && own.has(rows.thread[row]) && selected(row) && tree.rowNode[row] >= 0) {
      byNode.set(node, row);
      const fn = profile.frames.function[profile.nodes.frame[node]];
      if (profile.functions.names[fn] === RUN_QUEUE_FRAME) {
        ready.set(profile.nodes.parent[node], row);
      }
    }
  });
  /** @type {number[][]} */
  const found = [];
  for (let i = timeline.first[place]; i < timeline.first[place + 1]; i++) {
    const node = timeline.node[i] - 1;
    const row = byNode.get(node);
    if (row === undefined) {
      continue;
    }
    const [from, to] = [timeline.startNs[i], timeline.startNs[i] + timeline.durationNs[i]];
    const readyRow = ready.get(profile.nodes.parent[node]);
    const woken = readyRow === undefined || wokenAt(timeline, i) < 0 ? to : Math.min(to, wokenAt(timeline, i));
    found.push([from + beginNs, woken + beginNs, tree.rowNode[row]]);
    if (readyRow !== undefined && woken < to) {
      found.push([woken + beginNs, to + beginNs, tree.rowNode[readyRow]]);
    }
  }
  const none = new Float64Array(found.length);
  return {
    from: Float64Array.from(found, ([from]) => from),
    to: Float64Array.from(found, ([, to]) => to),
    node: Int32Array.from(found, ([, , node]) => node),
    samples: none,
    period: Float64Array.from(found, ([from, to]) => to - from),
  };
}

/** Samples with their own times, as far as they are shown; time order is that of the entries.
 *  @param {LaneEntries} entries
 *  @param {Uint8Array} shown
 *  @param {Int32Array} rowNode
 *  @param {Int32Array} rowThread
 *  @returns {LaneSamples} */
function exactSamples({ timeNs, row, samples, period }, shown, rowNode, rowThread) {
  /** @type {number[]} */
  const kept = [];
  row.forEach((own, i) => shown[own] === 1 && kept.push(i));
  /** @param {Float64Array} column */
  const pick = (column) => Float64Array.from(kept, (i) => column[i]);
  return {
    timeNs: pick(timeNs),
    node: Int32Array.from(kept, (i) => rowNode[row[i]]),
    thread: Int32Array.from(kept, (i) => rowThread[row[i]]),
    samples: pick(samples),
    period: pick(period),
  };
}

/** The slices of a lane over all of the time; `exact` has the samples of a range in place of the moments.
 *  @param {Model} model
 *  @param {Lane} lane
 *  @param {{ timeline: TimelineData | null, places: Map<string, number>, exact?: LaneEntries | null }} from
 *  @returns {LaneSlices} */
export function laneSlices(model, lane, { timeline, places, exact = null }) {
  const { allRows: rows, tree, selection, profile } = model;
  const moments = model.timed();
  const selected = rowFilter(rows, selection);
  const isWait = waitRows(model, rows);
  const own = new Set(lane.threads);
  const sampled = Uint8Array.from(rows.node, (_, row) => (selected(row) && isWait[row] === 0 ? 1 : 0));
  const shown = sampled.map((is, row) => (
    is === 1 && tree.rowNode[row] >= 0 && (lane.cpu >= 0 || own.has(rows.thread[row])) ? 1 : 0));
  const isClock = isClockEvent(model.event.name) && !isWallEvent(model.event.name);
  const grainNs = exact === null ? moments.bucketNs : 1;
  const samples = exact === null ? laneSamples(moments, shown, tree.rowNode, rows.thread, lane.cpu)
    : exactSamples(exact, shown, tree.rowNode, rows.thread);
  const distanceNs = isClock ? model.event.period / Math.max(1, model.event.samples)
    : moments.sliceNs ?? (exact === null ? usualDistance(moments, sampled, rows.thread) : usualGap(samples.timeNs));
  const beginNs = moments.waitsBeginNs ?? 0;
  const endNs = moments.spanNs + 1;
  const slices = sampleSlices(samples, {
    periodOf: (i) => Math.max(grainNs, isClock ? samples.period[i] : distanceNs * samples.samples[i]),
    runOf: (thread, ns) => {
      const { pid, tid } = profile.threads[thread];
      const place = places.get(`${pid}.${tid}`);
      return timeline === null || place === undefined ? null : runAround(timeline, place, ns - beginNs, grainNs, beginNs);
    },
    endNs,
  });
  const place = places.get(lane.id);
  const all = timeline === null || place === undefined || lane.cpu >= 0 || !isWallEvent(model.event.name) ? slices
    : joinSlices(slices, waitSlices(model, lane, timeline, place, beginNs));
  return { slices: all, distanceNs };
}

/** The boxes of a lane over all of the time, or in a range of it.
 *  @param {Model} model
 *  @param {LaneSlices} lane
 *  @param {TimeRange | null} range
 *  @param {number} [max]
 *  @returns {ChartGraph & { distanceNs: number }} */
export function laneChart(model, { slices, distanceNs }, range, max) {
  const shown = range === null ? slices : withinRange(slices, range);
  return { ...chartGraph(model.tree, shown, model.timed().spanNs + 1, max), distanceNs };
}

/** When a thread had its CPU around a moment that is known to a bucket, in the time of the strip; null where that is not
 *  known.
 *  @param {TimelineData} timeline
 *  @param {number} place
 *  @param {number} ns
 *  @param {number} grainNs
 *  @param {number} beginNs
 *  @returns {TimeRange | null} */
function runAround(timeline, place, ns, grainNs, beginNs) {
  for (const at of [ns, ns + grainNs / 2, ns + grainNs]) {
    const span = spanAt(timeline, place, at);
    if (span >= 0 && ON_CPU.has(timeline.activity[span])) {
      const from = beginNs + timeline.startNs[span];
      return [from, from + timeline.durationNs[span]];
    }
  }
  return null;
}

/** The slices with a part in a range.
 *  @param {Slices} slices
 *  @param {TimeRange} range
 *  @returns {Slices} */
function withinRange({ from, to, node, samples, period }, range) {
  /** @type {number[]} */
  const kept = [];
  from.forEach((begin, i) => begin < range[1] && to[i] > range[0] && kept.push(i));
  /** @param {Float64Array} column */
  const pick = (column) => Float64Array.from(kept, (i) => column[i]);
  return { from: pick(from), to: pick(to), node: Int32Array.from(kept, (i) => node[i]), samples: pick(samples), period: pick(period) };
}

/** Frames of code and of waits at the root of each box that are groups: a lane of one thread needs no row for them.
 *  @param {Model} model
 *  @param {ChartGraph} chart */
export function rowsOfGroups(model, { graph, layout }) {
  const row = layout.order.subarray(layout.rowStart[1] ?? 0, layout.rowStart[2] ?? 0);
  return row.length > 0 && row.every((box) => graph.key[box] >= 0 && model.isGroup(graph.key[box])) ? 1 : 0;
}

/** The function of a box, or -1.
 *  @param {ChartGraph} chart
 *  @param {number} box */
export function boxFunction({ graph }, box) {
  return graph.key[box] < 0 ? -1 : functionOf(graph.key[box]);
}
