// The call tree of waits for a selection: sums of random profiles against plain ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ACTIVITIES, openedNodes } from '../../src/switches.js';
import { functionOf, mergeTree } from '../../src/tree.js';
import { waitFrameName, waitPart, waitSums, waitTree } from '../../src/waittree.js';
import { profileOf, random } from './profiles.js';

const [WAITING, PREEMPTED] = ['waiting', 'preempted'].map((wanted) => ACTIVITIES.findIndex(({ id }) => id === wanted));
// Functions 5 to 7 stand for waits.
const NAMES = ['f0', 'f1', 'f2', 'f3', 'f4', '[lock wait]', '[preempted]', '[time that a loss touches]'];
const KINDS = { '[lock wait]': 'lock', '[preempted]': 'run-queue', '[time that a loss touches]': 'wait' };
const ALL_THREADS = { event: 0, threads: null, comms: null };
const partOf = (key) => waitPart(NAMES[functionOf(key)], KINDS[NAMES[functionOf(key)]] ?? 'elf');
const nameOf = (key) => waitFrameName(key, (fn) => NAMES[fn]);

/** Random stacks with CPU time and waits; a single wait for each row of waits, at the row's number of ms. */
function example(seed) {
  const below = random(seed);
  const rows = Array.from({ length: 1 + below(30) }, (_, at) => {
    const code = Array.from({ length: below(5) }, () => [below(5), below(4) === 0 ? 1 : 0]);
    const leaf = below(4);
    return {
      event: below(6) === 0 ? 1 : 0, thread: below(4), comm: 0, at, leaf, code,
      samples: leaf > 0 ? 1 : 0, period: 1 + below(900), stack: leaf > 0 ? [...code, [4 + leaf]] : code,
    };
  });
  const profile = profileOf(rows);
  const waits = rows.map((row, index) => ({ ...row, index })).filter(({ leaf, event }) => leaf > 0 && event === 0);
  const timeline = {
    thread: Uint32Array.from(waits, ({ thread }) => thread),
    startNs: Float64Array.from(waits, ({ at }) => at * 1000),
    durationNs: Float64Array.from(waits, () => 1000),
    activity: Uint8Array.from(waits, ({ leaf }) => (leaf === 2 ? PREEMPTED : WAITING)),
    lossy: Uint8Array.from(waits, ({ leaf }) => (leaf === 3 ? 1 : 0)),
    node: Uint32Array.from(waits, ({ index }) => profile.rows.node[index] + 1),
  };
  return { rows, profile, base: mergeTree(profile), timeline };
}

const text = (row) => row.code.map(([fn, inlined = 0]) => nameOf(fn * 2 + inlined));

/** Sums by path of names, root first, of rows that a test lets pass. */
function plainSums(rows, direction) {
  const sums = new Map();
  for (const row of rows) {
    const names = row.code.length > 0 ? text(row) : ['[no call stack]'];
    const way = direction === 'callee' ? names.reverse() : names;
    for (let end = 1; end <= way.length; end++) {
      const path = way.slice(0, end).join(';');
      const sum = sums.get(path) ?? [0, 0, 0, 0, 0];
      [row.leaf === 0 ? row.period : 0, [1, 2].includes(row.leaf) ? row.period : 0,
        row.leaf === 1 ? 1 : 0, row.leaf === 2 ? 1 : 0, row.leaf === 3 ? 1 : 0].forEach((value, i) => {
        sum[i] += value;
      });
      sums.set(path, sum);
    }
  }
  return sums;
}

function treeSums(tree) {
  const [sums, paths] = [new Map(), []];
  tree.parent.forEach((parent, node) => {
    assert.ok(parent < node, 'parents first');
    paths[node] = parent < 0 ? tree.nameOf(node) : `${paths[parent]};${tree.nameOf(node)}`;
    sums.set(paths[node], ['cpuNs', 'waitNs', 'sync', 'preempt', 'lossy'].map((name) => tree[name][node]));
  });
  return sums;
}

const sorted = (sums) => [...sums].sort(([a], [b]) => (a < b ? -1 : 1));

test('sums from either end are those of the selected rows and waits', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const { rows, profile, base, timeline } = example(seed);
    const lanes = Uint8Array.of(1, seed % 2, 1, 0);
    const selection = { ...ALL_THREADS, threads: lanes };
    const passes = (row) => row.event === 0 && lanes[row.thread] === 1;
    for (const range of [null, [3000, 12000]]) {
      const within = range ?? [0, 1e9];
      const isIn = (row) => row.at * 1000 < within[1] && row.at * 1000 + 1000 > within[0];
      // The rows have the weights that they have in the range.
      const period = profile.rows.period.map((value, at) => (isIn(rows[at]) ? value : 0));
      const { own, foldedNs } = waitSums({
        base, rows: { ...profile.rows, period }, selection, partOf, foldedKey: -2, timeline, lanes, range, within,
      });
      assert.equal(foldedNs, 0);
      for (const direction of ['callee', 'caller']) {
        const found = treeSums(waitTree(base, own, direction, nameOf));
        assert.deepEqual(sorted(found), sorted(plainSums(rows.filter((row) => passes(row) && isIn(row)), direction)), `seed ${seed} ${direction}`);
      }
    }
  }
});

test('siblings stand by their waits, and what is below a node behind it', () => {
  const { profile, base, timeline } = example(7);
  const { own } = waitSums({
    base, rows: profile.rows, selection: ALL_THREADS, partOf, foldedKey: -2, timeline, lanes: new Uint8Array(4).fill(1), range: null, within: [0, 1e9],
  });
  const tree = waitTree(base, own, 'callee', nameOf);
  const lastOf = new Map();
  tree.parent.forEach((parent, node) => {
    const before = lastOf.get(parent);
    assert.ok(before === undefined || tree.waitNs[before] >= tree.waitNs[node]);
    lastOf.set(parent, node);
    if (node > 0 && tree.children[node - 1] > 0) {
      assert.equal(parent, node - 1, 'the first child follows');
    }
  });
});

test('a bound cuts stacks and says how many', () => {
  const { profile, base, timeline } = example(3);
  const { own } = waitSums({
    base, rows: profile.rows, selection: ALL_THREADS, partOf, foldedKey: -2, timeline, lanes: new Uint8Array(4).fill(1), range: null, within: [0, 1e9],
  });
  const whole = waitTree(base, own, 'caller', nameOf);
  const cut = waitTree(base, own, 'caller', nameOf, 3);
  assert.equal(whole.leftOut, 0);
  assert.ok(cut.parent.length === 3 && cut.leftOut > 0);
});

test('time of folded stacks is told apart', () => {
  const profile = profileOf([{ stack: [[0], [1]], samples: 0, period: 70 }, { stack: [[0]], samples: 0, period: 5 }]);
  const base = mergeTree(profile);
  const { own, foldedNs } = waitSums({
    base, rows: profile.rows, selection: ALL_THREADS, partOf, foldedKey: 2,
    timeline: { thread: [] }, lanes: new Uint8Array(4).fill(1), range: null, within: [0, 1],
  });
  assert.equal(foldedNs, 70);
  assert.equal(own.cpuNs.reduce((a, b) => a + b), 5);
});

test('waits of folded stacks are counted as little as their time', () => {
  const profile = profileOf([{ stack: [[0], [1]], samples: 0, period: 70 }, { stack: [[0]], samples: 0, period: 5 }]);
  const base = mergeTree(profile);
  const counted = (foldedKey) => waitSums({
    base, rows: profile.rows, selection: ALL_THREADS, partOf, foldedKey,
    timeline: { thread: [0], startNs: [0], durationNs: [10], node: [2], lossy: [0], activity: [ACTIVITIES.findIndex(({ id }) => id === 'waiting')] },
    lanes: new Uint8Array(4).fill(1), range: [0, 100], within: [0, 100],
  }).own.sync.reduce((a, b) => a + b);
  assert.deepEqual([counted(2), counted(-2)], [0, 1]);
});

test('what is open stays open when the sums change', () => {
  const tree = (names) => ({ parent: [-1, 0, -1], nameOf: (node) => names[node] });
  const opened = new Set(['\na']);
  assert.deepEqual([...openedNodes(tree(['a', 'b', 'c']), opened).open], [0]);
  assert.deepEqual([...openedNodes(tree(['c', 'b', 'a']), opened).open], [2]);
});
