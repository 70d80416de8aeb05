// Waits by call site, and the groups that they are in.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ROLES } from '../../src/roles.js';
import { siteRows } from '../../src/sitetable.js';
import { longestWaits, timeOnCpu } from '../../src/switches.js';
import { WAIT_GROUPS, isHiddenGroup, waitGroup, waitSites } from '../../src/waitsites.js';

const [RUNNING, , WAITING, MIXED] = [0, 1, 2, 3];
/** [lane, activity, start, length, class, node] in a time line of 100 ns. */
function timelineOf(spans, { lanes = 4, classes = ['lock', 'poll', 'other'] } = {}) {
  const column = (at) => Float64Array.from(spans, (span) => span[at] ?? 0);
  return {
    threads: Array.from({ length: lanes }, (_, lane) => `t${lane}`),
    ids: Array.from({ length: lanes }, (_, lane) => ({ pid: 10 + lane, tid: 10 + lane, comm: `c${lane}` })),
    classes, spanNs: 100,
    thread: column(0), activity: column(1), startNs: column(2), durationNs: column(3), class: column(4), node: column(5),
    partsNs: [Float64Array.from(spans, ([, activity, , length]) => (activity === MIXED ? length / 4 : 0))],
  };
}

/** Functions [name, kind of binary, binary]; stacks of their numbers, outermost first; rows {thread, comm, stack, ns, count}. */
function waits(functions, rows) {
  const [parent, frame] = [[], []];
  const known = new Map();
  const nodeOf = (stack) => stack.reduce((above, fn) => {
    const slot = `${above} ${fn}`;
    if (!known.has(slot)) {
      frame.push(fn);
      known.set(slot, parent.push(above) - 1);
    }
    return known.get(slot);
  }, -1);
  const node = Int32Array.from(rows, ({ stack }) => nodeOf(stack));
  const numbers = (of) => Float64Array.from(rows, of);
  const profile = {
    comms: ['server', 'kworker'],
    threads: Array.from({ length: 4 }, (_, i) => ({ pid: 10 + i, tid: 10 + i, comm: 0 })),
    functions: { names: functions.map(([name]) => name), dso: Int32Array.from(functions.keys()), known: new Uint8Array(functions.length).fill(1) },
    dsos: functions.map(([, kind, name = 'server']) => ({ kind, name, path: name })),
    frames: { function: Int32Array.from(functions.keys()) },
    nodes: { parent: Int32Array.from(parent), frame: Int32Array.from(frame) },
  };
  const table = { event: new Int32Array(rows.length), thread: Int32Array.from(rows, ({ thread }) => thread), comm: Int32Array.from(rows, ({ comm = 0 }) => comm), cgroup: new Int32Array(rows.length), node, period: numbers(({ ns }) => ns), samples: numbers(({ count = 1 }) => count) };
  return { profile, rows: table };
}

const FUNCTIONS = [['main', 'elf'], ['take', 'elf'], ['mutex_lock', 'elf', 'libc.so.6'], ['futex_wait', 'kernel'], ['schedule', 'kernel'], ['[lock wait]', 'lock'],
  ['[poll wait]', 'poll'], ['[run queue]', 'run-queue'], ['[time that a loss touches]', 'wait'], ['kthread', 'kernel'], ['[other wait]', 'wait'], ['give', 'elf']];
const ROWS = [
  { thread: 0, stack: [0, 1, 2, 3, 4, 5], ns: 30, count: 2 },
  { thread: 1, stack: [0, 1, 2, 3, 4, 5], ns: 12 },
  { thread: 0, stack: [0, 11, 2, 3, 4, 5], ns: 20 },
  { thread: 0, stack: [0, 2, 4, 6], ns: 900 },
  { thread: 0, stack: [0, 1, 7], ns: 5 },
  { thread: 1, stack: [0, 7], ns: 6 },
  { thread: 0, stack: [0, 8], ns: 7 },
  { thread: 2, comm: 1, stack: [9, 4, 5], ns: 800 },
  { thread: 3, stack: [0, 1, 4, 5], ns: 700 },
  { thread: 1, stack: [0, 4, 10], ns: 3 },
];
const ROLE_LIST = Uint8Array.of(ROLES.work, ROLES.work, ROLES.kernel, ROLES.recorder);

function sitesOf(threads = null, timeline = timelineOf([])) {
  const { profile, rows } = waits(FUNCTIONS, ROWS);
  return waitSites(profile, { rows, selection: { event: 0, threads, comms: null }, timeline, lanes: Uint8Array.of(1, 1, 1, 1), roles: ROLE_LIST, within: [0, 100], isFolded: () => false });
}

test('waits are sums by class, command and call site; those that held work up come first', () => {
  const { sites, lossyNs, foldedNs } = sitesOf();
  const shown = sites.map(({ group, class: name, ns, count, threads, chain }) => [WAIT_GROUPS[group], name, ns, count, threads, chain.join(' ← ')]);
  assert.deepEqual(shown, [
    ['held work up', 'lock', 42, 3, 2, 'take ← main'],
    ['held work up', 'lock', 20, 1, 1, 'give ← main'],
    ['held work up', 'CPU', 11, 2, 2, ''],
    ['of unknown kind', 'other', 3, 1, 1, 'main'],
    ['idle loops', 'poll', 900, 1, 1, 'main'],
    ['threads of the kernel', 'lock', 800, 1, 1, 'kthread'],
    ['the recorder', 'lock', 700, 1, 1, 'take ← main'],
  ]);
  assert.deepEqual([lossyNs, foldedNs], [7, 0]);
  assert.deepEqual(sitesOf(Uint8Array.of(0, 1, 0, 0)).sites.map(({ ns }) => ns), [12, 6, 3], 'the selection counts alone');
});

test('a site has its longest single wait', () => {
  const { rows } = waits(FUNCTIONS, ROWS);
  const timeline = timelineOf([[0, WAITING, 0, 10, 1, rows.node[0] + 1], [0, WAITING, 20, 15, 1, rows.node[0] + 1], [1, WAITING, 40, 12, 1, rows.node[1] + 1]]);
  const [take, give] = sitesOf(null, timeline).sites;
  assert.deepEqual([take.longest, give.longest], [1, -1]);
});

test('a wait throughout is idle, one for a lock is a hang', () => {
  assert.equal(WAIT_GROUPS[waitGroup(ROLES.work, 'pipe', true)], 'idle loops');
  assert.equal(WAIT_GROUPS[waitGroup(ROLES.work, 'pipe', false)], 'held work up');
  assert.equal(WAIT_GROUPS[waitGroup(ROLES.work, 'lock', true)], 'held work up');
  for (const name of ['sleep', 'poll', 'idle-loop', 'peer', 'queue', 'child', 'join']) {
    assert.equal(WAIT_GROUPS[waitGroup(ROLES.work, name, false)], 'idle loops', name);
  }
});

test('groups behind the first have a title, and are hidden by choice', () => {
  const { sites } = sitesOf();
  const titles = (state) => siteRows(sites, state).flatMap(({ title }) => title ?? []);
  assert.deepEqual(titles({ hideIdle: false, hideKernel: false }), ['Of unknown kind: 1 call site, 3 ns', 'Idle loops: 1 call site, 900 ns', 'Threads of the kernel: 1 call site, 800 ns', 'The recorder: 1 call site, 700 ns']);
  assert.deepEqual(titles({ hideIdle: true, hideKernel: true }), ['Of unknown kind: 1 call site, 3 ns', 'The recorder: 1 call site, 700 ns']);
  assert.ok(isHiddenGroup(2, { hideIdle: true, hideKernel: false }) && !isHiddenGroup(0, { hideIdle: true, hideKernel: true }));
});

test('the longest waits stand group by group, and hidden groups are left out', () => {
  const timeline = timelineOf([[0, WAITING, 0, 90, 2, 0], [1, WAITING, 0, 5, 1, 0], [2, WAITING, 0, 95, 1, 0]]);
  const groups = [2, 0, 3];
  const of = (groupOf) => longestWaits(timeline, null, [0, 100], { groupOf });
  assert.deepEqual(of((span) => groups[span]), { waits: [1, 0, 2], count: 3 });
  assert.deepEqual(of((span) => (groups[span] === 2 ? -1 : groups[span])), { waits: [1, 2], count: 2 });
});

test('the time on a CPU is that of runs and of parts of joined intervals', () => {
  assert.deepEqual([...timeOnCpu(timelineOf([[0, RUNNING, 0, 10], [0, MIXED, 10, 40], [1, WAITING, 0, 100]]))], [20, 0, 0, 0]);
});
