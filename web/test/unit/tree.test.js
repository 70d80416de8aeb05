import assert from 'node:assert/strict';
import { test } from 'node:test';

import { findPath, mergeTree, pathTo, topDownGraph, weighTree } from '../../src/tree.js';
import { bottomUpGraph, callersGraph } from '../../src/invert.js';
import { calleesGraph, functionTotals, selfByKey } from '../../src/functions.js';
import { forRandomProfiles, profileOf, sumOf } from './profiles.js';

const ALL_ROWS = { event: 0, threads: null, comms: null };
const keyOf = ([fn, inlined = 0]) => fn * 2 + inlined;

/** Total samples of each path of keys, straight from the rows. */
function expectedTotals(rows, orderStack) {
  const totals = new Map();
  for (const { stack, samples } of rows) {
    const keys = orderStack(stack.map(keyOf));
    for (let depth = 0; depth <= keys.length; depth++) {
      const path = keys.slice(0, depth).join();
      totals.set(path, (totals.get(path) ?? 0) + samples);
    }
  }
  return totals;
}

function totalsOf(graph) {
  const totals = new Map();
  for (let node = 0; node < graph.count; node++) {
    if (graph.totalSamples[node] > 0 || node === 0) {
      const path = pathTo(graph, node).join();
      assert.ok(!totals.has(path), 'paths are unique');
      totals.set(path, graph.totalSamples[node]);
    }
  }
  return totals;
}

const sorted = (map) => [...map].sort();
const withRoot = (map) => (map.size === 0 ? new Map([['', 0]]) : map);

test('frames of one function are one node, inlined ones another', () => {
  const profile = profileOf([
    { stack: [[0], [1, 0, 5]], samples: 2 },
    { stack: [[0], [1, 0, 9]], samples: 3 },
    { stack: [[0], [1, 1, 9]], samples: 4 },
  ]);
  const tree = mergeTree(profile);
  const weights = weighTree(tree, profile.rows, ALL_ROWS);
  assert.deepEqual([...tree.key], [-1, 0, 2, 3]);
  assert.deepEqual([...weights.totalSamples], [9, 9, 5, 4]);
  assert.deepEqual([...weights.selfSamples], [0, 0, 5, 4]);
});

test('top-down totals are those of the rows, for any event, threads and comms', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const selections = [
      [ALL_ROWS, () => true],
      [{ event: 1, threads: Uint8Array.of(0, 1, 1, 0), comms: null }, (r) => r.thread === 1 || r.thread === 2],
      [{ event: 0, threads: null, comms: Uint8Array.of(0, 1) }, (r) => r.comm === 1],
    ];
    for (const [selection, passes] of selections) {
      const selected = rows.filter((r) => r.event === selection.event && passes(r));
      const graph = topDownGraph(tree, weighTree(tree, profile.rows, selection));
      assert.deepEqual(sorted(totalsOf(graph)), sorted(withRoot(expectedTotals(selected, (s) => s))), seed);
      assert.equal(sumOf([...graph.selfSamples], (w) => w), sumOf(selected, (r) => r.samples), seed);
      assert.equal(graph.totalPeriod[0], sumOf(selected, (r) => r.period), seed);
    }
  });
});

test('bottom-up totals are those of the reversed stacks', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const weights = weighTree(tree, profile.rows, ALL_ROWS);
    const graph = bottomUpGraph(tree, weights, { byPeriod: false });
    const selected = rows.filter((r) => r.event === 0);
    const expected = withRoot(expectedTotals(selected, (s) => s.reverse()));
    assert.deepEqual(sorted(totalsOf(graph)), sorted(expected), seed);
    for (let node = 1; node < graph.count; node++) {
      assert.ok(graph.parent[node] < node, 'parents stand first');
    }
  });
});

test('small subtrees of the inverted graph are parted when they are zoomed to', () => {
  const stack = [[0], [1], [2]];
  const profile = profileOf([{ stack: [[3], [4]], samples: 1e7 }, { stack, samples: 1 }]);
  const tree = mergeTree(profile);
  const weights = weighTree(tree, profile.rows, ALL_ROWS);
  const whole = bottomUpGraph(tree, weights, { byPeriod: false });
  assert.ok(!totalsOf(whole).has('4,2'), 'not to be seen, not parted');
  const zoomed = bottomUpGraph(tree, weights, { path: [4], byPeriod: false });
  assert.equal(totalsOf(zoomed).get('4,2,0'), 1);
  assert.equal(zoomed.totalSamples[0], 1e7 + 1, 'sums stay those of all stacks');
});

test('a function that calls itself counts once for each stack', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const sums = functionTotals(tree, weighTree(tree, profile.rows, ALL_ROWS), 8);
    const selected = rows.filter((r) => r.event === 0);
    for (let fn = 0; fn < 8; fn++) {
      const on = selected.filter((r) => r.stack.some(([f]) => f === fn));
      const leaf = selected.filter((r) => r.stack.at(-1)?.[0] === fn);
      assert.equal(sums.totalSamples[fn], sumOf(on, (r) => r.samples), seed);
      assert.equal(sums.selfSamples[fn], sumOf(leaf, (r) => r.samples), seed);
    }
  });
});

test('self weights by key add up to the total without the stackless samples', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const weights = weighTree(tree, profile.rows, ALL_ROWS);
    const sum = sumOf([...selfByKey(tree, weights.selfSamples, 8)], (w) => w);
    const stacked = rows.filter((r) => r.event === 0 && r.stack.length > 0);
    assert.equal(sum, sumOf(stacked, (r) => r.samples), seed);
  });
});

test('callers and callees of a function both begin at its outermost frame', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const weights = weighTree(tree, profile.rows, ALL_ROWS);
    const on = rows.filter((r) => r.event === 0 && r.stack.some(([f]) => f === 1));
    const outermost = (stack) => stack.findIndex((key) => key >> 1 === 1);
    const callees = calleesGraph(tree, weights, 1, 8);
    const below = expectedTotals(on, (s) => s.slice(outermost(s) + 1));
    assert.deepEqual(sorted(totalsOf(callees)), sorted(withRoot(below)), seed);
    const callers = callersGraph(tree, weights, 1, { byPeriod: false });
    const above = expectedTotals(on, (s) => s.slice(0, outermost(s)).reverse());
    assert.deepEqual(sorted(totalsOf(callers)), sorted(withRoot(above)), seed);
  });
});

test('a path leads back to its node, and as far as it goes elsewhere', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const graph = topDownGraph(tree, weighTree(tree, profile.rows, ALL_ROWS));
    for (let node = 0; node < graph.count; node++) {
      if (graph.totalSamples[node] > 0) {
        assert.equal(findPath(graph, pathTo(graph, node)), node, seed);
        assert.equal(findPath(graph, [...pathTo(graph, node), 999]), node, seed);
      }
    }
  });
});

test('stacks of 100,000 frames are no trouble', () => {
  const stack = Array.from({ length: 100_000 }, (_, i) => [i % 5]);
  const profile = profileOf([{ stack, samples: 7 }]);
  const tree = mergeTree(profile);
  const weights = weighTree(tree, profile.rows, ALL_ROWS);
  assert.equal(weights.totalSamples[tree.count - 1], 7);
  assert.equal(functionTotals(tree, weights, 8).totalSamples[0], 7);
  const inverted = bottomUpGraph(tree, weights, {});
  assert.equal(inverted.totalSamples[inverted.count - 1], 7);
});
