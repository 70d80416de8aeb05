// Changes of the call tree that a reader asks for: each turns a tree into another one.
//
// A transform is {type, arg}: a function, a binary, or a path of keys. Trees are those of `tree.js`; a node
// stands behind its parent, so each change is one pass.

import { findOutermost, functionOf } from './tree.js';

/** @import { Transform, TransformContext, TransformType, Tree } from './types.d.ts' */

/** Types by the letter that the address has for them.
 *  @type {Readonly<Record<string, TransformType>>} */
const TRANSFORM_LETTERS = { f: 'focus', s: 'subtree', m: 'merge', d: 'drop', r: 'recursion', c: 'library' };

/** Transforms that an address has at most. */
const MAX_TRANSFORMS = 100;
const MAX_SUBTREE_PATH = 4096;

const DROPPED = -1;

/** Transforms as text for the address.
 *  @param {readonly Transform[]} transforms */
export function encodeTransforms(transforms) {
  const letterOf = Object.fromEntries(Object.entries(TRANSFORM_LETTERS).map(([letter, type]) => [type, letter]));
  return transforms.map(({ type, arg }) => letterOf[type] + [arg].flat().map((key) => key.toString(36)).join('.')).join('-');
}

/** The transforms of an address; senseless ones are left out.
 *  @param {string} text
 *  @returns {Transform[]} */
export function decodeTransforms(text) {
  return text.split('-').slice(0, MAX_TRANSFORMS).flatMap((part) => {
    const type = TRANSFORM_LETTERS[part[0]];
    const keys = part.slice(1).split('.').slice(0, MAX_SUBTREE_PATH).map((key) => Number.parseInt(key, 36));
    const isSound = type !== undefined && keys.every((key) => key >= 0 && key < 2 ** 31);
    return isSound ? [{ type, arg: type === 'subtree' ? keys : keys[0] }] : [];
  });
}

/** A tree in the making: children are found by key. */
class Growth {
  /** @param {number} size
   *  @param {number} keyCount */
  constructor(size, keyCount) {
    this.keyCount = keyCount;
    this.count = 1;
    this.parent = new Int32Array(size);
    this.key = new Int32Array(size);
    this.depth = new Int32Array(size);
    this.folded = new Uint32Array(size);
    this.parent[0] = -1;
    this.key[0] = -1;
    /** @type {Map<number, number>} */
    this.known = new Map();
  }

  /** @param {number} above
   *  @param {number} key */
  child(above, key) {
    const slot = above * this.keyCount + key;
    let node = this.known.get(slot);
    if (node === undefined) {
      node = this.count++;
      this.known.set(slot, node);
      this.parent[node] = above;
      this.key[node] = key;
      this.depth[node] = this.depth[above] + 1;
    }
    return node;
  }
}

/** A tree, the one that grows, and the transform: `arg` is -1 and `path` empty where it has none.
 *  @typedef {TransformContext & { tree: Tree, growth: Growth, arg: number, path: number[] }} RuleInput */

/** Where the children of a node go, for each type: `place(node, above)` gives a node of the grown tree, or
 *  DROPPED. `above` is where the parent went.
 *  @type {Record<TransformType, (from: RuleInput) => (node: number, above: number) => number>} */
const RULES = {
  merge: ({ tree, arg, growth }) => (node, above) => (
    functionOf(tree.key[node]) === arg || above < 0 ? above : growth.child(above, tree.key[node])),

  drop: ({ tree, arg, growth }) => (node, above) => (
    functionOf(tree.key[node]) === arg || above < 0 ? DROPPED : growth.child(above, tree.key[node])),

  library: ({ tree, arg, growth, dsoOf, libraryKey }) => (node, above) => {
    /** @param {number} at */
    const isIn = (at) => at > 0 && dsoOf(tree.key[at]) === arg;
    if (above < 0) {
      return above;
    }
    if (!isIn(node)) {
      return growth.child(above, tree.key[node]);
    }
    return isIn(tree.parent[node]) ? above : growth.child(above, libraryKey(arg));
  },

  recursion: ({ tree, arg, growth }) => {
    // The outermost frame of the function on the way to each node.
    const seat = new Int32Array(tree.count).fill(-1);
    return (node, above) => {
      seat[node] = seat[tree.parent[node]];
      if (above < 0) {
        return above;
      }
      if (functionOf(tree.key[node]) !== arg) {
        return growth.child(above, tree.key[node]);
      }
      seat[node] = seat[node] >= 0 ? seat[node] : growth.child(above, tree.key[node]);
      return seat[node];
    };
  },

  focus: ({ tree, arg, growth, isGroup }) => {
    // The node that stacks begin below: the root, or that of their group.
    const top = new Int32Array(tree.count);
    return (node, above) => {
      const key = tree.key[node];
      top[node] = top[tree.parent[node]];
      if (above > 0 && above !== top[node]) {
        return growth.child(above, key);
      }
      if (isGroup(key)) {
        top[node] = growth.child(0, key);
        return DROPPED;
      }
      return functionOf(key) === arg ? growth.child(top[node], key) : DROPPED;
    };
  },

  subtree: ({ tree, path, growth }) => {
    const agrees = new Uint8Array(tree.count);
    agrees[0] = 1;
    return (node, above) => {
      if (tree.depth[node] > path.length) {
        return above < 0 ? DROPPED : growth.child(above, tree.key[node]);
      }
      agrees[node] = agrees[tree.parent[node]] && path[tree.depth[node] - 1] === tree.key[node] ? 1 : 0;
      return agrees[node] === 1 && tree.depth[node] === path.length ? growth.child(0, tree.key[node]) : DROPPED;
    };
  },
};

/** Stacks that end at the root keep their weight where only frames are taken out of stacks. */
const KEEPS_ROOT = { merge: true, drop: true, library: true, recursion: true, focus: false, subtree: false };

/** The tree after one transform. `context` has dsoOf(key), libraryKey(dso), isGroup(key) and
 *  functionCount, with all made-up functions.
 *  @param {Tree} tree
 *  @param {Transform} transform
 *  @param {TransformContext} context
 *  @returns {Tree} */
export function transformTree(tree, { type, arg }, context) {
  const growth = new Growth(tree.count + 1, context.functionCount * 2);
  const input = typeof arg === 'number' ? { arg, path: [] } : { arg: -1, path: arg };
  const place = RULES[type]({ tree, growth, ...input, ...context });
  const placeOf = new Int32Array(tree.count).fill(DROPPED);
  placeOf[0] = KEEPS_ROOT[type] ? 0 : DROPPED;
  for (let node = 1; node < tree.count; node++) {
    placeOf[node] = place(node, placeOf[tree.parent[node]]);
    if (placeOf[node] >= 0) {
      growth.folded[placeOf[node]] += tree.folded[node];
    }
  }
  const { count } = growth;
  const transformed = {
    count,
    parent: growth.parent.slice(0, count),
    key: growth.key.slice(0, count),
    depth: growth.depth.slice(0, count),
    folded: growth.folded.slice(0, count),
    rowNode: tree.rowNode.map((node) => (node < 0 ? DROPPED : placeOf[node])),
    cut: tree.cut,
  };
  return { ...transformed, outermost: findOutermost(transformed, context.functionCount) };
}
