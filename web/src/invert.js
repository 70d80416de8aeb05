// Callers: the tree from the leaf up ("bottom-up"), and the callers of one function.
//
// Each node of the inverted graph holds a set of stacks that share their innermost frames; its
// children part that set by the next caller. The whole inverted tree can be far larger than the
// tree itself, so only nodes that can be seen are parted further, and the number of nodes is
// bounded.

import { ALL } from './tree.js';

/** @import { Graph, StackPart, Tree, Weights } from './types.d.ts' */

/** Nodes that an inverted graph has at most. */
export const MAX_INVERTED_NODES = 400_000;

/** Nodes below this share of the zoomed node are not parted: a quarter of a pixel at 4096. */
const SMALLEST_SHARE = 1 / 16384;

/** An array that grows.
 *  @template {Int32Array | Float64Array} N */
class Growing {
  /** @param {new (count: number) => N} Type */
  constructor(Type) {
    this.Type = Type;
    this.array = new Type(1024);
  }

  /** @param {number} index
   *  @param {number} value */
  set(index, value) {
    if (index >= this.array.length) {
      const larger = new this.Type(this.array.length * 2);
      larger.set(this.array);
      this.array = larger;
    }
    this.array[index] = value;
  }
}

/** Stacks to invert, and where each one's next frame is. */
class Stacks {
  /** @param {Tree} tree
   *  @param {ArrayLike<number>} cursors
   *  @param {ArrayLike<number>} samples
   *  @param {ArrayLike<number>} period */
  constructor(tree, cursors, samples, period) {
    this.tree = tree;
    this.cursor = Int32Array.from(cursors);
    this.samples = Float64Array.from(samples);
    this.period = Float64Array.from(period);
    this.scratch = [new Int32Array(cursors.length), new Float64Array(cursors.length), new Float64Array(cursors.length)];
    /** @type {Map<number, number>} */
    this.slotOf = new Map();
  }

  /** Parts the stacks [from, to) by the key of their next frame and moves each one frame on.
   *  Returns the parts {key, from, to, samples, period}; stacks that have no further frame are
   *  left in front, outside of all parts.
   *  @param {number} from
   *  @param {number} to
   *  @returns {StackPart[]} */
  part(from, to) {
    const { tree, cursor, samples, period, slotOf } = this;
    if (to - from === 1) {
      return this.#step(from);
    }
    const parts = [];
    let ended = 0;
    slotOf.clear();
    for (let i = from; i < to; i++) {
      if (cursor[i] <= 0) {
        ended += 1;
        continue;
      }
      const key = tree.key[cursor[i]];
      let slot = slotOf.get(key);
      if (slot === undefined) {
        slot = parts.length;
        slotOf.set(key, slot);
        parts.push({ key, from: 0, to: 0, samples: 0, period: 0 });
      }
      const part = parts[slot];
      part.to += 1;
      part.samples += samples[i];
      part.period += period[i];
    }
    let at = from + ended;
    for (const part of parts) {
      const size = part.to;
      part.from = part.to = at;
      at += size;
    }
    this.#distribute(from, to, parts);
    return parts;
  }

  /** A stack alone has nothing to part with.
   *  @param {number} at
   *  @returns {StackPart[]} */
  #step(at) {
    const node = this.cursor[at];
    if (node <= 0) {
      return [];
    }
    this.cursor[at] = this.tree.parent[node];
    return [{ key: this.tree.key[node], from: at, to: at + 1, samples: this.samples[at], period: this.period[at] }];
  }

  /** @param {number} from
   *  @param {number} to
   *  @param {StackPart[]} parts */
  #distribute(from, to, parts) {
    const { tree, cursor, samples, period, slotOf, scratch } = this;
    let front = from;
    for (let i = from; i < to; i++) {
      const ended = cursor[i] <= 0;
      const place = ended ? front++ : parts[/** @type {number} */ (slotOf.get(tree.key[cursor[i]]))].to++;
      scratch[0][place] = ended ? cursor[i] : tree.parent[cursor[i]];
      scratch[1][place] = samples[i];
      scratch[2][place] = period[i];
    }
    cursor.set(scratch[0].subarray(from, to), from);
    samples.set(scratch[1].subarray(from, to), from);
    period.set(scratch[2].subarray(from, to), from);
  }
}

/** Grows the graph of `stacks` below a node for all of them. */
class Inversion {
  /** @param {Stacks} stacks
   *  @param {{ path: readonly number[], byPeriod: boolean }} options */
  constructor(stacks, { path, byPeriod }) {
    this.stacks = stacks;
    this.path = path;
    this.byPeriod = byPeriod;
    this.count = 0;
    this.cut = false;
    this.parent = new Growing(Int32Array);
    this.key = new Growing(Int32Array);
    this.depth = new Growing(Int32Array);
    this.from = new Growing(Int32Array);
    this.to = new Growing(Int32Array);
    this.onPath = new Growing(Int32Array);
    this.totalSamples = new Growing(Float64Array);
    this.totalPeriod = new Growing(Float64Array);
  }

  /** @param {number} parent
   *  @param {StackPart} part */
  add(parent, part) {
    const node = this.count++;
    const depth = parent < 0 ? 0 : this.depth.array[parent] + 1;
    // A node is on the path where all keys so far agree: it is parted however small it is.
    const onPath = parent < 0
      || (this.onPath.array[parent] === 1 && depth <= this.path.length && this.path[depth - 1] === part.key);
    this.parent.set(node, parent);
    this.key.set(node, part.key);
    this.depth.set(node, depth);
    this.from.set(node, part.from);
    this.to.set(node, part.to);
    this.onPath.set(node, onPath ? 1 : 0);
    this.totalSamples.set(node, part.samples);
    this.totalPeriod.set(node, part.period);
    return node;
  }

  /** @param {number} node */
  weight(node) {
    return (this.byPeriod ? this.totalPeriod : this.totalSamples).array[node];
  }

  grow() {
    let smallest = this.weight(0) * SMALLEST_SHARE;
    for (let node = 0; node < this.count; node++) {
      const onPath = this.onPath.array[node] === 1;
      if (onPath) {
        // The zoomed node fills the width; small nodes are small in relation to it.
        smallest = Math.min(smallest, this.weight(node) * SMALLEST_SHARE);
      }
      if (!onPath && this.weight(node) < smallest) {
        continue;
      }
      for (const part of this.stacks.part(this.from.array[node], this.to.array[node])) {
        if (this.count >= MAX_INVERTED_NODES) {
          this.cut = true;
          break;
        }
        this.add(node, part);
      }
    }
  }

  graph() {
    /** @template {Int32Array | Float64Array} N
     *  @param {Growing<N>} growing */
    const of = (growing) => /** @type {N} */ (growing.array.slice(0, this.count));
    return {
      count: this.count,
      parent: of(this.parent),
      key: of(this.key),
      depth: of(this.depth),
      totalSamples: of(this.totalSamples),
      totalPeriod: of(this.totalPeriod),
      // Weight is at the leaf of the stack, which here is the outermost node: none is "self".
      selfSamples: null,
      selfPeriod: null,
      cut: this.cut,
    };
  }
}

/** @param {Tree} tree
 *  @param {number[]} starts
 *  @param {(node: number) => number} cursorOf
 *  @param {Float64Array} samples
 *  @param {Float64Array} period
 *  @param {{ path: readonly number[], byPeriod: boolean, rootKey: number }} options */
function invert(tree, starts, cursorOf, samples, period, options) {
  /** @param {Float64Array} weights */
  const weigh = (weights) => starts.map((node) => weights[node]);
  const stacks = new Stacks(tree, starts.map(cursorOf), weigh(samples), weigh(period));
  /** @param {Float64Array} weights */
  const sum = (weights) => weights.reduce((a, b) => a + b, 0);
  const inversion = new Inversion(stacks, options);
  inversion.add(-1, {
    key: options.rootKey,
    from: 0,
    to: starts.length,
    samples: sum(stacks.samples),
    period: sum(stacks.period),
  });
  inversion.grow();
  return inversion.graph();
}

/** @param {number} count
 *  @param {(node: number) => boolean} test */
function nodesWhere(count, test) {
  const nodes = [];
  for (let node = 0; node < count; node++) {
    if (test(node)) {
      nodes.push(node);
    }
  }
  return nodes;
}

/** All stacks from the leaf up. `path` leads to the zoomed node; with `byPeriod`, periods decide on
 * size, else samples.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @param {{ path?: readonly number[], byPeriod?: boolean }} [options]
 *  @returns {Graph} */
export function bottomUpGraph(tree, weights, { path = [], byPeriod = true } = {}) {
  const starts = nodesWhere(tree.count, (n) => weights.selfSamples[n] > 0 || weights.selfPeriod[n] > 0);
  const { selfSamples, selfPeriod } = weights;
  return invert(tree, starts, (node) => node, selfSamples, selfPeriod, { path, byPeriod, rootKey: ALL });
}

/** The callers of a function, from its outermost frames up; node 0 is the function.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @param {number} fn
 *  @param {{ path?: readonly number[], byPeriod?: boolean }} [options]
 *  @returns {Graph} */
export function callersGraph(tree, weights, fn, { path = [], byPeriod = true } = {}) {
  const starts = outermostNodes(tree, weights, fn);
  const { totalSamples, totalPeriod } = weights;
  const options = { path, byPeriod, rootKey: fn * 2 };
  return invert(tree, starts, (node) => tree.parent[node], totalSamples, totalPeriod, options);
}

/** Nodes of the function that have samples and no other frame of it further out.
 *  @param {Tree} tree
 *  @param {Weights} weights
 *  @param {number} fn */
export function outermostNodes(tree, weights, fn) {
  return nodesWhere(tree.count, (node) => node > 0 && tree.key[node] >> 1 === fn
    && tree.outermost[node] === 1 && (weights.totalSamples[node] > 0 || weights.totalPeriod[node] > 0));
}
