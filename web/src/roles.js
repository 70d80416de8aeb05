// The roles of threads: work, the recorder's own, or the kernel's. Knows nothing of the document.

/** @import { Profile } from './types.d.ts' */

/** The numbers that `threadRoles` gives. */
export const ROLES = /** @type {const} */ ({ work: 0, kernel: 1, recorder: 2 });

/** Where the outermost frames of a thread are, as bits. */
const [IN_KERNEL, OUTSIDE] = [1, 2];

/** Threads of `whit record` that no other program of whit has (crates/record/whit-capture names them). */
const READER = /^whit-reader-\d+$/;

/** File name of a path.
 *  @param {string} path */
const fileName = (path) => path.slice(path.lastIndexOf('/') + 1);

/** Ids of the processes that recorded: those with a reader's thread, and perf in a recording that perf made.
 *  @param {Pick<Profile, 'threads' | 'comms'> & { recording?: Pick<Profile['recording'], 'cmdline'> }} profile
 *  @returns {Set<number>} */
export function recorders({ threads, comms, recording }) {
  const isPerf = fileName(recording?.cmdline[0] ?? '') === 'perf';
  const own = threads.filter(({ pid, tid, comm }) => (
    pid >= 0 && (READER.test(comms[comm]) || (isPerf && tid === pid && comms[comm] === 'perf'))));
  return new Set(own.map(({ pid }) => pid));
}

/** The role of each thread. A thread of the kernel has stacks, and none of them has code outside of the kernel; the idle
 *  task is one, too.
 *  @param {Pick<Profile, 'threads' | 'comms' | 'rows' | 'nodes' | 'frames' | 'functions' | 'dsos'> & { recording?: Pick<Profile['recording'], 'cmdline'> }} profile
 *  @returns {Uint8Array} */
export function threadRoles(profile) {
  const { threads, rows, nodes, frames, functions, dsos } = profile;
  // The outermost frame says it. That of a wait alone, without a stack, says nothing.
  /** @type {Record<string, number>} */
  const places = { kernel: IN_KERNEL, module: IN_KERNEL, elf: OUTSIDE, vdso: OUTSIDE, jit: OUTSIDE, unknown: OUTSIDE };
  const place = new Uint8Array(nodes.parent.length);
  nodes.parent.forEach((parent, node) => {
    const kind = dsos[functions.dso[frames.function[nodes.frame[node]]]].kind;
    place[node] = parent >= 0 ? place[parent] : places[kind] ?? 0;
  });
  const seen = new Uint8Array(threads.length);
  rows.node.forEach((node, row) => {
    if (node >= 0) {
      seen[rows.thread[row]] |= place[node];
    }
  });
  const own = recorders(profile);
  return Uint8Array.from(threads, ({ pid }, thread) => {
    const isOfKernel = pid === 0 || seen[thread] === IN_KERNEL;
    return own.has(pid) ? ROLES.recorder : isOfKernel ? ROLES.kernel : ROLES.work;
  });
}
