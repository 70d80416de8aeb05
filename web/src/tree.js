// The call tree by function: what the flame graph from the root down shows.
//
// A tree's node 0 stands for all samples and has key -1. A key is one function, as called or as
// inlined: function * 2 + inlined. A parent stands before its children. Trees can be 100,000s of
// nodes and 1000s of frames deep: typed arrays, and no recursion.

import { FRAME_FOLDED, FRAME_INLINED } from './decode.js';

/** @import { BaseTree, Frames, Graph, Profile, Rows, SampleChoice, Tree, Weights } from './types.d.ts' */

export const ALL = -1;

/** Function of a key.
 *  @param {number} key */
export function functionOf(key) {
  return key >> 1;
}

/** True for the key of an inlined function.
 *  @param {number} key */
export function isInlined(key) {
  return key >= 0 && (key & 1) === 1;
}

/** Key of each frame of the profile.
 *  @param {Frames} frames */
export function frameKeys(frames) {
  return frames.function.map((f, i) => f * 2 + (frames.flags[i] & FRAME_INLINED ? 1 : 0));
}

/** Merges the profile's nodes by function; `nodeOf` says where each node of the profile went,
 *  `folded` how many folded nodes a node stands for.
 *  @param {Profile} profile
 *  @returns {BaseTree} */
export function mergeTree(profile) {
  const { nodes, frames } = profile;
  const keys = frameKeys(frames);
  const keyCount = profile.functions.names.length * 2;
  const size = nodes.parent.length + 1;
  const [parent, key, depth] = [new Int32Array(size), new Int32Array(size), new Int32Array(size)];
  const folded = new Uint32Array(size);
  const nodeOf = new Int32Array(size - 1);
  parent[0] = -1;
  key[0] = ALL;
  let count = 1;
  /** @type {Map<number, number>} */
  const known = new Map();
  for (let i = 0; i < nodeOf.length; i++) {
    const above = nodes.parent[i] < 0 ? 0 : nodeOf[nodes.parent[i]];
    const frame = nodes.frame[i];
    const slot = above * keyCount + keys[frame];
    let node = known.get(slot);
    if (node === undefined) {
      node = count++;
      known.set(slot, node);
      parent[node] = above;
      key[node] = keys[frame];
      depth[node] = depth[above] + 1;
    }
    folded[node] += frames.flags[frame] & FRAME_FOLDED ? frames.line[frame] : 0;
    nodeOf[i] = node;
  }
  const tree = {
    count,
    parent: parent.slice(0, count),
    key: key.slice(0, count),
    depth: depth.slice(0, count),
    folded: folded.slice(0, count),
    nodeOf,
    rowNode: profile.rows.node.map((node) => (node < 0 ? 0 : nodeOf[node])),
    cut: false,
  };
  return { ...tree, outermost: findOutermost(tree, keyCount / 2) };
}

/** Nodes that a tree with groups at its root has at most; further ones count as their callers. */
export const MAX_GROUPED_NODES = 1_500_000;

/** The tree below one node for each group. `groupOf` is the group of each row, `base` the tree of all rows,
 *  `rowNode` where the rows are in it; `groupKey(group)` is a key.
 *  @returns {Tree}
 *  @param {BaseTree} base
 *  @param {Int32Array} rowNode
 *  @param {Int32Array} groupOf
 *  @param {number} groupCount
 *  @param {{ groupKey: (group: number) => number, functionCount: number, max?: number }} options */
export function groupTree(base, rowNode, groupOf, groupCount, { groupKey, functionCount, max = MAX_GROUPED_NODES }) {
  const size = Math.min(max, groupCount * base.count + 1);
  const grown = { parent: [-1], key: [ALL], depth: [0], folded: [0] };
  // A place counts where its stamp is that of the group.
  const [place, stamp] = [new Int32Array(base.count), new Int32Array(base.count)];
  const placed = new Int32Array(rowNode.length);
  /** @type {number[]} */
  const way = [];
  let cut = false;
  for (const [group, rows] of rowsByGroup(groupOf, groupCount)) {
    stamp[0] = group + 1;
    place[0] = grown.parent.push(0) - 1;
    grown.key.push(groupKey(group));
    grown.depth.push(1);
    grown.folded.push(0);
    for (const row of rows) {
      let at = rowNode[row];
      for (; stamp[at] !== group + 1; at = base.parent[at]) {
        way.push(at);
      }
      let above = place[at];
      while (way.length > 0) {
        const node = /** @type {number} */ (way.pop());
        if (grown.parent.length < size + groupCount) {
          grown.key.push(base.key[node]);
          grown.depth.push(grown.depth[above] + 1);
          grown.folded.push(base.folded[node]);
          above = grown.parent.push(above) - 1;
        } else {
          cut = true;
        }
        place[node] = above;
        stamp[node] = group + 1;
      }
      placed[row] = above;
    }
  }
  const tree = {
    count: grown.parent.length,
    parent: Int32Array.from(grown.parent),
    key: Int32Array.from(grown.key),
    depth: Int32Array.from(grown.depth),
    folded: Uint32Array.from(grown.folded),
    rowNode: placed,
    cut,
  };
  return { ...tree, outermost: findOutermost(tree, functionCount) };
}

/** Each group that has rows, with its rows.
 *  @param {Int32Array} groupOf
 *  @param {number} groupCount */
function rowsByGroup(groupOf, groupCount) {
  /** @type {number[][]} */
  const rows = Array.from({ length: groupCount }, () => []);
  groupOf.forEach((group, row) => rows[group].push(row));
  return [...rows.entries()].filter(([, list]) => list.length > 0);
}

/** 1 for nodes whose function has no other frame further out: each stack counts once for a
 *  function that calls itself.
 *  @param {{ count: number, parent: Int32Array, key: Int32Array }} tree
 *  @param {number} functionCount */
export function findOutermost({ count, parent, key }, functionCount) {
  const [firstChild, nextSibling] = [new Int32Array(count).fill(-1), new Int32Array(count).fill(-1)];
  for (let node = count - 1; node > 0; node--) {
    nextSibling[node] = firstChild[parent[node]];
    firstChild[parent[node]] = node;
  }
  const onStack = new Int32Array(functionCount);
  const outermost = new Uint8Array(count);
  let node = firstChild[0] ?? -1;
  while (node > 0) {
    outermost[node] = onStack[functionOf(key[node])]++ === 0 ? 1 : 0;
    if (firstChild[node] >= 0) {
      node = firstChild[node];
      continue;
    }
    while (node > 0) {
      onStack[functionOf(key[node])]--;
      if (nextSibling[node] >= 0) {
        node = nextSibling[node];
        break;
      }
      node = parent[node];
    }
  }
  return outermost;
}

/** Adds each node's weight to its parent's, children before parents.
 *  @param {Int32Array} parent
 *  @param {Float64Array} weights */
export function addUp(parent, weights) {
  for (let node = parent.length - 1; node > 0; node--) {
    weights[parent[node]] += weights[node];
  }
  return weights;
}

/** Tests rows against a selection: an event, and masks of threads and comms or null for all.
 *  @param {Rows} rows
 *  @param {SampleChoice} selection
 *  @returns {(row: number) => boolean} */
export function rowFilter(rows, { event, threads, comms }) {
  return (row) => rows.event[row] === event
    && (threads === null || threads[rows.thread[row]] === 1)
    && (comms === null || comms[rows.comm[row]] === 1);
}

/** Self and total weights of the tree's nodes for a selection.
 *  @param {Tree} tree
 *  @param {Rows} rows
 *  @param {SampleChoice} selection
 *  @returns {Weights} */
export function weighTree(tree, rows, selection) {
  const [selfSamples, selfPeriod] = [new Float64Array(tree.count), new Float64Array(tree.count)];
  const selected = rowFilter(rows, selection);
  for (let row = 0; row < rows.node.length; row++) {
    const node = tree.rowNode[row];
    if (node >= 0 && selected(row)) {
      selfSamples[node] += rows.samples[row];
      selfPeriod[node] += rows.period[row];
    }
  }
  return {
    selfSamples,
    selfPeriod,
    totalSamples: addUp(tree.parent, selfSamples.slice()),
    totalPeriod: addUp(tree.parent, selfPeriod.slice()),
  };
}

/** The tree from the root down as a graph to lay out.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @returns {Graph} */
export function topDownGraph(tree, weights) {
  const { count, parent, key, depth } = tree;
  return { count, parent, key, depth, ...weights };
}

/** Keys from below the root down to `node`. In order of time a path can come again: there it is the node's
 *  number.
 *  @param {Pick<Graph, 'parent' | 'key' | 'inTime'>} graph
 *  @param {number} node */
export function pathTo(graph, node) {
  if (graph.inTime) {
    return node > 0 ? [node] : [];
  }
  const path = [];
  for (let at = node; at > 0; at = graph.parent[at]) {
    path.push(graph.key[at]);
  }
  return path.reverse();
}

/** The deepest node with samples along `path`; 0 where the path does not even begin.
 *  @param {Graph} graph
 *  @param {readonly number[]} path */
export function findPath(graph, path) {
  if (graph.inTime) {
    return path.length > 0 && path[0] < graph.count ? path[0] : 0;
  }
  let at = 0;
  let from = 1;
  for (const key of path) {
    let next = -1;
    for (let node = Math.max(from, at + 1); node < graph.count && next < 0; node++) {
      if (graph.parent[node] === at && graph.key[node] === key
        && (graph.totalSamples[node] > 0 || graph.totalPeriod[node] > 0)) {
        next = node;
      }
    }
    if (next < 0) {
      break;
    }
    at = next;
    from = next + 1;
  }
  return at;
}
