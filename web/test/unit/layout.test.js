import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mergeTree, topDownGraph, weighTree } from '../../src/tree.js';
import { findInRow, heaviestChild, layoutGraph, neighbour, nodeAt, rowCount } from '../../src/layout.js';
import { forRandomProfiles, profileOf } from './profiles.js';

function laidOut(profile, foldedKey) {
  const tree = mergeTree(profile);
  const weights = weighTree(tree, profile.rows, { event: 0, threads: null, comms: null });
  const graph = topDownGraph(tree, weights);
  return { graph, weight: weights.totalSamples, layout: layoutGraph(graph, weights.totalSamples, foldedKey) };
}

test('children stand within their parent, beside each other, heaviest first', () => {
  forRandomProfiles((profile, rows, seed) => {
    const { graph, weight, layout } = laidOut(profile);
    let visited = 0;
    for (let row = 0; row < rowCount(layout); row++) {
      let right = 0;
      for (let at = layout.rowStart[row]; at < layout.rowStart[row + 1]; at++) {
        const node = layout.order[at];
        const parent = graph.parent[node];
        assert.equal(graph.depth[node], row, seed);
        assert.ok(layout.x[node] >= right, `${seed}: frames overlap`);
        right = layout.x[node] + weight[node];
        assert.ok(parent < 0 || right <= layout.x[parent] + weight[parent], `${seed}: beyond the parent`);
        visited += 1;
      }
    }
    const drawn = [...weight].filter((w, node) => w > 0 || node === 0).length;
    assert.equal(visited, drawn, `${seed}: every frame with weight stands once`);
  });
});

test('a point finds its frame, and nothing beside it', () => {
  forRandomProfiles((profile, rows, seed) => {
    const { graph, weight, layout } = laidOut(profile);
    for (const node of layout.order) {
      if (weight[node] > 0) {
        assert.equal(nodeAt(layout, weight, graph.depth[node], layout.x[node]), node, seed);
        assert.equal(nodeAt(layout, weight, graph.depth[node], layout.x[node] + weight[node] - 0.5), node, seed);
      }
    }
    assert.equal(nodeAt(layout, weight, rowCount(layout), 0), -1);
    assert.equal(nodeAt(layout, weight, 0, weight[0]), -1);
  });
});

test('arrow keys go to neighbours and to the heaviest child', () => {
  const { graph, weight, layout } = laidOut(profileOf([
    { stack: [[0], [1]], samples: 2 },
    { stack: [[0], [2]], samples: 5 },
    { stack: [[3]], samples: 4 },
  ]));
  const at = (row, x) => nodeAt(layout, weight, row, x);
  assert.equal(graph.key[heaviestChild(graph, layout, weight, 0)], 0);
  assert.equal(graph.key[heaviestChild(graph, layout, weight, at(1, 0))], 4);
  assert.equal(heaviestChild(graph, layout, weight, at(1, 8)), -1, 'a leaf has no child');
  assert.equal(neighbour(graph, layout, at(1, 0), 1), at(1, 8));
  assert.equal(neighbour(graph, layout, at(1, 8), 1), -1);
  assert.equal(neighbour(graph, layout, at(1, 8), -1), at(1, 0));
  assert.equal(findInRow(layout, 1, -5), layout.rowStart[1]);
  assert.deepEqual([...layout.height].slice(0, 2), [2, 1]);
});

test('folded frames stand last, however heavy', () => {
  const { graph, layout } = laidOut(profileOf([
    { stack: [[0]], samples: 2 },
    { stack: [[1]], samples: 90 },
  ]), 2);
  assert.deepEqual([...layout.order].map((node) => graph.key[node]), [-1, 0, 2]);
});

test('a graph without weight is its root alone', () => {
  const { layout } = laidOut(profileOf([]));
  assert.equal(rowCount(layout), 1);
  assert.deepEqual([...layout.order], [0]);
});

test('frames below the least weight are left out, and the others stand as before', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const weights = weighTree(tree, profile.rows, { event: 0, threads: null, comms: null });
    const graph = topDownGraph(tree, weights);
    const weight = weights.totalSamples;
    const whole = layoutGraph(graph, weight);
    const least = 3;
    const some = layoutGraph(graph, weight, -2, least);
    const heavy = [...whole.order].filter((node) => node === 0 || weight[node] > least);
    assert.deepEqual([...some.order], heavy, seed);
    assert.deepEqual(heavy.map((node) => some.x[node]), heavy.map((node) => whole.x[node]), seed);
  });
});
