// Waits by class and call site, in groups: those that held work up stand before idle loops, threads of the kernel and the
// recorder. Knows nothing of the document.

import { ROLES } from './roles.js';
import { isThroughout } from './switches.js';
import { rowFilter } from './tree.js';
import { waitPart } from './waittree.js';

/** @import { Profile, Rows, SampleChoice, TimelineData, TimeRange, WaitSite } from './types.d.ts' */

/** Groups in their order. */
export const WAIT_GROUPS = /** @type {const} */ (['held work up', 'of unknown kind', 'idle loops', 'threads of the kernel', 'the recorder']);
const [HELD, UNKNOWN, IDLE, KERNEL, RECORDER] = WAIT_GROUPS.keys();
/** Classes in which a thread waits for work or for a time (`idle` of `--not-class`). */
const IDLE_CLASSES = new Set(['sleep', 'poll', 'idle-loop', 'peer', 'queue', 'child', 'join']);
const UNKNOWN_CLASSES = new Set(['other', 'unknown', '']);
/** Functions of a call site that tell it from others, and those that its text has. */
const [SITE_FUNCTIONS, TEXT_FUNCTIONS] = [3, 12];
/** Files of the C library, whose wrappers stand on every wait (crates/read/whit-page/src/timeline.rs has the same). */
const C_LIBRARY = /^(libc\.so|libc-|libpthread|ld-)/;
/** Functions on the stack of each thread that leaves its CPU. */
const SCHEDULER = /^(__)?schedule(_\w+)?$/;
/** The class of waits for a CPU. */
export const CPU_CLASS = 'CPU';

/** The group of a wait of a thread in this role. A wait from the beginning to the end is idle, unless it is for a lock:
 *  then the thread hangs.
 *  @param {number} role
 *  @param {string} name of the class
 *  @param {boolean} lastsThroughout */
export function waitGroup(role, name, lastsThroughout) {
  if (role !== ROLES.work) {
    return role === ROLES.kernel ? KERNEL : RECORDER;
  }
  if (name === 'lock') {
    return HELD;
  }
  return IDLE_CLASSES.has(name) || lastsThroughout ? IDLE : UNKNOWN_CLASSES.has(name) ? UNKNOWN : HELD;
}

/** True for groups that are not shown.
 *  @param {number} group
 *  @param {{ hideIdle: boolean, hideKernel: boolean }} state */
export function isHiddenGroup(group, { hideIdle, hideKernel }) {
  return (hideIdle && group === IDLE) || (hideKernel && group === KERNEL);
}

/** The role of each lane, by that of its thread.
 *  @param {TimelineData} timeline
 *  @param {Pick<Profile, 'threads'>} profile
 *  @param {Uint8Array} roles of the page's threads */
export function laneRoles({ ids }, { threads }, roles) {
  const byId = new Map(threads.map(({ pid, tid }, thread) => [`${pid}.${tid}`, roles[thread]]));
  return Uint8Array.from(ids, ({ pid, tid }) => byId.get(`${pid}.${tid}`) ?? ROLES.work);
}

/** The group of each span.
 *  @param {TimelineData} timeline
 *  @param {Uint8Array} roles of lanes
 *  @returns {(span: number) => number} */
export function spanGroups(timeline, roles) {
  return (span) => waitGroup(roles[timeline.thread[span]], timeline.classes[timeline.class[span] - 1] ?? '', isThroughout(timeline, span));
}

/** Functions of a stack from the program's own on, callee first. Threads of the kernel have those behind the scheduler.
 *  @param {Profile} profile
 *  @param {number} node
 *  @returns {string[]} */
function siteFunctions({ nodes, frames, functions, dsos }, node) {
  const [own, all] = [/** @type {string[]} */ ([]), /** @type {string[]} */ ([])];
  for (let at = node; at >= 0 && own.length < TEXT_FUNCTIONS; at = nodes.parent[at]) {
    const fn = frames.function[nodes.frame[at]];
    const { kind, name: file } = dsos[functions.dso[fn]];
    const name = functions.names[fn];
    const isOwn = kind !== 'kernel' && kind !== 'module' && functions.known[fn] !== 0 && !C_LIBRARY.test(file);
    if (isOwn || own.length > 0) {
      own.push(name);
    }
    if (all.length < TEXT_FUNCTIONS && (all.length > 0 || !SCHEDULER.test(name))) {
      all.push(name);
    }
  }
  return own.length > 0 ? own : all;
}

/** The sites of the selected waits, group by group, those with the longest sums first; `lossyNs` is the time that losses
 *  touch, `foldedNs` that of light stacks.
 *  @param {Profile} profile
 *  @param {{ rows: Rows, selection: SampleChoice, timeline: TimelineData, lanes: Uint8Array, roles: Uint8Array, within: TimeRange, isFolded: (node: number) => boolean }} from
 *  @returns {{ sites: WaitSite[], lossyNs: number, foldedNs: number }} */
export function waitSites(profile, { rows, selection, timeline, lanes, roles, within, isFolded }) {
  const { nodes, frames, functions, dsos, comms, threads } = profile;
  const selected = rowFilter(rows, selection);
  const laneOf = new Map(timeline.ids.map(({ pid, tid }, lane) => [`${pid}.${tid}`, lane]));
  const throughout = new Set(Array.from(timeline.thread, (lane, span) => (isThroughout(timeline, span) ? lane : -1)));
  /** @type {Map<string, WaitSite & { of: Set<number> }>} */
  const sites = new Map();
  /** @type {Map<string, WaitSite>} The site of a stack of a lane. */
  const byStack = new Map();
  /** @type {Map<number, string[]>} */
  const chains = new Map();
  /** @param {number} stack */
  const chainOf = (stack) => {
    const chain = chains.get(stack) ?? siteFunctions(profile, stack);
    chains.set(stack, chain);
    return chain;
  };
  let [lossyNs, foldedNs] = [0, 0];
  for (let row = 0; row < rows.node.length; row++) {
    const [node, ns] = [rows.node[row], rows.period[row]];
    if (node < 0 || ns === 0 || !selected(row)) {
      continue;
    }
    const fn = frames.function[nodes.frame[node]];
    const part = waitPart(functions.names[fn], dsos[functions.dso[fn]].kind);
    if (part === null) {
      foldedNs += isFolded(node) ? ns : 0;
      continue;
    }
    if (part === 'lossy') {
      lossyNs += ns;
      continue;
    }
    const name = /^\[(.*) wait\]$/.exec(functions.names[fn])?.[1] ?? CPU_CLASS;
    const stack = nodes.parent[node];
    // A thread that waits for a CPU was anywhere in its code.
    const chain = name === CPU_CLASS ? [] : chainOf(stack);
    const thread = rows.thread[row];
    const lane = laneOf.get(`${threads[thread].pid}.${threads[thread].tid}`) ?? -1;
    const group = waitGroup(roles[thread], name, throughout.has(lane));
    const comm = comms[rows.comm[row]];
    const key = [group, name, comm, ...chain.slice(0, SITE_FUNCTIONS)].join('\n');
    const site = sites.get(key) ?? { group, class: name, comm, chain, ns: 0, count: 0, threads: 0, longest: -1, of: new Set() };
    sites.set(key, site);
    byStack.set(`${node}.${lane}`, site);
    site.ns += ns;
    site.count += rows.samples[row];
    site.of.add(thread);
  }
  addLongest(byStack, timeline, lanes, within);
  for (const site of sites.values()) {
    site.threads = site.of.size;
  }
  const sorted = [...sites.values()].sort((a, b) => a.group - b.group || b.ns - a.ns);
  return { sites: sorted, lossyNs, foldedNs };
}

/** Gives each site its longest single wait with a part in the range.
 *  @param {Map<string, WaitSite>} byStack
 *  @param {TimelineData} timeline
 *  @param {Uint8Array} lanes
 *  @param {TimeRange} within */
function addLongest(byStack, timeline, lanes, [from, to]) {
  const { thread, node, startNs, durationNs } = timeline;
  for (let span = 0; span < thread.length; span++) {
    const isIn = node[span] > 0 && startNs[span] < to && startNs[span] + durationNs[span] > from;
    const site = isIn && lanes[thread[span]] === 1 ? byStack.get(`${node[span] - 1}.${thread[span]}`) : undefined;
    if (site !== undefined && (site.longest < 0 || durationNs[span] > durationNs[site.longest])) {
      site.longest = span;
    }
  }
}
