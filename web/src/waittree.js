// The call tree of waits and CPU time for a selection of threads and a range of time: times are those of the event of
// CPU time and waits, counts are those of single waits. Knows nothing of the document.

import { ACTIVITIES } from './switches.js';
import { functionOf, isInlined, rowFilter } from './tree.js';

/** @import { BaseTree, SwitchTree, WaitInput } from './types.d.ts' */

/** Nodes of a tree at most; deeper ones count as the frames above them. */
const MAX_WAIT_NODES = 100_000;

const [WAIT_ACTIVITY, PREEMPT_ACTIVITY] = ['waiting', 'preempted'].map((wanted) => ACTIVITIES.findIndex(({ id }) => id === wanted));
const SUMS = ['cpuNs', 'waitNs', 'sync', 'preempt', 'lossy'];

/** Frames that stand for waits, by name (crates/read/whit-page/src/wall.rs). */
const PREEMPTED_FRAME = '[preempted]';
const LOSSY_FRAME = '[time that a loss touches]';

/** The part of a wait that its frame stands for: `sync`, `preempt`, `lossy`; null for frames of code.
 *  @param {string} name
 *  @param {string} kind */
export function waitPart(name, kind) {
  if (!['lock', 'io', 'page-fault', 'sleep', 'poll', 'queue', 'wait', 'run-queue'].includes(kind)) {
    return null;
  }
  return name === PREEMPTED_FRAME ? 'preempt' : name === LOSSY_FRAME ? 'lossy' : 'sync';
}

/** @param {number} count
 *  @returns {Record<string, Float64Array>} */
function emptySums(count) {
  return Object.fromEntries(SUMS.map((name) => [name, new Float64Array(count)]));
}

/** Adds the times of the selected rows to their stacks; `counts` adds those of waits as well.
 *  @param {Record<string, Float64Array>} own
 *  @param {Pick<WaitInput, 'base' | 'rows' | 'selection' | 'partOf' | 'foldedKey'> & { counts: boolean }} from */
function addRows(own, { base, rows, selection, partOf, foldedKey, counts }) {
  const selected = rowFilter(rows, selection);
  let foldedNs = 0;
  for (let row = 0; row < rows.node.length; row++) {
    const ns = rows.period[row];
    if (ns === 0 || !selected(row)) {
      continue;
    }
    const node = base.rowNode[row];
    const part = node === 0 ? null : partOf(base.key[node]);
    if (part === null && base.key[node] === foldedKey) {
      // Waits and CPU time of light stacks are one there.
      foldedNs += ns;
    } else if (part === null) {
      own.cpuNs[node] += ns;
    } else {
      const stack = base.parent[node];
      own.waitNs[stack] += part === 'lossy' ? 0 : ns;
      if (counts && part !== 'lossy') {
        own[part][stack] += rows.samples[row];
      }
    }
  }
  return foldedNs;
}

/** Adds the number of single waits with a part in the range; `lossyAlone` where the rows have counted the others.
 *  @param {Record<string, Float64Array>} own
 *  @param {Pick<WaitInput, 'base' | 'foldedKey' | 'timeline' | 'lanes' | 'within'> & { lossyAlone: boolean }} from */
function addSpans(own, { base, foldedKey, timeline, lanes, within: [from, to], lossyAlone }) {
  for (let i = 0; i < timeline.thread.length; i++) {
    const isIn = timeline.startNs[i] < to && timeline.startNs[i] + timeline.durationNs[i] > from;
    if (!isIn || timeline.node[i] === 0 || lanes[timeline.thread[i]] !== 1) {
      continue;
    }
    const at = base.nodeOf[timeline.node[i] - 1];
    if (base.key[at] === foldedKey) {
      // Its time is in no stack either.
      continue;
    }
    const stack = base.parent[at];
    if (timeline.lossy[i] > 0) {
      own.lossy[stack] += 1;
    } else if (!lossyAlone) {
      own.sync[stack] += timeline.activity[i] === WAIT_ACTIVITY ? 1 : 0;
      own.preempt[stack] += timeline.activity[i] === PREEMPT_ACTIVITY ? 1 : 0;
    }
  }
}

/** Sums of each stack of the merged tree, without those below it, and the time of folded stacks. `range` is null for
 *  all of the time; `within` is the range in the time of the lanes.
 *  @param {WaitInput} from */
export function waitSums({ base, rows, selection, partOf, foldedKey, timeline, lanes, range, within }) {
  const own = emptySums(base.count);
  const foldedNs = addRows(own, { base, rows, selection, partOf, foldedKey, counts: range === null });
  addSpans(own, { base, foldedKey, timeline, lanes, within, lossyAlone: range === null });
  return { own, foldedNs };
}

/** Stacks with any sum, those with the longest waits first.
 *  @param {Record<string, Float64Array>} own */
function heaviestFirst(own) {
  const nodes = [];
  for (let node = 0; node < own.cpuNs.length; node++) {
    if (SUMS.some((name) => own[name][node] > 0)) {
      nodes.push(node);
    }
  }
  return nodes.sort((a, b) => own.waitNs[b] - own.waitNs[a] || own.cpuNs[b] - own.cpuNs[a] || a - b);
}

/** The tree of these stacks from one end: `callee` begins where threads leave their CPUs, `caller` where they start.
 *  @param {BaseTree} base
 *  @param {Record<string, Float64Array>} own
 *  @param {string} direction
 *  @param {number} max */
function growTree(base, own, direction, max) {
  /** @type {{ parent: number[], key: number[], cut: number }} */
  const grown = { parent: [], key: [], cut: 0 };
  /** @type {Map<number, number>} */
  const known = new Map();
  const keys = base.key.reduce((most, key) => Math.max(most, key), 0) + 2;
  const ownOf = [];
  for (const stack of heaviestFirst(own)) {
    const way = [];
    // A stack without any frame is a row of its own.
    for (let node = stack; node > 0 || way.length === 0; node = base.parent[node]) {
      way.push(base.key[node]);
    }
    let at = -1;
    for (const key of direction === 'callee' ? way : way.reverse()) {
      const slot = (at + 1) * keys + key + 1;
      let next = known.get(slot);
      if (next === undefined) {
        if (grown.parent.length >= max) {
          grown.cut += 1;
          break;
        }
        next = grown.parent.push(at) - 1;
        grown.key.push(key);
        known.set(slot, next);
      }
      at = next;
    }
    ownOf.push([at, stack]);
  }
  return { ...grown, ownOf: ownOf.filter(([at]) => at >= 0) };
}

/** Numbers of the nodes: each subtree in one piece behind its parent, siblings by their waits.
 *  @param {number[]} parent
 *  @param {Record<string, Float64Array>} sums */
function treeOrder(parent, sums) {
  /** @type {number[][]} */
  const children = Array.from({ length: parent.length + 1 }, () => []);
  parent.forEach((above, node) => children[above + 1].push(node));
  /** @param {number} a
   *  @param {number} b */
  const heavier = (a, b) => sums.waitNs[b] - sums.waitNs[a] || sums.cpuNs[b] - sums.cpuNs[a] || a - b;
  const order = [];
  const work = children[0].sort(heavier).reverse();
  while (work.length > 0) {
    const node = /** @type {number} */ (work.pop());
    order.push(node);
    work.push(...children[node + 1].sort(heavier).reverse());
  }
  return order;
}

/** The tree in the form of those of the page's block (`decodeSwitches`). `nameOf(key)` names frames.
 *  @param {BaseTree} base
 *  @param {Record<string, Float64Array>} own
 *  @param {'callee' | 'caller'} direction
 *  @param {(key: number) => string} nameOf
 *  @returns {SwitchTree} */
export function waitTree(base, own, direction, nameOf, max = MAX_WAIT_NODES) {
  const { parent, key, cut, ownOf } = growTree(base, own, direction, max);
  const sums = emptySums(parent.length);
  for (const name of SUMS) {
    ownOf.forEach(([at, stack]) => {
      sums[name][at] += own[name][stack];
    });
    for (let node = parent.length - 1; node >= 0; node--) {
      if (parent[node] >= 0) {
        sums[name][parent[node]] += sums[name][node];
      }
    }
  }
  const order = treeOrder(parent, sums);
  const place = new Int32Array(parent.length);
  order.forEach((node, at) => {
    place[node] = at;
  });
  const children = new Uint32Array(parent.length);
  parent.forEach((above) => {
    if (above >= 0) {
      children[place[above]] += 1;
    }
  });
  /** @param {string} name */
  const inOrder = (name) => Float64Array.from(order, (node) => sums[name][node]);
  const none = new Float64Array(parent.length);
  return {
    parent: Int32Array.from(order, (node) => (parent[node] < 0 ? -1 : place[parent[node]])),
    children,
    nameOf: (node) => nameOf(key[order[node]]),
    cpuNs: inOrder('cpuNs'),
    waitNs: inOrder('waitNs'),
    sync: inOrder('sync'),
    preempt: inOrder('preempt'),
    lossy: inOrder('lossy'),
    open: none,
    throughout: none,
    leftOut: cut,
  };
}

/** The name of a key in the tree; an inlined function is marked as in the page's block.
 *  @param {number} key
 *  @param {(fn: number) => string} functionName */
export function waitFrameName(key, functionName) {
  return key < 0 ? '[no call stack]' : `${functionName(functionOf(key))}${isInlined(key) ? ' (inlined)' : ''}`;
}
