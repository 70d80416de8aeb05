// Two sides compared: the data block (written by crates/whit-page/src/compare.rs), weights and colours of the graph
// of both, rows of the table. Knows nothing of the document.

import { addUp, functionOf } from './tree.js';
import { cleanName } from './names.js';
import { formatHalf, formatPercent, formatShort } from './format.js';

/** A change of this part of the mean has the full colour. */
const FULL_CHANGE = 0.5;

const NEUTRAL = { light: [40, 8, 86], dark: [220, 5, 34] };
const SLOWER = { light: [6, 82, 70], dark: [4, 56, 40] };
const FASTER = { light: [211, 78, 74], dark: [212, 52, 41] };

function cleanRow(row, fn) {
  const name = ({ function: of, binary }) => ({ name: cleanName(of), binary: cleanName(binary) });
  return {
    ...row,
    ...name(row),
    fn: fn - 1,
    renamed: row.renamed === null ? null : name(row.renamed),
    caller: row.caller === null ? null : { ...row.caller, ...name(row.caller) },
  };
}

/** The block of the page: its events have sides (the page's events), rows, and rows by function. */
export function decodeCompare({ diff, events, maxRows }) {
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
    events: diff.events.map(event),
    warnings: diff.warnings.map(cleanName),
    before: diff.before.map(cleanName),
    after: diff.after.map(cleanName),
    perEvent: diff.per_event === null ? null : cleanName(diff.per_event),
  };
}

/** The compared event that an event of the page is a side of. */
export function comparedEvent({ events }, event) {
  return events.find(({ sides }) => sides.includes(event)) ?? events[0];
}

/** Shares of both sides for each node of a tree, callees included; `weight` is their mean. */
export function sideShares(tree, rows, sides) {
  const [before, after] = sides.map((event) => {
    const [samples, period] = [new Float64Array(tree.count), new Float64Array(tree.count)];
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.event[row] === event) {
        samples[tree.rowNode[row]] += rows.samples[row];
        period[tree.rowNode[row]] += rows.period[row];
      }
    }
    const own = period.some((value) => value > 0) ? period : samples;
    const total = addUp(tree.parent, own);
    const all = total[0];
    return all > 0 ? total.map((value) => value / all) : total;
  });
  return { before, after, weight: before.map((share, node) => (share + after[node]) / 2) };
}

/** The change of a share relative to the mean of both sides, from -1 to 1. */
export function relativeChange(before, after) {
  const sum = before + after;
  return sum > 0 ? (after - before) / sum : 0;
}

/** Colour of a change, as hue, saturation, lightness. */
export function changeColour(change, theme) {
  const strength = Math.min(1, Math.abs(change) / FULL_CHANGE);
  const [from, to] = [NEUTRAL[theme], (change > 0 ? SLOWER : FASTER)[theme]];
  return [to[0], from[1] + (to[1] - from[1]) * strength, from[2] + (to[2] - from[2]) * strength];
}

/** The statistics that judge a function with its callees. */
export function judgedOf(row) {
  return row?.total ?? row?.self ?? null;
}

/** True where the difference of a node's function may be chance, or nothing is known of it. */
export function cannotBeTold({ byFunction }, key) {
  const judged = key < 0 ? null : judgedOf(byFunction.get(functionOf(key)));
  return judged === null || judged.verdict === 'cannot be told';
}

/** A value with half of its interval; shares are in percent, other values are counts. */
export function valueText(value, half, per) {
  if (per === 'share') {
    return `${formatPercent(value / 100)} ${formatHalf((half ?? NaN) / 100)}`.trim();
  }
  return half === null || !Number.isFinite(half) ? formatShort(value) : `${formatShort(value)} ±${formatShort(half)}`;
}

/** A change with its sign, and half of its interval. */
export function changeText({ change, low, high }, per) {
  const sign = change > 0 ? '+' : change < 0 ? '−' : '';
  return `${sign}${valueText(Math.abs(change), (high - low) / 2, per)}`;
}

/** The verdict, and how large a change would have to be. */
export function verdictText({ verdict, smallest }, per) {
  const least = Number.isFinite(smallest) ? ` (a change of ${valueText(smallest, null, per)} would be found)` : '';
  return `${verdict}${verdict === 'cannot be told' ? least : ''}`;
}

/** The same for a cell: in brackets stands the smallest change that would have been found. */
export function verdictShort({ verdict, smallest }, per) {
  const least = verdict === 'cannot be told' && Number.isFinite(smallest) ? ` (${valueText(smallest, null, per)})` : '';
  return `${verdict}${least}`;
}

/** Rows whose names contain a text. */
export function comparedRows({ rows }, filter) {
  const text = filter.toLowerCase();
  const has = ({ name, binary }) => name.toLowerCase().includes(text) || binary.toLowerCase().includes(text);
  return text === '' ? rows : rows.filter((row) => has(row) || (row.renamed !== null && has(row.renamed)));
}
