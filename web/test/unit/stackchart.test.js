// Slices and boxes of the stack chart.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { formatMoment } from '../../src/format.js';
import { chosenLane, laneChart, laneSlices, lanesOf } from '../../src/lanes.js';
import { findInRow, nodeAt } from '../../src/layout.js';
import { Model } from '../../src/model.js';
import { DEFAULT_STATE } from '../../src/state.js';
import { chartGraph, joinSlices, sampleSlices, stepSlices, usualDistance } from '../../src/stackchart.js';
import { profileOf, random } from './profiles.js';

/** Samples of one lane: [time, node, count, thread]. */
function laneOf(list) {
  const column = (Type, of) => Type.from(list, of);
  return {
    timeNs: column(Float64Array, ([time]) => time),
    node: column(Int32Array, ([, node]) => node),
    samples: column(Float64Array, ([, , count = 1]) => count),
    period: column(Float64Array, () => 7),
    thread: column(Int32Array, ([, , , thread = 0]) => thread),
  };
}

const slicesOf = (list, { run = () => null, endNs = 1000, period = 10 } = {}) => {
  const lane = laneOf(list);
  const { from, to } = sampleSlices(lane, { periodOf: (i) => period * lane.samples[i], runOf: run, endNs });
  return [...from].map((begin, i) => [begin, to[i]]);
};

test('a sample stands for the time until the next one, or for a period where that is far', () => {
  assert.deepEqual(slicesOf([[100, 1], [110, 2], [130, 3], [151, 4]]), [[100, 110], [110, 130], [130, 140], [151, 161]]);
  assert.deepEqual(slicesOf([[100, 1], [995, 2]]), [[100, 110], [995, 1000]], 'nothing is behind the end');
});

test('a sample is no longer than its thread kept the CPU, and the first one reaches back to when it came', () => {
  const run = (thread, ns) => (ns < 125 ? [95, 125] : [140, 145]);
  assert.deepEqual(slicesOf([[100, 1], [110, 2], [120, 3], [142, 4]], { run }), [[95, 110], [110, 120], [120, 125], [140, 145]]);
  assert.deepEqual(slicesOf([[100, 1]], { run: () => [10, 500] }), [[100, 110]], 'not over more than a period');
});

test('samples with one time share it by their number; threads of a CPU have no common run', () => {
  assert.deepEqual(slicesOf([[100, 1, 1], [100, 2, 3], [140, 3]]), [[100, 110], [110, 140], [140, 150]]);
  const runs = [];
  slicesOf([[100, 1, 1, 4], [100, 2, 1, 5], [200, 1, 1, 5]], { run: (thread) => runs.push(thread) && null });
  assert.deepEqual(runs, [5]);
});

test('waits take their time from samples', () => {
  const slices = (list) => ({
    from: Float64Array.from(list, ([from]) => from), to: Float64Array.from(list, ([, to]) => to), node: Int32Array.from(list, ([, , node]) => node),
    samples: new Float64Array(list.length), period: new Float64Array(list.length),
  });
  const { from, to, node } = joinSlices(slices([[0, 20, 1], [28, 40, 2]]), slices([[15, 30, 8], [50, 60, 9]]));
  assert.deepEqual([...from].map((begin, i) => [begin, to[i], node[i]]), [[0, 15, 1], [15, 30, 8], [30, 40, 2], [50, 60, 9]]);
});

/** A tree of 0 ← 1 ← 2, 1 ← 3, 0 ← 4. */
const TREE = {
  count: 5, parent: Int32Array.from([-1, 0, 1, 1, 0]), key: Int32Array.from([-1, 2, 4, 6, 8]), depth: Int32Array.from([0, 1, 2, 2, 1]),
};

const boxesOf = ({ graph, layout, weight }) => [...graph.key].map((key, box) => [key, graph.depth[box], layout.x[box], layout.x[box] + weight[box], graph.totalSamples[box]]).slice(1);

function chart(list, max) {
  const slices = {
    from: Float64Array.from(list, ([from]) => from), to: Float64Array.from(list, ([, to]) => to), node: Int32Array.from(list, ([, , node]) => node),
    samples: new Float64Array(list.length).fill(1), period: new Float64Array(list.length).fill(1),
  };
  return chartGraph(TREE, slices, 1000, max);
}

test('frames that follow each other without a gap are one box', () => {
  const made = chart([[0, 10, 2], [10, 20, 3], [20, 30, 3], [40, 50, 3], [50, 60, 4], [60, 60, 2]]);
  assert.deepEqual(boxesOf(made), [
    [2, 1, 0, 30, 3], [4, 2, 0, 10, 1], [6, 2, 10, 30, 2], [2, 1, 40, 50, 1], [6, 2, 40, 50, 1], [8, 1, 50, 60, 1],
  ]);
  assert.deepEqual([...made.treeNode], [0, 1, 2, 3, 1, 3, 4]);
  const { layout, weight } = made;
  assert.equal(nodeAt(layout, weight, 1, 35), -1, 'the gap is empty');
  assert.equal(nodeAt(layout, weight, 1, 45), 4);
  assert.equal(nodeAt(layout, weight, 2, 12), 3);
  assert.equal(layout.order[findInRow(layout, 2, 44)], 5);
});

test('where there are too many boxes, the deepest are left out, and no time is', () => {
  const list = Array.from({ length: 50 }, (_, i) => [10 * i, 10 * i + 10, i % 2 === 0 ? 2 : 3]);
  const made = chart(list, 20);
  assert.ok(made.graph.cut);
  assert.deepEqual(boxesOf(made), [[2, 1, 0, 500, 50]]);
  assert.equal(made.deepest, 1);
  assert.ok(!chart(list, 60).graph.cut);
});

test('where there are more boxes than pixels, steps of time have the stack with most of them', () => {
  const list = Array.from({ length: 30_000 }, (_, i) => [10 * i, 10 * i + (i % 2 === 0 ? 10 : 9), i % 3 === 0 ? 4 : 2 + (i % 2)]);
  const made = chart(list, 20_000);
  assert.ok(made.graph.cut && made.stepNs > 36 && made.stepNs < 37, `${made.stepNs}`);
  assert.equal(made.deepest, Infinity);
  assert.equal(made.graph.totalSamples[0], 30_000);
  assert.ok(made.graph.count > 4_000 && made.graph.count <= 20_000, `${made.graph.count}`);
  const steps = stepSlices({
    from: Float64Array.of(0, 40, 130, 260), to: Float64Array.of(40, 120, 150, 410), node: Int32Array.of(1, 2, 3, 4),
    samples: Float64Array.of(1, 2, 3, 4), period: new Float64Array(4),
  }, 100);
  const column = (name) => [...steps[name]].map((value) => Math.round(value));
  assert.deepEqual([column('from'), column('to'), column('node'), column('samples')],
    [[0, 100, 200, 300, 400], [100, 140, 240, 400, 410], [2, 2, 4, 4, 4], [3, 3, 4, 0, 0]]);
});

/** A profile with moments of random samples. */
function randomProfile(seed) {
  const below = random(seed);
  const rows = Array.from({ length: 2 + below(10) }, (_, i) => ({
    event: 0, thread: below(4), comm: 0, samples: 0, period: 0, stack: [[i % 4], ...Array.from({ length: below(5) }, () => [below(5)])],
  }));
  const buckets = 200;
  const entries = Array.from({ length: 60 }, () => ({ bucket: below(buckets), row: below(rows.length), cpu: 1 + below(2) }))
    .sort((a, b) => a.bucket - b.bucket || a.row - b.row);
  entries.forEach(({ row }) => {
    rows[row].samples += 1;
    rows[row].period += 10;
  });
  const profile = profileOf(rows);
  const first = Int32Array.from({ length: buckets + 1 }, (_, bucket) => entries.filter((entry) => entry.bucket < bucket).length);
  profile.moments = {
    count: entries.length, spanNs: 10 * buckets - 1, bucketNs: 10, wantedBucketNs: 10, maxEntries: 1000, sliceNs: null, hasCpus: true, lossWindows: [],
    waitsBeginNs: null, buckets, first, row: Int32Array.from(entries, ({ row }) => row), cpu: Uint16Array.from(entries, ({ cpu }) => cpu),
    samples: new Float64Array(entries.length).fill(1), period: new Float64Array(entries.length).fill(10),
  };
  return profile;
}

test('every sample of a lane is in exactly one stack of boxes, and boxes lie within their callers', () => {
  for (let seed = 1; seed < 60; seed++) {
    const model = new Model(randomProfile(seed));
    model.select({ ...DEFAULT_STATE, root: 'process' });
    const lanes = lanesOf(model);
    let samples = 0;
    for (const lane of [...lanes.threads, ...lanes.cpus]) {
      const { graph, layout, weight } = laneChart(model, laneSlices(model, lane, { timeline: null, places: new Map() }), null);
      samples += lane.cpu < 0 ? graph.totalSamples[0] : 0;
      for (let box = 1; box < graph.count; box++) {
        const above = graph.parent[box];
        assert.ok(weight[box] > 0 && layout.x[box] >= layout.x[above] && layout.x[box] + weight[box] <= layout.x[above] + weight[above]);
      }
      for (let row = 1; row < layout.rowStart.length - 1; row++) {
        for (let at = layout.rowStart[row] + 1; at < layout.rowStart[row + 1]; at++) {
          const [before, box] = [layout.order[at - 1], layout.order[at]];
          assert.ok(layout.x[before] + weight[before] <= layout.x[box], 'boxes of a row do not overlap');
        }
      }
    }
    assert.equal(samples, 60);
  }
});

test('the heaviest thread is shown unasked; CPUs stand by number', () => {
  const model = new Model(randomProfile(3));
  model.select({ ...DEFAULT_STATE });
  const lanes = lanesOf(model);
  assert.ok(lanes.threads.every(({ weight }, i) => i === 0 || weight <= lanes.threads[i - 1].weight));
  assert.deepEqual(lanes.cpus.map(({ id }) => id), ['cpu0', 'cpu1']);
  assert.equal(chosenLane(lanes, 'cpu1').name, 'CPU 1');
  assert.equal(chosenLane(lanes, 'nothing').id, lanes.threads[0].id);
  assert.equal(chosenLane({ threads: [], cpus: [] }, ''), null);
});

test('the sampling period is the usual distance on a CPU, in spite of idle times', () => {
  const { moments } = randomProfile(1);
  const buckets = [0, 1, 2, 3, 90, 91, 92];
  const count = buckets.length;
  const first = Int32Array.from({ length: 201 }, (_, bucket) => buckets.filter((own) => own < bucket).length);
  const one = { ...moments, count, first, row: new Int32Array(count), cpu: new Uint16Array(count).fill(1) };
  assert.equal(usualDistance(one, Uint8Array.of(1), Int32Array.of(0)), 10);
  assert.equal(usualDistance(one, Uint8Array.of(0), Int32Array.of(0)), 0);
});

test('a moment has the digits that tell it from its neighbours', () => {
  const texts = [[0, 1e6], [1.2345678e9, 1e6], [1.2345678e9, 100], [2.5e6, 1e6], [2.5e6, 5e5], [700, 1], [61e9, 5e9], [61.25e9, 1e8]].map(([ns, step]) => formatMoment(ns, step));
  assert.deepEqual(texts, ['0', '1.235 s', '1.2345678 s', '3 ms', '2.5 ms', '700 ns', '1 min 1 s', '61.3 s']);
});
