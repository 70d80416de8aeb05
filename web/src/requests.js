// Requests: the data block (written by crates/read/whit-page/src/requests.rs), and queries on it. Knows nothing of the
// document.

import { plainColumn } from './decode.js';
import { cleanName } from './names.js';
import { ACTIVITIES } from './switches.js';
import { cssColour, waitKind } from './colors.js';

/** @import { Activity, CallPath, NamedRequests, RequestBlock, RequestPathBlock, Requests, RequestsBlock, Theme, TimeRange } from './types.d.ts' */

const [CPU_PART, QUEUE_PART, WAIT_PART] = ['running', 'preempted', 'waiting'].map((wanted) => (
  /** @type {Activity} */ (ACTIVITIES.find(({ id }) => id === wanted))));

/** Columns of a call's time, in the order of the numbers of a split.
 *  @type {readonly Activity[]} */
export const SPLIT_PARTS = [
  { ...CPU_PART, label: 'on CPU' },
  { ...QUEUE_PART, label: 'waits for a CPU' },
  { id: 'throttled', label: 'throttled', light: 'hsl(328 46% 66%)', dark: 'hsl(328 36% 42%)' },
  { ...WAIT_PART, label: 'waits' },
  { id: 'unknown', label: 'unknown', light: 'hsl(30 6% 70%)', dark: 'hsl(30 4% 38%)' },
];

/** Kinds of pieces that are no class of waits, with the part of a call that they are. */
const PARTS_OF_KINDS = /** @type {Record<string, number>} */ ({ running: 0, preempted: 1, 'run-queue': 1, runnable: 1, throttled: 2, unknown: 4 });

/** The colour of a piece of this kind.
 *  @param {string} kind
 *  @param {Theme} theme */
export function pieceColour(kind, theme) {
  const part = PARTS_OF_KINDS[kind];
  return part === undefined ? cssColour(waitKind(kind)[theme]) : SPLIT_PARTS[part][theme];
}

/** @param {RequestPathBlock} path
 *  @param {string[]} texts
 *  @returns {CallPath} */
function decodePath(path, texts) {
  const durationNs = plainColumn(path.durationNs, Float64Array);
  // Pieces follow each other.
  const fromNs = new Float64Array(durationNs.length);
  for (let i = 1; i < fromNs.length; i++) {
    fromNs[i] = fromNs[i - 1] + durationNs[i - 1];
  }
  const text = plainColumn(path.text, Uint32Array);
  const kind = plainColumn(path.kind, Uint32Array);
  const explains = plainColumn(path.explains, Uint32Array);
  return {
    lanes: path.lanes.map(([pid, tid, name]) => ({ pid, tid, name: cleanName(name) })),
    fromNs,
    durationNs,
    lane: plainColumn(path.lane, Uint32Array),
    kindOf: (piece) => texts[kind[piece]],
    textOf: (piece) => texts[text[piece]],
    explainsOf: (piece) => (explains[piece] > 0 ? texts[explains[piece] - 1] : ''),
    piecesCount: path.piecesCount,
    rows: path.rows.map((row) => ({ ...row, what: cleanName(row.what), explains: cleanName(row.explains ?? '') })),
    rowsLeftOut: path.rowsLeftOut,
  };
}

/** @param {RequestBlock} block
 *  @param {string[]} texts
 *  @returns {NamedRequests} */
function decodeNamed(block, texts) {
  return {
    ...block,
    name: cleanName(block.name),
    remarks: block.remarks.map(cleanName),
    tail: block.tail.map((row) => ({ ...row, what: cleanName(row.what) })),
    calls: block.calls.map((call) => ({
      ...call,
      thread: cleanName(call.thread),
      key: call.key === null ? '' : cleanName(call.key),
      path: call.path === null ? null : decodePath(call.path, texts),
    })),
  };
}

/** The requests out of the parsed block.
 *  @param {RequestsBlock} block
 *  @returns {Requests} */
export function decodeRequests(block) {
  const texts = block.texts.map(cleanName);
  return { names: block.names.map((named) => decodeNamed(named, texts)), noPaths: block.noPaths === null ? '' : cleanName(block.noPaths) };
}

/** The bars of a histogram.
 *  @param {NamedRequests['histogram']} histogram */
export function durationBars({ perOctave, first, counts }) {
  const at = (/** @type {number} */ bar) => 2 ** ((first + bar) / perOctave);
  return counts.map((count, bar) => ({ fromNs: at(bar), toNs: at(bar + 1), count }));
}

/** The bar that has a duration, or -1.
 *  @param {NamedRequests['histogram']} histogram
 *  @param {number} ns */
export function barOf({ perOctave, first, counts }, ns) {
  const bar = Math.floor(Math.log2(Math.max(1, ns)) * perOctave) - first;
  return bar >= 0 && bar < counts.length ? bar : -1;
}

/** The piece of a path at a time since the beginning of its call, or -1.
 *  @param {Pick<CallPath, 'fromNs' | 'durationNs'>} path
 *  @param {number} ns */
export function pieceAt({ fromNs, durationNs }, ns) {
  let [low, high] = [0, fromNs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fromNs[middle] <= ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const piece = low - 1;
  return piece >= 0 && ns < fromNs[piece] + durationNs[piece] ? piece : -1;
}

/** The part of a call that a range of time chooses; all of the call where they have no time in common.
 *  @param {{ fromNs: number, durationNs: number }} call
 *  @param {TimeRange | null} range
 *  @returns {TimeRange} since the beginning of the call */
export function windowOfCall({ fromNs, durationNs }, range) {
  if (range === null) {
    return [0, durationNs];
  }
  const [from, to] = [Math.max(0, range[0] - fromNs), Math.min(durationNs, range[1] - fromNs)];
  return from < to ? [from, to] : [0, durationNs];
}
