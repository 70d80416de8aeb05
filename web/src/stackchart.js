// The stack chart: stacks of one thread or CPU on the axis of time. Samples become slices of time, and frames that are
// the same in slices without a gap between them become one box. Knows nothing of the document.

import { addUp } from './tree.js';

/** @import { ChartGraph, LaneSamples, Layout, Moments, Slices, TimeRange, Tree } from './types.d.ts' */

/** Boxes that a chart has at most; beyond, slices are joined in steps, then the deepest frames are left out. */
export const MAX_CHART_BOXES = 400_000;
/** Steps of the time in view, where slices are joined: more than a screen has pixels. */
const MAX_STEPS = 8192;
/** Samples of one lane that are so many periods apart have a gap between them: one may have come late. */
const MAX_PERIODS = 2;
/** Distances between samples that the usual one is taken from at most. */
const MAX_DISTANCES = 20_000;

/** The samples of rows that are 1 in `shown`, on one CPU (its number plus one) or on all (-1), in order of time. Where
 *  several have the same time they stand by their stack.
 *  @param {Moments} moments
 *  @param {Uint8Array} shown
 *  @param {Int32Array} rowNode
 *  @param {Int32Array} rowThread
 *  @param {number} cpu
 *  @returns {LaneSamples} */
export function laneSamples(moments, shown, rowNode, rowThread, cpu = -1) {
  /** @type {number[]} */
  const found = [];
  /** @type {number[]} */
  const times = [];
  for (let bucket = 0; bucket < moments.buckets; bucket++) {
    for (let i = moments.first[bucket]; i < moments.first[bucket + 1]; i++) {
      if (shown[moments.row[i]] === 1 && (cpu < 0 || moments.cpu[i] === cpu)) {
        found.push(i);
        times.push(bucket * moments.bucketNs);
      }
    }
  }
  /** @param {(entry: number) => number} of */
  const numbers = (of) => Float64Array.from(found, of);
  return {
    timeNs: Float64Array.from(times),
    node: Int32Array.from(found, (i) => rowNode[moments.row[i]]),
    thread: Int32Array.from(found, (i) => rowThread[moments.row[i]]),
    samples: numbers((i) => moments.samples[i]),
    period: numbers((i) => moments.period[i]),
  };
}

/** The usual distance between samples that follow each other on one CPU, or where CPUs are not known in one thread; 0
 *  where no two do. Busy times have most of the samples, so the median is the sampling period.
 *  @param {Moments} moments
 *  @param {Uint8Array} shown
 *  @param {Int32Array} rowThread */
export function usualDistance(moments, shown, rowThread) {
  /** @type {Map<number, number>} */
  const before = new Map();
  /** @type {number[]} */
  const distances = [];
  const every = Math.max(1, Math.floor(moments.count / MAX_DISTANCES));
  for (let bucket = 0, seen = 0; bucket < moments.buckets; bucket++) {
    for (let i = moments.first[bucket]; i < moments.first[bucket + 1]; i++) {
      if (shown[moments.row[i]] === 0) {
        continue;
      }
      const place = moments.hasCpus ? moments.cpu[i] : rowThread[moments.row[i]];
      const last = before.get(place);
      before.set(place, bucket);
      if (last !== undefined && seen++ % every === 0) {
        distances.push((bucket - last) * moments.bucketNs);
      }
    }
  }
  return median(distances);
}

/** @param {number[]} values */
function median(values) {
  values.sort((a, b) => a - b);
  return values[values.length >> 1] ?? 0;
}

/** The usual distance between moments in order; 0 where there are fewer than two.
 *  @param {Float64Array} timeNs */
export function usualGap(timeNs) {
  const every = Math.max(1, Math.floor(timeNs.length / MAX_DISTANCES));
  /** @type {number[]} */
  const gaps = [];
  for (let i = 1; i < timeNs.length; i += every) {
    gaps.push(timeNs[i] - timeNs[i - 1]);
  }
  return median(gaps);
}

/** The time that each sample stands for: until the next one of the lane, no longer than its thread kept its CPU, and no
 *  longer than the sampling period says. Samples with the same time share it.
 *  @param {LaneSamples} lane
 *  @param {{ periodOf: (sample: number) => number, runOf: (thread: number, ns: number) => TimeRange | null, endNs: number }} bounds
 *  @returns {Slices} */
export function sampleSlices(lane, { periodOf, runOf, endNs }) {
  const { timeNs, node, samples, period } = lane;
  const [from, to] = [new Float64Array(node.length), new Float64Array(node.length)];
  let last = 0;
  for (let i = 0, next = 0; i < node.length; i = next) {
    const time = timeNs[i];
    let [limit, count, isOneThread] = [0, 0, true];
    for (next = i; next < node.length && timeNs[next] === time; next++) {
      limit += periodOf(next);
      count += samples[next];
      isOneThread &&= lane.thread[next] === lane.thread[i];
    }
    const run = isOneThread ? runOf(lane.thread[i], time) : null;
    // The first sample of a run says best what ran before it.
    const back = run !== null && time - run[0] <= MAX_PERIODS * limit ? run[0] : time;
    const begin = Math.max(last, back);
    const horizon = Math.min(next < node.length ? timeNs[next] : Infinity, run === null ? Infinity : Math.max(time, run[1]));
    const end = Math.max(begin, Math.min(endNs, horizon - time <= MAX_PERIODS * limit ? horizon : Math.min(horizon, time + limit)));
    let at = begin;
    for (let j = i, done = 0; j < next; j++) {
      done += samples[j];
      [from[j], to[j]] = [at, begin + (end - begin) * (count > 0 ? done / count : (j + 1 - i) / (next - i))];
      at = to[j];
    }
    last = end;
  }
  return { from, to, node, samples, period };
}

/** Slices of samples and of waits in one order; a wait is known exactly, so it takes its time from a sample.
 *  @param {Slices} sampled
 *  @param {Slices} waits
 *  @returns {Slices} */
export function joinSlices(sampled, waits) {
  const count = sampled.node.length + waits.node.length;
  const [from, to] = [new Float64Array(count), new Float64Array(count)];
  const [samples, period] = [new Float64Array(count), new Float64Array(count)];
  const node = new Int32Array(count);
  let last = 0;
  for (let at = 0, s = 0, w = 0; at < count; at++) {
    const isWait = s >= sampled.node.length || (w < waits.node.length && waits.from[w] <= sampled.from[s]);
    const [source, i] = isWait ? [waits, w++] : [sampled, s++];
    const until = isWait || w >= waits.node.length ? source.to[i] : Math.min(source.to[i], waits.from[w]);
    from[at] = Math.max(last, source.from[i]);
    to[at] = Math.max(from[at], until);
    [node[at], samples[at], period[at]] = [source.node[i], source.samples[i], source.period[i]];
    last = to[at];
  }
  return { from, to, node, samples, period };
}

/** The depth down to which the boxes of these slices are no more than `max`.
 *  @param {Tree} tree
 *  @param {Slices} slices
 *  @param {number} max */
function depthWithin(tree, slices, max) {
  /** @type {number[]} */
  const added = [];
  eachSlice(tree, slices, Infinity, (shared, depth) => {
    added[shared + 1] = (added[shared + 1] ?? 0) + 1;
    added[depth + 1] = (added[depth + 1] ?? 0) - 1;
  });
  let [sum, inRow] = [1, 0];
  for (let depth = 1; depth < added.length; depth++) {
    inRow += added[depth] ?? 0;
    sum += inRow;
    if (sum > max) {
      return depth - 1;
    }
  }
  return added.length;
}

/** Calls `take` for each slice that has a length: the depth down to which it continues the one before, its own depth, its
 *  nodes by depth, and its index. Stops where that returns false.
 *  @param {Tree} tree
 *  @param {Slices} slices
 *  @param {number} deepest
 *  @param {(shared: number, depth: number, path: number[], slice: number) => boolean | void} take */
function eachSlice(tree, { from, to, node }, deepest, take) {
  /** @type {number[]} */
  const path = [0];
  let [last, open] = [-1, 0];
  for (let i = 0; i < node.length; i++) {
    if (to[i] <= from[i]) {
      continue;
    }
    let at = node[i];
    while (tree.depth[at] > deepest) {
      at = tree.parent[at];
    }
    const depth = tree.depth[at];
    // Above the first frame that stands already, all do.
    let shared = depth;
    for (; shared > 0 && (shared > open || path[shared] !== at); shared--) {
      path[shared] = at;
      at = tree.parent[at];
    }
    shared = from[i] === last ? shared : 0;
    if (take(shared, depth, path, i) === false) {
      return;
    }
    [last, open] = [to[i], depth];
  }
}

/** Boxes down to a depth, or null where there are more than `max`.
 *  @param {Tree} tree
 *  @param {Slices} slices
 *  @param {number} deepest
 *  @param {number} max */
function growBoxes(tree, slices, deepest, max) {
  const [parent, key, depth, treeNode, x, end] = [[-1], [tree.key[0]], [0], [0], [0], [0]];
  const [selfSamples, selfPeriod] = [[0], [0]];
  const open = [0];
  let isWhole = true;
  eachSlice(tree, slices, deepest, (shared, own, path, i) => {
    for (let row = 1; row <= shared; row++) {
      end[open[row]] = slices.to[i];
    }
    if (parent.length + own - shared > max) {
      isWhole = false;
      return false;
    }
    for (let row = shared + 1; row <= own; row++) {
      open[row] = parent.push(open[row - 1]) - 1;
      key.push(tree.key[path[row]]);
      depth.push(row);
      treeNode.push(path[row]);
      x.push(slices.from[i]);
      end.push(slices.to[i]);
      selfSamples.push(0);
      selfPeriod.push(0);
    }
    selfSamples[open[own]] += slices.samples[i];
    selfPeriod[open[own]] += slices.period[i];
    return true;
  });
  return isWhole ? { parent, key, depth, treeNode, x, end, selfSamples, selfPeriod } : null;
}

/** Rows of boxes, which are numbered from left to right within each.
 *  @param {Int32Array} depth
 *  @param {Float64Array} x
 *  @returns {Layout} */
function boxLayout(depth, x) {
  const rows = depth.reduce((most, row) => Math.max(most, row), 0) + 1;
  const rowStart = new Int32Array(rows + 1);
  depth.forEach((row) => {
    rowStart[row + 1] += 1;
  });
  for (let row = 0; row < rows; row++) {
    rowStart[row + 1] += rowStart[row];
  }
  const [order, filled] = [new Int32Array(depth.length), rowStart.slice()];
  depth.forEach((row, box) => {
    order[filled[row]++] = box;
  });
  const height = new Int32Array(depth.length);
  height[0] = rows - 1;
  return { x, order, rowStart, height };
}

/** Joins the slices of each step of time: the step has the node with most of it. A step that is mostly empty is as long as
 *  its slices.
 *  @param {Slices} slices
 *  @param {number} stepNs
 *  @returns {Slices} */
export function stepSlices(slices, stepNs) {
  /** @type {number[][]} */
  const steps = [];
  /** @type {Map<number, number>} */
  const byNode = new Map();
  let [step, covered, samples, period] = [-1, 0, 0, 0];
  const close = () => {
    const [node] = [...byNode].reduce((most, own) => (own[1] > most[1] ? own : most), [0, 0]);
    if (covered > 0) {
      steps.push([step * stepNs, covered * 2 >= stepNs ? (step + 1) * stepNs : step * stepNs + covered, node, samples, period]);
      [covered, samples, period] = [0, 0, 0];
    }
    byNode.clear();
  };
  for (let i = 0; i < slices.node.length; i++) {
    [samples, period] = [samples + slices.samples[i], period + slices.period[i]];
    for (let at = slices.from[i]; at < slices.to[i];) {
      const own = Math.floor(at / stepNs);
      if (own > step) {
        const begun = at === slices.from[i] ? [slices.samples[i], slices.period[i]] : [0, 0];
        [samples, period] = [samples - begun[0], period - begun[1]];
        close();
        [samples, period] = [samples + begun[0], period + begun[1]];
        step = own;
      }
      const end = Math.max(at + 1e-3, Math.min(slices.to[i], (step + 1) * stepNs));
      byNode.set(slices.node[i], (byNode.get(slices.node[i]) ?? 0) + end - at);
      covered += end - at;
      at = end;
    }
  }
  close();
  /** @param {number} column */
  const numbers = (column) => Float64Array.from(steps, (own) => own[column]);
  return { from: numbers(0), to: numbers(1), node: Int32Array.from(steps, ([, , node]) => node), samples: numbers(3), period: numbers(4) };
}

/** Boxes in steps of time, down to a depth if there are still too many.
 *  @param {Tree} tree
 *  @param {Slices} slices
 *  @param {number} max */
function coarseBoxes(tree, slices, max) {
  const [begin, end] = [slices.from[0], slices.to[slices.to.length - 1]];
  const stepNs = Math.max(1, (end - begin) / MAX_STEPS);
  const joined = slices.node.length > MAX_STEPS ? stepSlices(slices, stepNs) : slices;
  const boxes = growBoxes(tree, joined, Infinity, max);
  const deepest = boxes === null ? depthWithin(tree, joined, max) : Infinity;
  return { boxes: boxes ?? growBoxes(tree, joined, deepest, Infinity), deepest, stepNs: joined === slices ? 0 : stepNs };
}

/** The boxes of a lane, as a graph whose positions are nanoseconds. Box 0 stands for all of the time, `spanNs` long.
 *  @param {Tree} tree
 *  @param {Slices} slices
 *  @param {number} spanNs
 *  @param {number} max
 *  @returns {ChartGraph} */
export function chartGraph(tree, slices, spanNs, max = MAX_CHART_BOXES) {
  const whole = growBoxes(tree, slices, Infinity, max);
  const { boxes, deepest, stepNs } = whole === null ? coarseBoxes(tree, slices, max) : { boxes: whole, deepest: Infinity, stepNs: 0 };
  if (boxes === null) {
    throw new Error('a chart without a bound has all of its boxes');
  }
  const [parent, depth, x] = [Int32Array.from(boxes.parent), Int32Array.from(boxes.depth), Float64Array.from(boxes.x)];
  const weight = Float64Array.from(boxes.end, (end, box) => end - x[box]);
  weight[0] = spanNs;
  const [selfSamples, selfPeriod] = [Float64Array.from(boxes.selfSamples), Float64Array.from(boxes.selfPeriod)];
  const graph = {
    count: parent.length,
    parent,
    key: Int32Array.from(boxes.key),
    depth,
    selfSamples,
    selfPeriod,
    totalSamples: addUp(parent, selfSamples.slice()),
    totalPeriod: addUp(parent, selfPeriod.slice()),
    inTime: true,
    cut: whole === null,
  };
  return { graph, weight, layout: boxLayout(depth, x), treeNode: Int32Array.from(boxes.treeNode), deepest, stepNs };
}
