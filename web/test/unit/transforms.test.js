// Groups at the root and transforms, against stacks changed one by one.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DEFAULT_STATE, decodeState, encodeState } from '../../src/state.js';
import { Model } from '../../src/model.js';
import { pathTo } from '../../src/tree.js';
import { forRandomProfiles, profileOf, sumOf } from './profiles.js';

/** Stacks and their samples, as the model's tree has them: keys from the root, `/` between. */
function stacksOf(model) {
  const stacks = {};
  for (let node = 0; node < model.tree.count; node++) {
    if (model.weights.selfSamples[node] > 0) {
      stacks[pathTo(model.tree, node).join('/')] = model.weights.selfSamples[node];
    }
  }
  return stacks;
}

const keysOf = ({ stack }) => stack.map(([fn, inlined]) => fn * 2 + inlined);
const dsoOf = (fn) => (fn % 3 === 2 ? 1 : 0);

/** The same change, stack by stack; null drops a stack. */
const CHANGES = {
  focus: (keys, fn) => {
    const at = keys.findIndex((key) => key >> 1 === fn);
    return at < 0 ? null : keys.slice(at);
  },
  subtree: (keys, path) => (path.every((key, i) => keys[i] === key) ? keys.slice(path.length - 1) : null),
  merge: (keys, fn) => keys.filter((key) => key >> 1 !== fn),
  drop: (keys, fn) => (keys.some((key) => key >> 1 === fn) ? null : keys),
  recursion: (keys, fn) => {
    const first = keys.findIndex((key) => key >> 1 === fn);
    const last = keys.findLastIndex((key) => key >> 1 === fn);
    return first < 0 ? keys : [...keys.slice(0, first + 1), ...keys.slice(last + 1)];
  },
  library: (keys, dso, functions) => keys.flatMap((key, i) => {
    if (dsoOf(key >> 1) !== dso) {
      return [key];
    }
    return i > 0 && dsoOf(keys[i - 1] >> 1) === dso ? [] : [(functions + dso) * 2];
  }),
};

function expected(rows, transforms, functions) {
  const stacks = {};
  for (const row of rows.filter(({ event }) => event === 0)) {
    const change = (keys, { type, arg }) => (keys === null ? null : CHANGES[type](keys, arg, functions));
    const keys = transforms.reduce(change, keysOf(row));
    if (keys !== null) {
      stacks[keys.join('/')] = (stacks[keys.join('/')] ?? 0) + row.samples;
    }
  }
  return stacks;
}

const SINGLE = [
  { type: 'focus', arg: 1 }, { type: 'subtree', arg: [2] }, { type: 'subtree', arg: [2, 4] }, { type: 'merge', arg: 2 },
  { type: 'drop', arg: 3 }, { type: 'recursion', arg: 1 }, { type: 'library', arg: 0 }, { type: 'library', arg: 1 },
];

test('each transform changes stacks as it says', () => {
  forRandomProfiles((profile, rows, seed) => {
    const model = new Model(profile);
    for (const transform of SINGLE) {
      model.select({ ...DEFAULT_STATE, transforms: [transform] });
      assert.deepEqual(stacksOf(model), expected(rows, [transform], 8), `${seed} ${JSON.stringify(transform)}`);
    }
  });
});

test('transforms apply in their order, and taking the last one back leaves the others', () => {
  const transforms = [{ type: 'merge', arg: 2 }, { type: 'recursion', arg: 1 }, { type: 'focus', arg: 1 }];
  forRandomProfiles((profile, rows, seed) => {
    const model = new Model(profile);
    for (const count of [3, 2, 3, 1, 0]) {
      const some = transforms.slice(0, count);
      model.select({ ...DEFAULT_STATE, transforms: some });
      assert.deepEqual(stacksOf(model), expected(rows, some, 8), `${seed} ${count}`);
    }
  });
});

test('groups at the root part stacks and keep their sums', () => {
  forRandomProfiles((profile, rows, seed) => {
    const model = new Model(profile);
    for (const root of ['process', 'thread', 'command']) {
      model.select({ ...DEFAULT_STATE, root });
      const { graph, weight } = model.graph('top-down', []);
      const roots = [...graph.key.keys()].filter((node) => graph.parent[node] === 0);
      assert.ok(roots.every((node) => model.isGroup(graph.key[node])), seed);
      const ofEvent = rows.filter(({ event }) => event === 0);
      assert.equal(sumOf(roots, (node) => weight[node]), sumOf(ofEvent, (row) => row.period));
      const names = new Set(roots.filter((node) => graph.totalSamples[node] > 0).map((node) => model.nodeName(graph, node)));
      const wanted = new Set(ofEvent.map(({ thread, comm }) => ({
        process: `comm0 (${10 + (thread >> 1)})`, thread: `comm${thread % 2} (${10 + thread})`, command: `comm${comm}`,
      })[root]));
      assert.deepEqual([...names].sort(), [...wanted].sort(), `${seed} ${root}`);
      // A focus leaves each group its own stacks.
      model.select({ ...DEFAULT_STATE, root, transforms: [{ type: 'focus', arg: 1 }] });
      const focused = expected(ofEvent, [{ type: 'focus', arg: 1 }], 8);
      assert.equal(model.weights.totalSamples[0], sumOf(Object.values(focused), (samples) => samples), `${seed} ${root}`);
    }
  });
});

test('the address holds transforms and range, and takes no nonsense', () => {
  const transforms = [{ type: 'subtree', arg: [70, 4] }, { type: 'library', arg: 3 }, { type: 'focus', arg: 1295 }];
  const state = { ...DEFAULT_STATE, transforms, range: [12_000_000_000, 31_500_000_001], root: 'cpu', order: 'time' };
  assert.deepEqual(decodeState(`#${encodeState(state)}`), state);
  assert.match(encodeState(state), /t=s1y\.4-c3-fzz/);
  const left = decodeState('#t=x1-f-fz.!-m~-d3&range=9-3&root=moon');
  assert.deepEqual([left.transforms, left.range, left.root], [[{ type: 'drop', arg: 3 }], null, 'none']);
  assert.equal(decodeState('#range=1e9-2').range, null);
});

test('transforms with arguments of another recording do no harm', () => {
  const model = new Model(profileOf([{ stack: [[1], [2]], samples: 3 }]));
  const foreign = ['focus', 'merge', 'drop', 'recursion', 'library'].map((type) => ({ type, arg: 99_999 }));
  foreign.push({ type: 'subtree', arg: [99_999, 1] });
  for (const transform of foreign) {
    model.select({ ...DEFAULT_STATE, transforms: [transform] });
    const isKept = !['focus', 'subtree'].includes(transform.type);
    assert.equal(model.weights.totalSamples[0], isKept ? 3 : 0, transform.type);
  }
});
