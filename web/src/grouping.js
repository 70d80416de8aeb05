// The things that a graph can have at its root, and a strip of time can stack: processes, commands,
// threads, cgroups, CPUs.

/** @import { GroupingId, Profile, Rows } from './types.d.ts' */

/** Groupings of rows, with the name of one group.
 *  @type {readonly { id: GroupingId, label: string }[]} */
export const GROUPINGS = [
  { id: 'process', label: 'process' },
  { id: 'command', label: 'command' },
  { id: 'thread', label: 'thread' },
  { id: 'cgroup', label: 'cgroup' },
  { id: 'cpu', label: 'CPU' },
];

/** Number and name of each process: its main thread names it, else its first thread.
 *  @param {Profile} profile */
function processNames({ threads, comms }) {
  /** @type {Map<number, string>} */
  const names = new Map();
  for (const { pid, tid, comm } of threads) {
    if (!names.has(pid) || tid === pid) {
      names.set(pid, pid < 0 ? comms[comm] : `${comms[comm]} (${pid})`);
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
  const processes = processNames(profile);
  /** @param {number} row */
  const cpuOf = (row) => cpu?.[row] ?? 0;
  return {
    none: { idOf: () => 0, nameOf: () => '' },
    process: { idOf: (row) => threads[thread[row]].pid, nameOf: (row) => processes.get(threads[thread[row]].pid) ?? '' },
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
export function usefulGroupings({ threads, comms, rows, moments }) {
  const useful = {
    process: new Set(threads.map(({ pid }) => pid)).size > 1,
    command: comms.length > 1,
    thread: threads.length > 1,
    cgroup: rows.cgroup.some((cgroup) => cgroup > 0),
    cpu: moments?.hasCpus ?? false,
  };
  return GROUPINGS.filter(({ id }) => useful[id]);
}
