// Context switches: the data block (written by crates/read/whit-page/src/switches.rs) as typed arrays,
// and queries on it. Knows nothing of the document.

import { waitKind } from './colors.js';
import { plainColumn } from './decode.js';
import { cleanName } from './names.js';

/** @import { SpanColumn, SwitchBlock, Switches, SwitchTree, SwitchTreeBlock, TimelineBlock, TimelineData, TimeRange } from './types.d.ts' */

/** Activities in the order of their numbers. */
export const ACTIVITIES = [
  { id: 'running', label: 'running', light: 'hsl(130 42% 62%)', dark: 'hsl(138 40% 38%)' },
  { id: 'preempted', label: 'preempted', light: 'hsl(62 66% 62%)', dark: 'hsl(60 54% 30%)' },
  { id: 'waiting', label: 'waiting', light: 'hsl(211 62% 80%)', dark: 'hsl(212 40% 34%)' },
  { id: 'mixed', label: 'several, too short to tell apart', light: 'hsl(28 44% 72%)', dark: 'hsl(28 42% 32%)' },
];

/** @param {SwitchTreeBlock} tree
 *  @param {string[]} names */
function decodeSwitchTree(tree, names) {
  const up = plainColumn(tree.up, Int32Array);
  const parent = up.map((distance, node) => (distance === 0 ? -1 : node - distance));
  const children = Uint32Array.from(parent, () => 0);
  parent.forEach((above) => {
    if (above >= 0) {
      children[above] += 1;
    }
  });
  /** @param {Exclude<keyof SwitchTreeBlock, 'leftOut'>} name */
  const column = (name) => plainColumn(tree[name], Float64Array);
  const name = plainColumn(tree.name, Uint32Array);
  return {
    parent,
    children,
    nameOf: (/** @type {number} */ node) => names[name[node]],
    cpuNs: column('cpuNs'),
    waitNs: column('waitNs'),
    sync: column('sync'),
    preempt: column('preempt'),
    lossy: column('lossy'),
    open: column('open'),
    throughout: column('throughout'),
    leftOut: tree.leftOut,
  };
}

/** @param {TimelineBlock} timeline
 *  @returns {TimelineData} */
function decodeTimeline(timeline) {
  /** @param {SpanColumn} name */
  const column = (name) => plainColumn(timeline[name], Float64Array);
  /** @param {SpanColumn} name */
  const ids = (name) => plainColumn(timeline[name], Uint32Array);
  /** @param {SpanColumn} name */
  const bytes = (name) => plainColumn(timeline[name], Uint8Array);
  const thread = ids('thread');
  // Spans stand by thread: where those of each begin, and behind the last of all.
  const first = new Uint32Array(timeline.threads.length + 1).fill(thread.length);
  for (let i = thread.length - 1; i >= 0; i--) {
    first[thread[i]] = i;
  }
  for (let t = timeline.threads.length - 1; t >= 0; t--) {
    first[t] = Math.min(first[t], first[t + 1]);
  }
  return {
    ...timeline,
    threads: timeline.threads.map(cleanName),
    ids: timeline.ids.map(([pid, tid, comm]) => ({ pid, tid, comm: cleanName(comm) })),
    reasons: timeline.reasons.map(cleanName),
    programReasons: timeline.programReasons.map(cleanName),
    wakers: {
      lane: plainColumn(timeline.wakers.lane, Int32Array).map((lane) => lane - 1),
      names: timeline.wakers.names.map(cleanName),
      name: plainColumn(timeline.wakers.name, Uint32Array),
      reason: plainColumn(timeline.wakers.reason, Uint32Array),
    },
    first,
    thread,
    startNs: column('startNs'),
    durationNs: column('durationNs'),
    activity: bytes('activity'),
    cpu: ids('cpu'),
    reason: ids('reason'),
    class: bytes('class'),
    // One more than the page's call tree node of a single wait.
    node: ids('node'),
    waker: ids('waker'),
    blockedNs: column('blockedNs'),
    lossy: bytes('lossy'),
    count: column('count'),
    partsNs: [column('runningNs'), column('preemptedNs'), column('waitingNs')],
  };
}

/** The block of the page.
 *  @param {SwitchBlock} block
 *  @returns {Switches} */
export function decodeSwitches(block) {
  const names = block.names.map(cleanName);
  return {
    facts: block.facts.map(cleanName),
    trees: { callee: decodeSwitchTree(block.callee, names), caller: decodeSwitchTree(block.caller, names) },
    timeline: decodeTimeline(block.timeline),
  };
}

/** Nodes of a tree that are in view where those in `opened` show their children, in order, each
 *  with its depth.
 *  @param {SwitchTree} tree
 *  @param {Set<number>} opened */
export function shownNodes(tree, opened) {
  /** @type {{ node: number, depth: number }[]} */
  const rows = [];
  const depth = new Int32Array(tree.parent.length).fill(-1);
  tree.parent.forEach((parent, node) => {
    // Parents stand before their children.
    if (parent < 0) {
      depth[node] = 0;
    } else if (depth[parent] >= 0 && opened.has(parent)) {
      depth[node] = depth[parent] + 1;
    }
    if (depth[node] >= 0) {
      rows.push({ node, depth: depth[node] });
    }
  });
  return rows;
}

/** A node, and those below it as long as there is only one: what opening it should open.
 *  @param {SwitchTree} tree
 *  @param {number} node */
export function onlyWay(tree, node) {
  const way = [node];
  // A node's first child stands right behind it.
  for (let at = node; tree.children[at] === 1; at += 1) {
    way.push(at + 1);
  }
  return way;
}

/** Paths of names of the nodes in view where those in `opened`, a set of paths, show their children; and the nodes that
 *  are open. Paths stay the same when sums change.
 *  @param {SwitchTree} tree
 *  @param {Set<string>} opened */
export function openedNodes(tree, opened) {
  /** @type {[Map<number, string>, Set<number>]} */
  const [paths, open] = [new Map(), new Set()];
  tree.parent.forEach((parent, node) => {
    if (parent < 0 || open.has(parent)) {
      const path = `${paths.get(parent) ?? ''}\n${tree.nameOf(node)}`;
      paths.set(node, path);
      if (opened.has(path)) {
        open.add(node);
      }
    }
  });
  return { paths, open };
}

/** Index of the span of a thread at a moment, or -1.
 *  @param {TimelineData} timeline
 *  @param {number} thread
 *  @param {number} ns */
export function spanAt(timeline, thread, ns) {
  let [low, high] = [timeline.first[thread], timeline.first[thread + 1]];
  const end = high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.startNs[middle] + timeline.durationNs[middle] < ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < end && timeline.startNs[low] <= ns ? low : -1;
}

/** Waits that the table of the longest has at most. */
export const MAX_LONGEST = 200;
/** Wake-ups that are followed back from one wait at most. */
const MAX_ARROWS = 12;

const WAITING = ACTIVITIES.findIndex(({ id }) => id === 'waiting');

/** How long each thread of the time line had a CPU.
 *  @param {TimelineData} timeline */
export function timeOnCpu({ threads, thread, activity, durationNs, partsNs }) {
  const sums = new Float64Array(threads.length);
  thread.forEach((lane, span) => {
    const { id } = ACTIVITIES[activity[span]];
    sums[lane] += id === 'running' ? durationNs[span] : id === 'mixed' ? partsNs[0][span] : 0;
  });
  return sums;
}

/** True for a wait from the beginning to the end: most threads of a machine are idle.
 *  @param {Pick<TimelineData, 'startNs' | 'durationNs' | 'spanNs'>} timeline
 *  @param {number} span */
export function isThroughout({ startNs, durationNs, spanNs }, span) {
  return startNs[span] <= 0 && durationNs[span] >= spanNs;
}

/** The longest waits of threads that are 1 (null: of all) with a part in a range, the longest first, and how many
 *  there are. Joined intervals are no single waits.
 *  @param {TimelineData} timeline
 *  @param {Uint8Array | null} threads
 *  @param {TimeRange} range
 *  @param {{ max?: number, hidden?: ReadonlySet<number>, groupOf?: (span: number) => number }} [options] `hidden`: numbers
 *  of classes; `groupOf`: lower ones stand first, negative ones are left out */
export function longestWaits(timeline, threads, [from, to], { max = MAX_LONGEST, hidden = new Set(), groupOf = () => 0 } = {}) {
  const found = [];
  let count = 0;
  for (let i = 0; i < timeline.thread.length; i++) {
    const isIn = timeline.startNs[i] < to && timeline.startNs[i] + timeline.durationNs[i] > from;
    if (timeline.activity[i] === WAITING && isIn && groupOf(i) >= 0 && !hidden.has(timeline.class[i]) && (threads === null || threads[timeline.thread[i]] === 1)) {
      found.push(i);
      count += 1;
    }
  }
  const rank = (/** @type {number} */ i) => groupOf(i) * 2 + Number(isThroughout(timeline, i));
  found.sort((a, b) => rank(a) - rank(b) || timeline.durationNs[b] - timeline.durationNs[a] || a - b);
  return { waits: found.slice(0, max), count };
}

/** Numbers of the classes of waits whose kinds are hidden.
 *  @param {TimelineData} timeline
 *  @param {ReadonlySet<string>} hidden ids of kinds */
export function hiddenClasses({ classes }, hidden) {
  // Number 0 is a wait without a class.
  return new Set(['other', ...classes].flatMap((name, number) => (hidden.has(waitKind(name).id) ? [number] : [])));
}

/** The moment at which a wait was woken, or -1.
 *  @param {TimelineData} timeline
 *  @param {number} span */
export function wokenAt({ startNs, blockedNs, waker }, span) {
  return waker[span] > 0 ? startNs[span] + blockedNs[span] : -1;
}

/** Wake-ups that led to the end of a wait, the last one first: who woke the thread, who had woken that one before, and
 *  so on. Each is {ns, from, to}, the latter two lanes.
 *  @param {TimelineData} timeline
 *  @param {number} span
 *  @param {number} max */
export function wakeChain(timeline, span, max = MAX_ARROWS) {
  const arrows = [];
  for (let at = span; at >= 0 && arrows.length < max;) {
    const ns = wokenAt(timeline, at);
    const from = ns < 0 ? -1 : timeline.wakers.lane[timeline.waker[at] - 1];
    if (from < 0) {
      break;
    }
    arrows.push({ ns, from, to: timeline.thread[at] });
    at = lastWaitBefore(timeline, from, ns);
  }
  return arrows;
}

/** The last wait of a thread that ended before a moment, or -1.
 *  @param {TimelineData} timeline
 *  @param {number} thread
 *  @param {number} ns */
function lastWaitBefore(timeline, thread, ns) {
  for (let at = spanAt(timeline, thread, ns); at >= timeline.first[thread]; at--) {
    if (timeline.activity[at] === WAITING && timeline.startNs[at] + timeline.durationNs[at] <= ns) {
      return at;
    }
  }
  return -1;
}
