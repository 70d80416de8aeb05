// Context switches: the data block (written by crates/whit-page/src/switches.rs) as typed arrays,
// and queries on it. Knows nothing of the document.

import { plainColumn } from './decode.js';
import { cleanName } from './names.js';

/** Activities in the order of their numbers. */
export const ACTIVITIES = [
  { id: 'running', label: 'running', light: 'hsl(130 42% 62%)', dark: 'hsl(138 40% 38%)' },
  { id: 'preempted', label: 'preempted', light: 'hsl(14 82% 66%)', dark: 'hsl(14 62% 45%)' },
  { id: 'waiting', label: 'waiting', light: 'hsl(211 62% 80%)', dark: 'hsl(212 40% 34%)' },
  { id: 'mixed', label: 'several, too short to tell apart', light: 'hsl(49 60% 72%)', dark: 'hsl(43 40% 34%)' },
];

function decodeSwitchTree(tree) {
  const up = plainColumn(tree.up, Int32Array);
  const parent = up.map((distance, node) => (distance === 0 ? -1 : node - distance));
  const children = Uint32Array.from(parent, () => 0);
  parent.forEach((above) => {
    if (above >= 0) {
      children[above] += 1;
    }
  });
  const column = (name) => plainColumn(tree[name], Float64Array);
  return {
    parent,
    children,
    name: plainColumn(tree.name, Uint32Array),
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

function decodeTimeline(timeline) {
  const column = (name, Type = Float64Array) => plainColumn(timeline[name], Type);
  const thread = column('thread', Uint32Array);
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
    activity: column('activity', Uint8Array),
    cpu: column('cpu', Uint32Array),
    reason: column('reason', Uint32Array),
    class: column('class', Uint8Array),
    waker: column('waker', Uint32Array),
    blockedNs: column('blockedNs'),
    lossy: column('lossy', Uint8Array),
    count: column('count'),
    partsNs: [column('runningNs'), column('preemptedNs'), column('waitingNs')],
  };
}

/** The block of the page. */
export function decodeSwitches(block) {
  return {
    facts: block.facts.map(cleanName),
    names: block.names.map(cleanName),
    trees: { callee: decodeSwitchTree(block.callee), caller: decodeSwitchTree(block.caller) },
    timeline: decodeTimeline(block.timeline),
  };
}

/** Nodes of a tree that are in view where those in `opened` show their children, in order, each
 *  with its depth. */
export function shownNodes(tree, opened) {
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

/** A node, and those below it as long as there is only one: what opening it should open. */
export function onlyWay(tree, node) {
  const way = [node];
  // A node's first child stands right behind it.
  for (let at = node; tree.children[at] === 1; at += 1) {
    way.push(at + 1);
  }
  return way;
}

/** Index of the span of a thread at a moment, or -1. */
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
export const MAX_ARROWS = 12;

const WAITING = ACTIVITIES.findIndex(({ id }) => id === 'waiting');

/** The longest waits of threads that are 1 (null: of all) with a part in a range, the longest first, and how many
 *  there are. Joined intervals are no single waits. */
export function longestWaits(timeline, threads, [from, to], max = MAX_LONGEST) {
  const found = [];
  let count = 0;
  for (let i = 0; i < timeline.thread.length; i++) {
    const isIn = timeline.startNs[i] < to && timeline.startNs[i] + timeline.durationNs[i] > from;
    if (timeline.activity[i] === WAITING && isIn && (threads === null || threads[timeline.thread[i]] === 1)) {
      found.push(i);
      count += 1;
    }
  }
  found.sort((a, b) => timeline.durationNs[b] - timeline.durationNs[a] || a - b);
  return { waits: found.slice(0, max), count };
}

/** The moment at which a wait was woken, or -1. */
function wokenAt({ startNs, blockedNs, waker }, span) {
  return waker[span] > 0 ? startNs[span] + blockedNs[span] : -1;
}

/** Wake-ups that led to the end of a wait, the last one first: who woke the thread, who had woken that one before, and
 *  so on. Each is {ns, from, to}, the latter two lanes. */
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

/** The last wait of a thread that ended before a moment, or -1. */
function lastWaitBefore(timeline, thread, ns) {
  for (let at = spanAt(timeline, thread, ns); at >= timeline.first[thread]; at--) {
    if (timeline.activity[at] === WAITING && timeline.startNs[at] + timeline.durationNs[at] <= ns) {
      return at;
    }
  }
  return -1;
}
