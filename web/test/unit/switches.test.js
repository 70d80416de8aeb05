// Context switches: trees that open, spans that are found.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { ACTIVITIES, decodeSwitches, onlyWay, shownNodes, spanAt } from '../../src/switches.js';

const html = readFileSync(join(process.env.WHIT_TEST_PAGES, 'waits.html'), 'utf8');
const [, json] = /<script type="application\/json" id="profile">([^<]*)<\/script>/.exec(html);
const page = JSON.parse(json);
const switches = decodeSwitches(page.switches);
const MS = 1e6;

const lines = (direction, opened) => {
  const tree = switches.trees[direction];
  return shownNodes(tree, opened).map(({ node, depth }) => `${' '.repeat(depth)}${tree.nameOf(node)}`);
};

test('the page begins with its waits', () => {
  assert.equal(page.startView, 'switches');
  assert.match(switches.facts.join('\n'), /18 \(9 sync, 9 preemption\)/);
});

test('a tree shows what is opened', () => {
  assert.deepEqual(lines('callee', new Set()), ['schedule', 'compute']);
  assert.deepEqual(lines('callee', new Set([0])), ['schedule', ' futex_wait', ' irqentry_exit', 'compute']);
  // What is open below a closed one is not in view.
  assert.deepEqual(lines('callee', new Set([1])), ['schedule', 'compute']);
  const tree = switches.trees.callee;
  assert.deepEqual([tree.sync[0], tree.preempt[0], tree.lossy[0], tree.waitNs[0]], [9, 9, 1, 100 * MS]);
  assert.deepEqual(lines('caller', new Set()), ['start_thread']);
});

test('one way is opened to its end', () => {
  const { callee, caller } = switches.trees;
  assert.deepEqual(onlyWay(callee, 0), [0]);
  const names = onlyWay(callee, 1).map((node) => callee.nameOf(node));
  assert.deepEqual(names, ['futex_wait', 'do_syscall_64', 'syscall', 'await_turn', 'start_thread']);
  assert.deepEqual(onlyWay(caller, 0), [0]);
});

test('the span under a moment', () => {
  const { timeline } = switches;
  assert.deepEqual(timeline.threads, ['pingpong 11', 'pingpong 12', 'pingpong 13']);
  const at = (thread, ms) => {
    const index = spanAt(timeline, thread, ms * MS);
    return index < 0 ? null : ACTIVITIES[timeline.activity[index]].id;
  };
  assert.deepEqual([at(0, 5), at(0, 15), at(0, 25)], ['running', 'waiting', 'running']);
  assert.deepEqual([at(1, 5), at(1, 10.5), at(1, 109)], [null, 'running', 'waiting']);
  assert.deepEqual([at(2, 49), at(2, 55), at(2, 99), at(2, 105)], ['running', 'preempted', 'mixed', null]);
  const lossy = spanAt(timeline, 2, 55 * MS);
  assert.equal(timeline.lossy[lossy], 1);
  assert.match(timeline.reasons[timeline.reason[lossy] - 1], /^schedule ← irqentry_exit ← compute/);
});

test('the wakers of a thread, each once', () => {
  const { timeline } = switches;
  const { wakers } = timeline;
  assert.deepEqual(wakers.names, ['pingpong 12', 'an interrupt of pingpong 13', 'pingpong 11']);
  const woken = (thread, ms) => {
    const index = spanAt(timeline, thread, ms * MS);
    const waker = timeline.waker[index] - 1;
    const reason = wakers.reason[waker];
    return waker < 0 ? null : [wakers.names[wakers.name[waker]], reason > 0 ? timeline.reasons[reason - 1] : '', timeline.blockedNs[index] / MS];
  };
  const stack = 'try_to_wake_up ← futex_wake ← do_syscall_64 ← syscall ← pass_token ← start_thread';
  assert.deepEqual(woken(0, 15), ['pingpong 12', stack, 9]);
  assert.deepEqual(woken(1, 25), ['pingpong 11', stack, 9]);
  assert.deepEqual(woken(0, 35), ['an interrupt of pingpong 13', '', 9]);
  // Who ran, was preempted, or waits until the end without being woken.
  assert.deepEqual([woken(0, 5), woken(2, 55), woken(0, 95)], [null, null, null]);
  assert.equal(timeline.reasons.filter((reason) => reason === stack).length, 1);
});
