// The graph in order of time: frames that follow each other in the samples of one thread are one.

import { addUp } from './tree.js';

/** @import { Graph, Tree } from './types.d.ts' */

/** Nodes that the graph has at most. */
export const MAX_TIME_NODES = 400_000;

/** A graph whose children stand in order of time. `stacks` are {node, samples, period} in that order, with nodes
 *  of `tree`.
 *  @param {Tree} tree
 *  @param {{ node: number, samples: number, period: number }[]} stacks
 *  @param {number} max
 *  @returns {Graph} */
export function timeOrderGraph(tree, stacks, max = MAX_TIME_NODES) {
  const [parent, key, depth] = [[-1], [-1], [0]];
  const [selfSamples, selfPeriod] = [[0], [0]];
  // The stack drawn last: its nodes in the tree, and here, from the root on.
  let [open, drawn] = [[0], [0]];
  let cut = false;
  const way = [];
  for (const { node, samples, period } of stacks) {
    for (let at = node; at >= 0; at = tree.parent[at]) {
      way.push(at);
    }
    let shared = 0;
    while (shared < open.length && shared < way.length && open[shared] === way[way.length - 1 - shared]) {
      shared += 1;
    }
    const missing = way.length - shared;
    if (parent.length + missing > max) {
      cut = true;
      break;
    }
    [open, drawn] = [open.slice(0, shared), drawn.slice(0, shared)];
    for (let i = missing - 1; i >= 0; i--) {
      drawn.push(parent.push(drawn[drawn.length - 1]) - 1);
      key.push(tree.key[way[i]]);
      depth.push(drawn.length - 1);
      selfSamples.push(0);
      selfPeriod.push(0);
      open.push(way[i]);
    }
    way.length = 0;
    const leaf = drawn[drawn.length - 1];
    selfSamples[leaf] += samples;
    selfPeriod[leaf] += period;
  }
  const graph = {
    count: parent.length,
    parent: Int32Array.from(parent),
    key: Int32Array.from(key),
    depth: Int32Array.from(depth),
    selfSamples: Float64Array.from(selfSamples),
    selfPeriod: Float64Array.from(selfPeriod),
    inTime: true,
    cut,
  };
  return {
    ...graph,
    totalSamples: addUp(graph.parent, graph.selfSamples.slice()),
    totalPeriod: addUp(graph.parent, graph.selfPeriod.slice()),
  };
}
