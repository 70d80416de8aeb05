// Two sides compared: the data block (written by crates/read/whit-page/src/compare.rs), weights and colours of the graph
// of both, rows of the table. Knows nothing of the document.

import { addUp, functionOf, rowFilter, weighTree } from './tree.js';
import { functionTotals } from './functions.js';
import { cleanName } from './names.js';
import { formatHalf, formatPercent, formatShort } from './format.js';

/** @import { Colour, CompareBlock, Comparison, ComparisonEvent, ComparisonRow, Difference, DiffEvent, DiffName, DiffRow, PageEvent, PartRow, Per, Rows, SampleChoice, Theme, Tree } from './types.d.ts' */

/** A change of this part of the mean has the full colour. */
const FULL_CHANGE = 0.5;

const NEUTRAL = { light: [40, 8, 86], dark: [220, 5, 34] };
const SLOWER = { light: [6, 82, 70], dark: [4, 56, 40] };
const FASTER = { light: [211, 78, 74], dark: [212, 52, 41] };

/** @param {DiffRow} row
 *  @param {number} fn
 *  @returns {ComparisonRow} */
function cleanRow(row, fn) {
  /** @param {DiffName} diff */
  const name = ({ function: of, binary }) => ({ name: cleanName(of), binary: cleanName(binary) });
  return {
    ...row,
    ...name(row),
    fn: fn - 1,
    renamed: row.renamed === null ? null : name(row.renamed),
    caller: row.caller === null ? null : { ...row.caller, ...name(row.caller) },
  };
}

/** The block of the page: its events have sides (the page's events), rows, and rows by function.
 *  @param {CompareBlock} block
 *  @returns {Comparison} */
export function decodeCompare({ diff, events, maxRows, commands, narrowed, measures }) {
  /** @param {DiffEvent} known
   *  @param {number} index
   *  @returns {ComparisonEvent} */
  const event = (known, index) => {
    const { sides, functions, leftOff } = events[index];
    const rows = known.rows.map((row, at) => cleanRow(row, functions[at]));
    // A function that two rows lead to has the heavier one's statistics: rows stand in that order.
    const byFunction = new Map([...rows].reverse().filter(({ fn }) => fn >= 0).map((row) => [row.fn, row]));
    return { ...known, name: cleanName(known.name), sides, rows, byFunction, leftOff };
  };
  return {
    ...diff,
    maxRows,
    measures,
    commands: commands.map(cleanName),
    narrowed: narrowed.map(cleanName),
    events: diff.events.map(event),
    before: diff.before.map(cleanName),
    after: diff.after.map(cleanName),
    perEvent: diff.per_event === null ? null : cleanName(diff.per_event),
  };
}

/** The compared event that an event of the page is a side of.
 *  @param {Comparison} comparison
 *  @param {number} event */
export function comparedEvent({ events }, event) {
  return events.find(({ sides }) => sides.includes(event)) ?? events[0];
}

/** Shares of both sides for each node of a tree, callees included; `weight` is their mean. A selection has masks of
 *  `threads` and `comms`, or null; `wholes` are the events of the sides, whose shares these are, or null for shares of the
 *  selection.
 *  @param {Pick<Tree, 'count' | 'parent' | 'rowNode'>} tree
 *  @param {Rows} rows
 *  @param {number[]} sides
 *  @param {{ threads?: Uint8Array | null, comms?: Uint8Array | null }} selection
 *  @param {(PageEvent | null)[] | null} wholes */
export function sideShares(tree, rows, sides, { threads = null, comms = null } = {}, wholes = null) {
  const [before, after] = sides.map((event, side) => {
    const [samples, period] = [new Float64Array(tree.count), new Float64Array(tree.count)];
    const selected = rowFilter(rows, { event, threads, comms });
    for (let row = 0; row < rows.node.length; row++) {
      if (selected(row)) {
        samples[tree.rowNode[row]] += rows.samples[row];
        period[tree.rowNode[row]] += rows.period[row];
      }
    }
    const isByPeriod = period.some((value) => value > 0);
    const total = addUp(tree.parent, isByPeriod ? period : samples);
    const whole = wholes?.[side] ?? null;
    const all = whole === null ? total[0] : Math.max(total[0], isByPeriod ? whole.period : whole.samples);
    return all > 0 ? total.map((value) => value / all) : total;
  });
  return { before, after, weight: before.map((share, node) => (share + after[node]) / 2) };
}

/** Percentages of each function on one side: of its own, and with callees.
 *  @param {Tree} tree
 *  @param {Rows} rows
 *  @param {SampleChoice} selection
 *  @param {number} functionCount */
function sidePercents(tree, rows, selection, functionCount) {
  const weights = weighTree(tree, rows, selection);
  const isByPeriod = weights.totalPeriod[0] > 0;
  const all = (isByPeriod ? weights.totalPeriod : weights.totalSamples)[0];
  const sums = functionTotals(tree, weights, functionCount);
  /** @param {Float64Array} values */
  const percents = (values) => (all > 0 ? values.map((value) => (value / all) * 100) : values);
  return isByPeriod ? { self: percents(sums.selfPeriod), total: percents(sums.totalPeriod) }
    : { self: percents(sums.selfSamples), total: percents(sums.totalSamples) };
}

/** Rows of the table for a part of the samples, the largest changes of `order` (`self` or `total`) first: shares of the
 *  part, which nothing has judged. `describe(fn)` gives name and binary.
 *  @param {Tree} tree
 *  @param {Rows} rows
 *  @param {number[]} sides
 *  @param {Pick<SampleChoice, 'threads' | 'comms'>} selection
 *  @param {'self' | 'total'} order
 *  @param {number} functionCount
 *  @param {(fn: number) => { name: string, binary: string }} describe
 *  @returns {PartRow[]} */
export function partRows(tree, rows, sides, { threads, comms }, order, functionCount, describe) {
  const [before, after] = sides.map((event) => sidePercents(tree, rows, { event, threads, comms }, functionCount));
  /** @param {'self' | 'total'} part
   *  @param {number} fn
   *  @returns {Difference} */
  const judge = (part, fn) => {
    const [a, b] = [before[part][fn], after[part][fn]];
    return { before: a, before_plus_minus: null, after: b, after_plus_minus: null, change: b - a, low: NaN, high: NaN, verdict: 'not judged', smallest: NaN };
  };
  const found = [];
  for (let fn = 0; fn < functionCount; fn++) {
    if (before.total[fn] > 0 || after.total[fn] > 0) {
      found.push({ fn, ...describe(fn), renamed: null, caller: null, matched: 'same', self: judge('self', fn), total: judge('total', fn) });
    }
  }
  /** @param {PartRow} row */
  const weight = (row) => row[order].before + row[order].after;
  return found.sort((a, b) => Math.abs(b[order].change) - Math.abs(a[order].change) || weight(b) - weight(a) || a.fn - b.fn);
}

/** The change of a share relative to the mean of both sides, from -1 to 1.
 *  @param {number} before
 *  @param {number} after */
export function relativeChange(before, after) {
  const sum = before + after;
  return sum > 0 ? (after - before) / sum : 0;
}

/** Colour of a change, as hue, saturation, lightness.
 *  @param {number} change
 *  @param {Theme} theme
 *  @returns {Colour} */
export function changeColour(change, theme) {
  const strength = Math.min(1, Math.abs(change) / FULL_CHANGE);
  const [from, to] = [NEUTRAL[theme], (change > 0 ? SLOWER : FASTER)[theme]];
  return [to[0], from[1] + (to[1] - from[1]) * strength, from[2] + (to[2] - from[2]) * strength];
}

/** The statistics that judge a function with its callees.
 *  @param {Pick<ComparisonRow, 'self' | 'total'> | undefined} row
 *  @returns {Difference | null} */
export function judgedOf(row) {
  return row?.total ?? row?.self ?? null;
}

/** True where the difference of a node's function may be chance, or nothing is known of it.
 *  @param {Pick<ComparisonEvent, 'byFunction'>} event
 *  @param {number} key */
export function isUndecided({ byFunction }, key) {
  const judged = key < 0 ? null : judgedOf(byFunction.get(functionOf(key)));
  return judged === null || judged.verdict === 'cannot be told';
}

/** A value with half of its interval; shares are in percent, other values are counts.
 *  @param {number} value
 *  @param {number | null} half
 *  @param {Per} per */
export function valueText(value, half, per) {
  if (per === 'share') {
    return `${formatPercent(value / 100)} ${formatHalf((half ?? NaN) / 100)}`.trim();
  }
  return half === null || !Number.isFinite(half) ? formatShort(value) : `${formatShort(value)} ±${formatShort(half)}`;
}

/** A change with its sign, and half of its interval.
 *  @param {Pick<Difference, 'change' | 'low' | 'high'>} difference
 *  @param {Per} per */
export function changeText({ change, low, high }, per) {
  const sign = change > 0 ? '+' : change < 0 ? '−' : '';
  return `${sign}${valueText(Math.abs(change), (high - low) / 2, per)}`;
}

/** The verdict, and how large a change would have to be.
 *  @param {Pick<Difference, 'verdict' | 'smallest'>} difference
 *  @param {Per} per */
export function verdictText({ verdict, smallest }, per) {
  const least = smallest !== null && Number.isFinite(smallest) ? ` (a change of ${valueText(smallest, null, per)} would be found)` : '';
  return `${verdict}${verdict === 'cannot be told' ? least : ''}`;
}

/** The same for a cell: the smallest change that would have been found is in brackets.
 *  @param {Pick<Difference, 'verdict' | 'smallest'>} difference
 *  @param {Per} per */
export function verdictShort({ verdict, smallest }, per) {
  const least = verdict === 'cannot be told' && smallest !== null && Number.isFinite(smallest) ? ` (${valueText(smallest, null, per)})` : '';
  return `${verdict}${least}`;
}

/** Rows whose names contain a text.
 *  @param {ComparisonRow[]} rows
 *  @param {string} filter */
export function comparedRows(rows, filter) {
  const text = filter.toLowerCase();
  /** @param {{ name: string, binary: string }} row */
  const has = ({ name, binary }) => name.toLowerCase().includes(text) || binary.toLowerCase().includes(text);
  return text === '' ? rows : rows.filter((row) => has(row) || (row.renamed !== null && has(row.renamed)));
}
