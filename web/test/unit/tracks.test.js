// Tracks over time: runs on CPUs, counters and markers, stacks of threads.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ROLES } from '../../src/roles.js';
import { chartGraph } from '../../src/stackchart.js';
import { boxesInRange } from '../../src/trackcanvas.js';
import { commonRow, eventColumns, eventWeights, isMarker, runAt, sampledEvent, sampledRuns, switchedRuns, trackEvents, trackThreads } from '../../src/tracks.js';

const EVENTS = [['cpu-clock', 5], ['page-faults', 2], ['sched:sched_waking', 3], ['cycles:u', 4], ['dummy:HG', 1], ['whit-blocked', 1], ['wall-clock: CPU time and waits', 9], ['sdt_app:request', 1], ['cache-misses', 0]]
  .map(([name, samples]) => ({ name, samples, period: 0, lostSamples: 0 }));

test('tracepoints and probes are markers, other events count', () => {
  assert.deepEqual(EVENTS.filter(({ name }) => isMarker(name)).map(({ name }) => name), ['sched:sched_waking', 'sdt_app:request']);
  assert.ok(!isMarker('cycles:ukP') && !isMarker('cpu/event=0x3c/u'));
});

test('each event with samples is a track, except the shown one and those of the recorder', () => {
  assert.deepEqual(trackEvents(EVENTS, 0).map(({ name }) => name), ['page-faults', 'sched:sched_waking', 'cycles:u', 'sdt_app:request']);
  assert.deepEqual(trackEvents(EVENTS, 3).map(({ event }) => event), [0, 1, 2, 7]);
  assert.equal(sampledEvent(EVENTS, 6), 0, 'waits are of no CPU');
  assert.equal(sampledEvent(EVENTS, 2), 0, 'nor do markers say what ran');
  assert.equal(sampledEvent(EVENTS, 3), 3);
  assert.equal(sampledEvent([], 0), -1);
});

/** Moments of 10 buckets of 10 ns, of entries [bucket, row, cpu, samples, period]. */
function momentsOf(entries) {
  const first = new Int32Array(11);
  entries.forEach(([bucket]) => {
    for (let at = bucket + 1; at < 11; at++) {
      first[at] += 1;
    }
  });
  const column = (Type, at) => Type.from(entries, (entry) => entry[at]);
  return { buckets: 10, bucketNs: 10, spanNs: 99, count: entries.length, first, row: column(Int32Array, 1), cpu: column(Uint16Array, 2), samples: column(Float64Array, 3), period: column(Float64Array, 4) };
}

const ROWS = { event: Int32Array.of(0, 0, 1, 2), thread: Int32Array.of(0, 1, 0, 0) };
const MOMENTS = momentsOf([[1, 0, 1, 1, 20], [2, 0, 1, 1, 20], [4, 1, 2, 1, 10], [4, 2, 1, 1, 7], [5, 3, 1, 6, 60], [5, 2, 1, 1, 0], [9, 0, 1, 1, 20]]);

test('counters add up periods, markers and events without periods samples', () => {
  const tracks = [{ event: 1, name: 'page-faults', isMarker: false }, { event: 2, name: 'sched:sched_waking', isMarker: true }];
  const weights = eventWeights(tracks, ROWS, MOMENTS);
  assert.deepEqual([...eventColumns(weights, MOMENTS, 2, 2, [0, 10])], [7, 0, 1, 6]);
  assert.deepEqual([...eventColumns(weights, MOMENTS, 2, 1, [0, 5])], [7, 0], 'the range alone');
});

test('a sample stands for its period on its CPU, not for time of the one before it; the idle task is none', () => {
  const profile = { rows: ROWS, events: EVENTS, threads: [{ pid: 7, tid: 7 }, { pid: 0, tid: 0 }] };
  const runs = sampledRuns(profile, MOMENTS, 0);
  assert.deepEqual([...runs.keys()], [0]);
  const { from, to, thread } = runs.get(0);
  assert.deepEqual([[...from], [...to], [...thread]], [[0, 20, 80], [20, 30, 100], [0, 0, 0]]);
  assert.deepEqual([0, 19, 20, 30, 79, 80, 100].map((ns) => runAt(runs.get(0), ns)), [0, 0, 1, -1, -1, 2, -1]);
});

test('switches say which thread each CPU ran; joined intervals and waits do not', () => {
  const spans = [[0, 0, 50, 10, 2], [0, 3, 60, 10, 2], [1, 0, 10, 30, 2], [1, 2, 40, 60, 2], [2, 0, 0, 5, 1]];
  const column = (at) => Float64Array.from(spans, (span) => span[at]);
  const runs = switchedRuns({ thread: column(0), activity: column(1), startNs: column(2), durationNs: column(3), cpu: column(4) }, 1000);
  const list = ({ from, to, thread }) => Array.from(from, (begin, i) => [begin, to[i], thread[i]]);
  assert.deepEqual(list(runs.get(1)), [[1010, 1040, 1], [1050, 1060, 0]]);
  assert.deepEqual(list(runs.get(0)), [[1000, 1005, 2]]);
});

/** A tree all > main > loop > {a, b}, and boxes of a, b, a in 0 to 30. */
const TREE = { count: 5, parent: Int32Array.of(-1, 0, 1, 2, 2), key: Int32Array.of(-1, 0, 2, 4, 6), depth: Int32Array.of(0, 1, 2, 3, 3) };
const SLICES = { from: Float64Array.of(0, 10, 20), to: Float64Array.of(10, 20, 30), node: Int32Array.of(3, 4, 3), samples: Float64Array.of(1, 1, 1), period: Float64Array.of(0, 0, 0) };

test('a track begins at the last frame that all of its stacks have', () => {
  assert.equal(commonRow(chartGraph(TREE, SLICES, 30)), 2);
  assert.equal(commonRow(chartGraph(TREE, { ...SLICES, node: Int32Array.of(1, 1, 1) }, 30)), 1, 'one frame is shown');
});

test('boxes of a row within a range are found', () => {
  const chart = chartGraph(TREE, SLICES, 30);
  const within = (range) => {
    const [first, last] = boxesInRange(chart, 3, range);
    return Array.from(chart.layout.order.subarray(first, last), (box) => chart.layout.x[box]);
  };
  assert.deepEqual(within([0, 30]), [0, 10, 20]);
  assert.deepEqual(within([10, 20]), [10]);
  assert.deepEqual(within([19, 21]), [10, 20]);
  assert.deepEqual(boxesInRange(chart, 9, [0, 30]), [0, 0], 'there is no such row');
});

test('work stands first, the recorder last; idle threads and those of the kernel are hidden by choice', () => {
  const lane = (id, weight, thread, pid = 5) => ({ id, name: id, pid, tid: 1, cpu: -1, weight, threads: [thread] });
  const lanes = [lane('recorder', 9, 2), lane('kernel', 8, 1), lane('light', 1, 0), lane('heavy', 5, 0), lane('asleep', 0, 0), lane('swapper', 99, 1, 0)];
  const roles = Uint8Array.of(ROLES.work, ROLES.kernel, ROLES.recorder);
  const names = (state) => trackThreads(lanes, roles, state).map(({ id }) => id);
  assert.deepEqual(names({ hideIdle: false, hideKernel: false }), ['heavy', 'light', 'asleep', 'kernel', 'recorder']);
  assert.deepEqual(names({ hideIdle: true, hideKernel: true }), ['heavy', 'light', 'recorder']);
});
