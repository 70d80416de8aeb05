// The things that a graph can have at its root, and a strip of time can stack: processes, commands,
// threads, cgroups, CPUs.

/** @import { Profile, Rows } from './types.d.ts' */

/** Groupings of rows, with the name of one group. */
export const GROUPINGS = [
  { id: 'process', label: 'process' },
  { id: 'command', label: 'command' },
  { id: 'thread', label: 'thread' },
  { id: 'cgroup', label: 'cgroup' },
  { id: 'cpu', label: 'CPU' },
];

/** Number and name of each process: its main thread names it, else its first thread. */
function processNames({ threads, comms }) {
  const names = new Map();
  for (const { pid, tid, comm } of threads) {
    if (!names.has(pid) || tid === pid) {
      names.set(pid, pid < 0 ? comms[comm] : `${comms[comm]} (${pid})`);
    }
  }
  return names;
}

const threadName = (profile, { tid, comm }) => (
  tid < 0 ? profile.comms[comm] : `${profile.comms[comm]} (${tid})`);

/** The group of each row, and the groups' names. Groups that are unlike but have one name stay apart.
 *  @param {Profile} profile
 *  @param {Rows} rows
 *  @param {string} by
 *  @returns {{ groupOf: Int32Array, names: string[], ids: any[] }} */
export function groupRows(profile, rows, by) {
  const { threads, comms, cgroups } = profile;
  const processes = by === 'process' ? processNames(profile) : null;
  const [idOf, nameOf] = {
    none: [() => 0, () => ''],
    process: [(row) => threads[rows.thread[row]].pid, (pid) => processes?.get(pid)],
    command: [(row) => comms[rows.comm[row]], (name) => name],
    thread: [(row) => rows.thread[row], (thread) => threadName(profile, threads[thread])],
    cgroup: [(row) => rows.cgroup[row], (cgroup) => (cgroup === 0 ? '(no cgroup)' : cgroups[cgroup - 1])],
    cpu: [(row) => rows.cpu?.[row] ?? 0, (cpu) => (cpu === 0 ? '(CPU not recorded)' : `CPU ${cpu - 1}`)],
  }[by];
  const numbers = new Map();
  const groupOf = new Int32Array(rows.node.length);
  for (let row = 0; row < groupOf.length; row++) {
    const id = idOf(row);
    let number = numbers.get(id);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(id, number);
    }
    groupOf[row] = number;
  }
  return { groupOf, names: [...numbers.keys()].map(nameOf), ids: [...numbers.keys()] };
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
