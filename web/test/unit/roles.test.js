// The roles of threads: work, the kernel's, the recorder's; and groups that are named and merged by them.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { firstGrouping, groupRows, usefulGroupings } from '../../src/grouping.js';
import { ROLES, recorders, threadRoles } from '../../src/roles.js';
import { axisSteps, cpuAxis } from '../../src/stripdata.js';
import { profileOf } from './profiles.js';

/** Functions 2 and 5 are the kernel's. */
const [USER, KERNEL] = [[0], [2]];

/** A profile of threads [pid, tid, name], each with rows of stacks. */
function machine(threads, rows, cmdline = ['whit', 'record']) {
  const comms = [...new Set(threads.map(([, , name]) => name))];
  return {
    ...profileOf(rows.map((row) => ({ samples: 1, comm: comms.indexOf(threads[row.thread][2]), ...row }))),
    comms,
    threads: threads.map(([pid, tid, name]) => ({ pid, tid, comm: comms.indexOf(name) })),
    recording: { cmdline },
  };
}

test('threads of the kernel have its code alone, a program has other code somewhere', () => {
  const profile = machine(
    [[0, 0, 'swapper'], [2, 2, 'kthreadd'], [7, 7, 'server'], [7, 8, 'server'], [9, 9, 'silent']],
    [{ thread: 1, stack: [KERNEL] }, { thread: 2, stack: [KERNEL] }, { thread: 2, stack: [USER, KERNEL] }, { thread: 3, stack: [USER] }, { thread: 4, stack: [] }],
  );
  assert.deepEqual([...threadRoles(profile)], [ROLES.kernel, ROLES.kernel, ROLES.work, ROLES.work, ROLES.work]);
});

test('the recorder is known by a thread that no other program of whit has', () => {
  const whit = [[5, 5, 'whit'], [5, 6, 'whit-reader-0'], [8, 8, 'whit'], [8, 9, 'whit-tables']];
  const profile = machine(whit, [{ thread: 0, stack: [USER] }, { thread: 2, stack: [USER] }]);
  assert.deepEqual([...recorders(profile)], [5]);
  assert.deepEqual([...threadRoles(profile)], [ROLES.recorder, ROLES.recorder, ROLES.work, ROLES.work]);
  const perf = [[5, 5, 'perf'], [6, 6, 'server']];
  assert.deepEqual([...recorders(machine(perf, [], ['/usr/bin/perf', 'record', '-a']))], [5]);
  assert.deepEqual([...recorders(machine(perf, []))], [], 'here perf is what was recorded');
});

test('processes of one program are one group, and the recorder is a group of its own', () => {
  const threads = [[5, 5, 'postgres'], [6, 6, 'postgres'], [6, 7, 'worker'], [8, 8, 'whit'], [8, 9, 'whit-reader-0'], [10, 10, 'whit']];
  const profile = machine(threads, threads.map((_, thread) => ({ thread, stack: [USER] })));
  const { groupOf, names } = groupRows(profile, profile.rows, 'program');
  assert.deepEqual(Array.from(groupOf, (group) => names[group]), ['postgres', 'postgres', 'postgres', 'whit, the recorder', 'whit, the recorder', 'whit']);
  assert.deepEqual(groupRows(profile, profile.rows, 'process').names, ['postgres (5)', 'postgres (6)', 'whit, the recorder (8)', 'whit (10)']);
  assert.equal(firstGrouping(usefulGroupings(profile)), 'program');
});

test('without two processes of one program, processes are the root; with one process, nothing is', () => {
  const groupings = (...threads) => firstGrouping(usefulGroupings(machine(threads, [])));
  assert.equal(groupings([5, 5, 'a'], [6, 6, 'b']), 'process');
  assert.equal(groupings([5, 5, 'a'], [6, 6, 'a']), 'program');
  assert.equal(groupings([5, 5, 'a'], [5, 6, 'b']), 'none');
});

test('an axis of CPUs ends at those of the machine, unless nothing would be seen', () => {
  assert.deepEqual(cpuAxis(1.2, 2), { top: 2, step: 1 });
  assert.equal(cpuAxis(0.3, 2).top, 2, 'an idle machine looks idle');
  assert.equal(cpuAxis(20, 64).top, 64);
  assert.deepEqual(cpuAxis(1, 64), axisSteps(1, 2));
  assert.deepEqual(cpuAxis(1, null), axisSteps(1, 2));
});
