// Columns of time: ranges, series, order of time, intervals.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DEFAULT_STATE } from '../../src/state.js';
import { Model } from '../../src/model.js';
import { bucketsOf, decodeMoments, eachStep } from '../../src/moments.js';
import { blocksOf, Ratios, studentQuantile } from '../../src/estimate.js';
import { axisSteps, boundColumns, heatCells, heatPlan, stripSeries } from '../../src/stripdata.js';
import { rangeByKey, rangeByWheel, withinSpan } from '../../src/strip.js';
import { profileOf, random, sumOf } from './profiles.js';

/** A column of LEB128 numbers. */
function varints(values) {
  return values.flatMap((value) => {
    const bytes = [];
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) {
      bytes.push((rest % 128) + 128);
    }
    return [...bytes, rest];
  });
}

function differences(values) {
  return values.map((value, i) => {
    const delta = value - (i > 0 ? values[i - 1] : 0);
    return delta >= 0 ? delta * 2 : -delta * 2 - 1;
  });
}

const BUCKET_NS = 10;

/** A profile with times; `samples` are {bucket, row, cpu, samples, period} in order. */
function timed(rows, samples, buckets = 100) {
  const profile = profileOf(rows);
  const column = (name) => samples.map((sample) => sample[name]);
  const bytes = [
    ...varints(differences(column('bucket'))), ...varints(differences(column('row'))), ...varints(column('cpu')),
    ...varints(column('samples')), ...varints(column('period')),
  ];
  const facts = { count: samples.length, bucketNs: BUCKET_NS, spanNs: buckets * BUCKET_NS - 1, hasCpus: true, lossWindows: [] };
  profile.moments = decodeMoments(facts, Uint8Array.from(bytes));
  return profile;
}

/** Random rows and samples of them; the rows' sums are those of the samples. */
function randomTimed(seed) {
  const below = random(seed);
  const rows = Array.from({ length: 1 + below(12) }, (_, i) => ({
    event: below(2), thread: below(4), comm: below(2), samples: 0, period: 0,
    stack: [[i % 5], ...Array.from({ length: below(5) }, () => [below(5), 0, 0])],
  }));
  const samples = Array.from({ length: 1 + below(80) }, () => (
    { bucket: below(100), row: below(rows.length), cpu: below(4), samples: 1 + below(3), period: below(10) * 300 }));
  samples.sort((a, b) => a.bucket - b.bucket || a.row - b.row);
  for (const { row, samples: count, period } of samples) {
    rows[row].samples += count;
    rows[row].period += period;
  }
  return { rows, samples, profile: timed(rows, samples) };
}

function forRandom(check) {
  for (let seed = 1; seed <= 100; seed++) {
    check(randomTimed(seed), seed);
  }
}

const within = ({ bucket }, [from, to]) => bucket * BUCKET_NS < to && (bucket + 1) * BUCKET_NS > from;

test('a range of time chooses the samples of its buckets, in all sums', () => forRandom(({ rows, samples, profile }, seed) => {
  const model = new Model(profile);
  for (const root of ['none', 'cpu']) {
    for (const range of [[0, 1000], [250, 500], [303, 304], [990, 1000]]) {
      model.select({ ...DEFAULT_STATE, range, root });
      const chosen = samples.filter((sample) => within(sample, range) && rows[sample.row].event === 0);
      const total = sumOf(chosen, (sample) => sample.samples);
      assert.equal(model.weights.totalSamples[0], total, `${seed} ${root} ${range}`);
      assert.equal(model.weights.totalPeriod[0], sumOf(chosen, (sample) => sample.period), `${seed} ${root} ${range}`);
      const own = model.functionSums().selfSamples;
      assert.equal(sumOf([...own], (value) => value), total, `functions ${seed} ${root} ${range}`);
      const choices = model.choices({ event: 0, pid: null, tid: null });
      assert.equal(sumOf(choices.processes, (choice) => choice.weight), model.total, 'selectors too');
      assert.equal(model.graph('top-down', [], 'time').graph.totalSamples[0], total, `in time ${seed} ${root} ${range}`);
    }
  }
}));

test('CPUs at the root have their own samples', () => forRandom(({ rows, samples, profile }, seed) => {
  const model = new Model(profile);
  model.select({ ...DEFAULT_STATE, root: 'cpu' });
  const { graph } = model.graph('top-down', []);
  const sums = {};
  for (let node = 1; node < graph.count; node++) {
    if (graph.parent[node] === 0 && graph.totalSamples[node] > 0) {
      sums[model.nodeName(graph, node)] = graph.totalSamples[node];
    }
  }
  const expected = {};
  for (const { row, cpu, samples: count } of samples.filter((sample) => rows[sample.row].event === 0)) {
    const name = cpu === 0 ? '(CPU not recorded)' : `CPU ${cpu - 1}`;
    expected[name] = (expected[name] ?? 0) + count;
  }
  assert.deepEqual(sums, expected, `seed ${seed}`);
}));

test('in order of time, equal frames that follow each other are one', () => {
  const rows = ['ab', 'ac', 'ab'].map((text, i) => (
    { stack: [...text].map((c) => [c.charCodeAt(0) - 97]), samples: 1, period: 0, thread: i === 2 ? 1 : 0 }));
  const at = (bucket, row) => ({ bucket, row, cpu: 1, samples: 1, period: 0 });
  const profile = timed(rows, [at(1, 0), at(2, 0), at(3, 2), at(4, 1), at(5, 0)]);
  const model = new Model(profile);
  model.select({ ...DEFAULT_STATE });
  const { graph, layout } = model.graph('top-down', [], 'time');
  const row = (depth) => [...layout.order.slice(layout.rowStart[depth], layout.rowStart[depth + 1])]
    .map((node) => `${model.nodeName(graph, node)} ${layout.x[node]} ${graph.totalSamples[node]}`);
  // The first thread: b b c b; then the second: b. Its stack goes on where the first one's ended.
  assert.deepEqual(row(1), ['f0 0 5']);
  assert.deepEqual(row(2), ['f1 0 2', 'f2 2 1', 'f1 3 2']);
  model.select({ ...DEFAULT_STATE, root: 'thread' });
  const byThread = model.graph('top-down', [], 'time');
  const names = [...byThread.graph.key.keys()].filter((node) => byThread.graph.depth[node] === 3)
    .map((node) => model.nodeName(byThread.graph, node));
  assert.deepEqual(names, ['f1', 'f2', 'f1', 'f1']);
});

test('series of the strip add up to the selection, whatever the columns', () => forRandom(({ profile }, seed) => {
  const model = new Model(profile);
  model.select({ ...DEFAULT_STATE, weight: 'samples' });
  const { rows, moments, selection, byPeriod, event } = { ...model, moments: profile.moments, rows: profile.rows };
  for (const columns of [1, 7, 100]) {
    for (const by of ['process', 'thread', 'command', 'cgroup']) {
      const strip = stripSeries(profile, { rows, moments, selection, byPeriod, event }, by, columns);
      assert.equal(strip.sums.length, columns * strip.labels.length);
      assert.equal(sumOf([...strip.sums], (sum) => sum), model.total, `${seed} ${columns} ${by}`);
    }
  }
  const plan = heatPlan(profile.moments);
  const strip = stripSeries(profile, { rows, moments, selection, byPeriod, event }, 'process', 1);
  assert.equal(sumOf([...heatCells(moments, plan, strip)], (sum) => sum), model.total, `heat ${seed}`);
}));

test('more series than the strip tells apart are joined', () => {
  const rows = Array.from({ length: 12 }, (_, i) => ({ stack: [[1]], samples: 12 - i, period: 0, thread: i }));
  const profile = timed(rows, rows.map(({ samples }, row) => ({ bucket: row, row, cpu: 0, samples, period: 0 })));
  profile.threads = rows.map((_, i) => ({ pid: 100 + i, tid: 100 + i, comm: 0 }));
  const model = new Model(profile);
  model.select(DEFAULT_STATE);
  const strip = stripSeries(profile, { ...model, moments: profile.moments, rows: profile.rows }, 'process', 10);
  assert.deepEqual([strip.labels[0], strip.labels.at(-1), strip.labels.length], ['comm0 (100)', '5 others', 8]);
});

test('a column has no more CPUs than the machine', () => {
  const sums = Float64Array.from([3, 1, 1, 0.5]);
  boundColumns(sums, 2, 2);
  assert.deepEqual([...sums], [1.5, 0.5, 1, 0.5]);
});

test('one second is a round piece, and an axis has round steps', () => {
  assert.deepEqual(heatPlan({ spanNs: 158e9, bucketNs: 2e6 }), { lengthNs: 1e9, rows: 50, columns: 159 });
  assert.deepEqual(heatPlan({ spanNs: 0, bucketNs: 1000 }), { lengthNs: 1000, rows: 1, columns: 1 });
  assert.deepEqual(axisSteps(63.2), { top: 100, step: 50 });
  assert.deepEqual(axisSteps(60), { top: 60, step: 20 });
  assert.deepEqual(axisSteps(0), { top: 0, step: 0 });
});

test('keys move, stretch and clear a range, within the recording', () => {
  const key = (name, range, shift = false) => rangeByKey(name, shift, range, 1000, 10);
  assert.deepEqual(key('ArrowRight', null), [0, 100]);
  assert.deepEqual(key('ArrowRight', [0, 100]), [10, 110]);
  assert.deepEqual(key('ArrowLeft', [5, 105]), [0, 100]);
  assert.deepEqual(key('ArrowRight', [0, 100], true), [0, 110]);
  assert.deepEqual(key('ArrowLeft', [0, 15], true), [0, 10]);
  assert.deepEqual(key('+', [200, 600]), [300, 500]);
  assert.deepEqual(key('-', [300, 500]), [200, 600]);
  assert.equal(key('-', [200, 900]), null, 'all of it is no range');
  assert.deepEqual(key('End', [0, 100]), [900, 1000]);
  assert.equal(key('Escape', [0, 100]), null);
  assert.equal(key('x', [0, 100]), undefined);
  assert.deepEqual(withinSpan([995, 1400], 1000, 10), [595, 1000]);
});

test('buckets of a range are those that it touches, one at least', () => {
  const moments = { bucketNs: 10, buckets: 100 };
  assert.deepEqual(bucketsOf(moments, [0, 1000]), [0, 100]);
  assert.deepEqual(bucketsOf(moments, [15, 20]), [1, 2]);
  assert.deepEqual(bucketsOf(moments, [15, 21]), [1, 3]);
  assert.deepEqual(bucketsOf(moments, [1e15, 2e15]), [99, 100]);
});

test('columns that were cut are refused', () => {
  const facts = { count: 2, bucketNs: 10, spanNs: 99, lossWindows: [] };
  assert.throws(() => decodeMoments(facts, Uint8Array.from([0, 0, 0, 0])), /cut/);
});

test('quantiles of Student’s t are those of the tables', () => {
  for (const [freedom, t] of [[1, 12.706], [2, 4.303], [4.5, 2.6585], [10, 2.228], [30, 2.042], [63, 1.998], [1000, 1.962]]) {
    assert.ok(Math.abs(studentQuantile(freedom) - t) < 6e-4, `${freedom}: ${studentQuantile(freedom)}`);
  }
});

test('intervals follow the scatter between blocks', () => {
  assert.equal(blocksOf([5, 0, 0]), null, 'one block tells nothing');
  const blocks = blocksOf([10, 10, 10, 10]);
  const ratios = new Ratios(blocks, 2);
  [5, 5, 5, 5].forEach((value, block) => ratios.add(block, 0, value));
  [4, 6, 4, 6].forEach((value, block) => ratios.add(block, 1, value));
  assert.ok(ratios.half(0) < 1e-9);
  // Shares of 0.4 and 0.6 scatter by 0.11547; four of them, by half of that, times the quantile for 3.
  assert.ok(Math.abs(ratios.half(1) - 3.1824 * 0.11547 / 2) < 1e-4, `${ratios.half(1)}`);
});

test('what lasts from block to block makes an interval longer', () => {
  const half = (/** @type {number[]} */ values) => {
    const blocks = blocksOf(Float64Array.from(values, () => 1));
    const ratios = new Ratios(blocks, 1);
    values.forEach((value, block) => ratios.add(block, 0, value));
    return ratios.half(0) / blocks.t;
  };
  const of = (count, value) => Array.from({ length: count }, (_, block) => value(block));
  // As crates/read/whit-estimate has it.
  const independent = (16 * 0.25 * 16) / 15;
  assert.ok(Math.abs(half(of(16, (block) => block % 2)) - Math.sqrt(independent) / 16) < 1e-9);
  assert.ok(Math.abs(half(of(16, (block) => Math.floor(block / 8))) - Math.sqrt(independent + 2 * 13 * 0.25) / 16) < 1e-9);
  assert.ok(Math.abs(half(of(8, (block) => Math.floor(block / 4))) - Math.sqrt((8 * 0.25 * 8) / 7) / 8) < 1e-9);
});

test('the model’s intervals are those of blocks by hand', () => {
  const rows = [0, 1].map((fn) => ({ stack: [[2], [fn]], samples: 0, period: 0 }));
  const counts = [[4, 6], [6, 4], [4, 6], [6, 4]];
  const samples = counts.flatMap((pair, bucket) => pair.map((count, row) => ({ bucket, row, cpu: 0, samples: count, period: 0 })));
  const profile = timed(rows, samples, 4);
  const model = new Model(profile);
  model.select({ ...DEFAULT_STATE, weight: 'samples', range: [0, 40] });
  const { self, total, blocks } = model.intervals();
  assert.equal(blocks, 4);
  assert.ok(Math.abs(self.half(0) - 3.1824 * 0.11547 / 2) < 1e-4, `${self.half(0)}`);
  assert.ok(total.half(2) < 1e-9, 'all stacks have it');
  model.select({ ...DEFAULT_STATE, weight: 'samples', range: [0, 10] });
  assert.equal(model.intervals(), null, 'one bucket has no scatter');
});

test('the wheel makes a range longer or shorter around a moment, and moves it', () => {
  const turn = (change, at, range) => rangeByWheel({ deltaX: 0, deltaY: 0, ctrlKey: false, shiftKey: false, ...change }, at, range, 1000, 10);
  const [from, to] = turn({ deltaY: -100, ctrlKey: true }, 250, null);
  assert.ok(to - from < 800 && to - from > 600, `${from} ${to}`);
  assert.ok(Math.abs((250 - from) / (to - from) - 0.25) < 0.01, 'the moment stays where it is');
  const longer = turn({ deltaY: 120, ctrlKey: true }, 250, [from, to]);
  assert.equal(longer, null, 'back to all of the time');
  // Devices report turns of very different sizes.
  assert.deepEqual(turn({ deltaY: -1e9, ctrlKey: true }, 500, null), turn({ deltaY: -120, ctrlKey: true }, 500, null));
  assert.deepEqual(turn({ deltaY: 120, shiftKey: true }, 0, [100, 200]), [120, 220]);
  assert.deepEqual(turn({ deltaX: -120 }, 0, [100, 200]), [80, 180]);
  assert.deepEqual(turn({ deltaX: -120 }, 0, [5, 105]), [0, 100]);
  assert.equal(turn({ deltaY: 120 }, 0, [100, 200]), undefined, 'a plain turn scrolls');
  assert.equal(turn({ deltaX: 3, deltaY: 40 }, 0, [100, 200]), undefined, 'a turn that leans sideways scrolls, too');
  assert.equal(turn({ deltaY: 120, shiftKey: true }, 0, null), undefined);
});

test('steps of buckets have all of their entries, in whichever way they are found', () => {
  const below = random(11);
  for (let round = 0; round < 200; round++) {
    const buckets = 1 + below(300);
    const first = new Int32Array(buckets + 1);
    for (let bucket = 0; bucket < buckets; bucket++) {
      first[bucket + 1] = first[bucket] + below(3);
    }
    const [from, length] = [below(buckets), 1 + below(40)];
    const steps = new Map();
    for (let bucket = from; bucket < buckets; bucket++) {
      const step = Math.floor(bucket / length);
      steps.set(step, [steps.get(step)?.[0] ?? first[bucket], first[bucket + 1]]);
    }
    const found = new Map();
    eachStep({ first }, [from, buckets], (bucket) => Math.floor(bucket / length), (step, begin, end) => found.set(step, [begin, end]));
    assert.deepEqual(found, steps);
  }
});
