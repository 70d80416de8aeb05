// The things that a graph can have at its root, and a strip of time can stack: programs, processes, commands,
// threads, cgroups, CPUs.

import { recorders } from './roles.js';

/** @import { GroupingId, Profile, Rows } from './types.d.ts' */

/** Groupings of rows, with the name of one group.
 *  @type {readonly { id: GroupingId, label: string }[]} */
export const GROUPINGS = [
  { id: 'program', label: 'program' },
  { id: 'process', label: 'process' },
  { id: 'command', label: 'command' },
  { id: 'thread', label: 'thread' },
  { id: 'cgroup', label: 'cgroup' },
  { id: 'cpu', label: 'CPU' },
];

/** Name of each process: that of its main thread, else of its first thread. The recorder is marked.
 *  @param {Pick<Profile, 'threads' | 'comms'> & { recording?: Pick<Profile['recording'], 'cmdline'> }} profile */
function programNames(profile) {
  const { threads, comms } = profile;
  const own = recorders(profile);
  /** @type {Map<number, string>} */
  const names = new Map();
  for (const { pid, tid, comm } of threads) {
    if (!names.has(pid) || tid === pid) {
      names.set(pid, own.has(pid) ? `${comms[comm]}, the recorder` : comms[comm]);
    }
  }
  return names;
}

/** @param {Profile} profile
 *  @param {{ tid: number, comm: number }} thread */
const threadName = (profile, { tid, comm }) => (
  tid < 0 ? profile.comms[comm] : `${profile.comms[comm]} (${tid})`);

/** The group of a row and its name, for each kind of groups.
 *  @param {Profile} profile
 *  @param {Rows} rows
 *  @returns {Record<string, { idOf: (row: number) => number | string, nameOf: (row: number) => string }>} */
function groupings(profile, { thread, comm, cgroup, cpu }) {
  const { threads, comms, cgroups } = profile;
  const programs = programNames(profile);
  /** @param {number} row */
  const pidOf = (row) => threads[thread[row]].pid;
  /** @param {number} row */
  const programOf = (row) => programs.get(pidOf(row)) ?? '';
  /** @param {number} row */
  const cpuOf = (row) => cpu?.[row] ?? 0;
  return {
    none: { idOf: () => 0, nameOf: () => '' },
    program: { idOf: programOf, nameOf: programOf },
    process: { idOf: pidOf, nameOf: (row) => (pidOf(row) < 0 ? programOf(row) : `${programOf(row)} (${pidOf(row)})`) },
    command: { idOf: (row) => comms[comm[row]], nameOf: (row) => comms[comm[row]] },
    thread: { idOf: (row) => thread[row], nameOf: (row) => threadName(profile, threads[thread[row]]) },
    cgroup: { idOf: (row) => cgroup[row], nameOf: (row) => (cgroup[row] === 0 ? '(no cgroup)' : cgroups[cgroup[row] - 1]) },
    cpu: { idOf: cpuOf, nameOf: (row) => (cpuOf(row) === 0 ? '(CPU not recorded)' : `CPU ${cpuOf(row) - 1}`) },
  };
}

/** The group of each row, and the groups' names. Groups that are unlike but have one name stay apart.
 *  @param {Profile} profile
 *  @param {Rows} rows
 *  @param {string} by */
export function groupRows(profile, rows, by) {
  const { idOf, nameOf } = groupings(profile, rows)[by];
  /** @type {Map<number | string, number>} */
  const numbers = new Map();
  /** @type {string[]} */
  const names = [];
  const groupOf = new Int32Array(rows.node.length);
  for (let row = 0; row < groupOf.length; row++) {
    const id = idOf(row);
    let number = numbers.get(id);
    if (number === undefined) {
      number = names.push(nameOf(row)) - 1;
      numbers.set(id, number);
    }
    groupOf[row] = number;
  }
  return { groupOf, names };
}

/** The groupings that tell anything apart in this profile.
 *  @param {Profile} profile */
export function usefulGroupings(profile) {
  const { threads, comms, rows, moments } = profile;
  const programs = programNames(profile);
  const useful = {
    // Where each program has one process, that says the same.
    program: new Set(programs.values()).size < programs.size,
    process: programs.size > 1,
    command: comms.length > 1,
    thread: threads.length > 1,
    cgroup: rows.cgroup.some((cgroup) => cgroup > 0),
    cpu: moments?.hasCpus ?? false,
  };
  return GROUPINGS.filter(({ id }) => useful[id]);
}

/** The grouping that a graph begins with, as far as there is one: programs are not merged at their first function, and
 *  the processes of one program are.
 *  @param {readonly { id: GroupingId }[]} groupings
 *  @returns {string} */
export function firstGrouping(groupings) {
  return groupings.find(({ id }) => id === 'program' || id === 'process')?.id ?? 'none';
}
