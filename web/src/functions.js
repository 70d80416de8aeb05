// Sums by function, and the callees of one function.

import { addUp, functionOf } from './tree.js';
import { outermostNodes } from './invert.js';

/** @import { Graph, Tree, Weights } from './types.d.ts' */

/** Self and total of each function; a stack counts once for a function, however often it is on
 *  it.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @param {number} functionCount */
export function functionTotals(tree, weights, functionCount) {
  const sums = {
    selfSamples: new Float64Array(functionCount),
    selfPeriod: new Float64Array(functionCount),
    totalSamples: new Float64Array(functionCount),
    totalPeriod: new Float64Array(functionCount),
  };
  for (let node = 1; node < tree.count; node++) {
    const fn = functionOf(tree.key[node]);
    sums.selfSamples[fn] += weights.selfSamples[node];
    sums.selfPeriod[fn] += weights.selfPeriod[node];
    if (tree.outermost[node]) {
      sums.totalSamples[fn] += weights.totalSamples[node];
      sums.totalPeriod[fn] += weights.totalPeriod[node];
    }
  }
  return sums;
}

/** Self weight by key.
 *  @param {Tree} tree
 *  @param {Float64Array} self
 *  @param {number} functionCount */
export function selfByKey(tree, self, functionCount) {
  const sums = new Float64Array(functionCount * 2);
  for (let node = 1; node < tree.count; node++) {
    sums[tree.key[node]] += self[node];
  }
  return sums;
}

/** The callees of a function: the subtrees of its outermost frames, merged; node 0 is the function.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @param {number} fn
 *  @param {number} functionCount
 *  @returns {Graph} */
export function calleesGraph(tree, weights, fn, functionCount) {
  const keyCount = functionCount * 2;
  const mapped = new Int32Array(tree.count).fill(-1);
  for (const node of outermostNodes(tree, weights, fn)) {
    mapped[node] = 0;
  }
  const [parent, key, depth] = [[-1], [fn * 2], [0]];
  const [selfSamples, selfPeriod] = [[0], [0]];
  /** @type {Map<number, number>} */
  const known = new Map();
  for (let node = 1; node < tree.count; node++) {
    const above = mapped[tree.parent[node]];
    if (mapped[node] < 0 && above >= 0) {
      const slot = above * keyCount + tree.key[node];
      let merged = known.get(slot);
      if (merged === undefined) {
        merged = parent.length;
        known.set(slot, merged);
        parent.push(above);
        key.push(tree.key[node]);
        depth.push(depth[above] + 1);
        selfSamples.push(0);
        selfPeriod.push(0);
      }
      mapped[node] = merged;
    }
    if (mapped[node] >= 0) {
      selfSamples[mapped[node]] += weights.selfSamples[node];
      selfPeriod[mapped[node]] += weights.selfPeriod[node];
    }
  }
  const graph = {
    count: parent.length,
    parent: Int32Array.from(parent),
    key: Int32Array.from(key),
    depth: Int32Array.from(depth),
    selfSamples: Float64Array.from(selfSamples),
    selfPeriod: Float64Array.from(selfPeriod),
  };
  return {
    ...graph,
    totalSamples: addUp(graph.parent, graph.selfSamples.slice()),
    totalPeriod: addUp(graph.parent, graph.selfPeriod.slice()),
  };
}
