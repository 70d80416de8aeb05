// Intervals of shares, from the scatter of blocks of time: of functions and of nodes of a tree. Knows nothing of the document.

import { Ratios, blocksOf } from './estimate.js';
import { addUp, functionOf } from './tree.js';

/** @import { EntryBlocks, IntervalSteps, Tree } from './types.d.ts' */

/** The weight of each block.
 *  @param {EntryBlocks} entries */
function blockSums({ count, each }) {
  const sums = new Float64Array(count);
  sums.forEach((_, block) => each(block, (_node, value) => {
    sums[block] += value;
  }));
  return sums;
}

/** Intervals of each function's shares, in short steps; null where too few blocks have samples.
 *  @param {EntryBlocks} entries
 *  @param {Tree} tree
 *  @param {number} functionCount
 *  @returns {IntervalSteps} */
export function* functionIntervals(entries, tree, functionCount) {
  const sums = blockSums(entries);
  const blocks = blocksOf(sums);
  yield;
  if (blocks === null) {
    return null;
  }
  const [self, total] = [new Ratios(blocks, functionCount), new Ratios(blocks, functionCount)];
  const nodes = new Float64Array(tree.count);
  for (let block = 0; block < entries.count; block++) {
    nodes.fill(0);
    const own = new Float64Array(functionCount);
    entries.each(block, (node, value) => {
      nodes[node] += value;
      own[node > 0 ? functionOf(tree.key[node]) : 0] += node > 0 ? value : 0;
    });
    own.forEach((sum, fn) => sum > 0 && self.add(block, fn, sum));
    addTotals(tree, block, nodes, total);
    yield;
  }
  return { self, total, blocks: sums.reduce((n, sum) => n + (sum > 0 ? 1 : 0), 0) };
}

/** Adds the total weights of one block by function; `nodes` are the nodes' own, and are added up here.
 *  @param {Tree} tree
 *  @param {number} block
 *  @param {Float64Array} nodes
 *  @param {Ratios} total */
function addTotals({ parent, key, outermost, count }, block, nodes, total) {
  const sums = new Float64Array(total.sum.length);
  for (let node = count - 1; node > 0; node--) {
    const weight = nodes[node];
    if (weight > 0) {
      nodes[parent[node]] += weight;
      sums[functionOf(key[node])] += outermost[node] === 1 ? weight : 0;
    }
  }
  sums.forEach((sum, fn) => sum > 0 && total.add(block, fn, sum));
}

/** Half of the interval of a node's share, callees included; NaN where too few blocks have samples.
 *  @param {EntryBlocks} entries
 *  @param {Tree} tree
 *  @param {number} node */
export function nodeHalf({ count, each }, { parent, count: nodes }, node) {
  const within = new Uint8Array(nodes);
  within[node] = 1;
  for (let at = node + 1; at < nodes; at++) {
    within[at] = within[parent[at]];
  }
  const [sums, own] = [new Float64Array(count), new Float64Array(count)];
  for (let block = 0; block < count; block++) {
    each(block, (at, value) => {
      sums[block] += value;
      own[block] += within[at] === 1 ? value : 0;
    });
  }
  const blocks = blocksOf(sums);
  if (blocks === null) {
    return NaN;
  }
  const ratios = new Ratios(blocks, 1);
  own.forEach((value, block) => ratios.add(block, 0, value));
  return ratios.half(0);
}

/** Intervals of many nodes, in short steps, until they are out of date; null where too few blocks have samples.
 *  @param {EntryBlocks} entries
 *  @param {Tree} tree
 *  @param {number[]} wanted
 *  @param {() => boolean} isStale
 *  @returns {IntervalSteps} */
export function* nodeIntervals(entries, tree, wanted, isStale) {
  const blocks = blocksOf(blockSums(entries));
  yield;
  if (blocks === null) {
    return null;
  }
  const [self, total] = [new Ratios(blocks, wanted.length), new Ratios(blocks, wanted.length)];
  const nodes = new Float64Array(tree.count);
  for (let block = 0; block < entries.count && !isStale(); block++) {
    nodes.fill(0);
    entries.each(block, (node, value) => {
      nodes[node] += value;
    });
    wanted.forEach((node, index) => self.add(block, index, nodes[node]));
    addUp(tree.parent, nodes);
    wanted.forEach((node, index) => total.add(block, index, nodes[node]));
    yield;
  }
  const place = new Map(wanted.map((node, index) => [node, index]));
  /** @param {Ratios} ratios */
  const half = (ratios) => ({
    half: (/** @type {number} */ node) => {
      const index = place.get(node);
      return index === undefined ? NaN : ratios.half(index);
    },
  });
  return { self: half(self), total: half(total) };
}
