// The comparison of waits, locks, requests: a table for each, a line for each value of a row that differs.

import { el } from './dom.js';
import { formatDuration, formatShort, plural } from './format.js';
import { cleanName } from './names.js';

/** @import { Measure, MeasureQuantity, MeasureRow, MeasureValue } from './types.d.ts' */

const UNDECIDED = 'cannot be told';

const HEAD = [['Name', 'name'], ['Value', 'binary'], ['Before', 'value'], ['After', 'value'], ['Change', 'value'], ['Verdict', 'verdict']];

const TITLES = { waits: 'Waits', locks: 'Locks', wall: 'Wall time', requests: 'Requests', stat: 'Counts' };

/** @param {MeasureQuantity} quantity
 *  @param {number} value */
function measureValue(quantity, value) {
  return quantity.unit === 'ns' ? formatDuration(Math.abs(value)) : formatShort(Math.abs(value));
}

/** A quantity with its divisor.
 *  @param {MeasureQuantity} quantity
 *  @param {boolean} hasUnits */
export function quantityText({ name, per }, hasUnits) {
  const divisor = per === 'run' && hasUnits ? 'unit' : per;
  return divisor === null ? name : `${name} per ${divisor}`;
}

/** The lines of a row: the first value, and all others that differ; all of requests.
 *  @param {Measure} measure
 *  @param {MeasureRow} row
 *  @returns {{ value: MeasureValue, quantity: MeasureQuantity, verdict: string }[]} */
export function measureLines(measure, row) {
  const byName = new Map(measure.quantities.map((quantity) => [quantity.name, quantity]));
  return row.values.flatMap((value, at) => {
    const quantity = byName.get(value.quantity);
    const isShown = at === 0 || value.verdict !== UNDECIDED || measure.kind === 'requests';
    if (quantity === undefined || !isShown) {
      return [];
    }
    const smallest = value.smallest === null ? '' : ` (${measureValue(quantity, value.smallest)})`;
    const isWhole = at === 0 && row.verdict !== UNDECIDED && measure.kind !== 'requests';
    const own = value.verdict === UNDECIDED ? `${UNDECIDED}${smallest}` : value.verdict;
    return [{ value, quantity, verdict: isWhole ? row.verdict : own }];
  });
}

/** @param {MeasureQuantity} quantity
 *  @param {MeasureValue} value */
function measureChange(quantity, { change, low, high }) {
  const sign = change > 0 ? '+' : change < 0 ? '−' : '';
  const half = low === null || high === null ? '' : ` ± ${measureValue(quantity, (high - low) / 2)}`;
  return `${sign}${measureValue(quantity, change)}${half}`;
}

export class MeasuresView {
  hasOwnWeights = true;

  /** @param {readonly Measure[]} measures */
  constructor(measures) {
    const section = document.getElementById('view-measures');
    section?.classList.add('measures');
    section?.replaceChildren(...measures.flatMap((measure) => this.#table(measure)));
  }

  // Nothing that the page selects changes the tables.
  show() {}

  /** @param {Measure} measure */
  #table(measure) {
    /** @param {string} role
     *  @param {string} kind
     *  @param {string} text */
    const cell = (role, kind, text) => el('span', { role, class: `compare-${kind}`, title: text }, text);
    const rows = [...(measure.whole === null ? [] : [measure.whole]), ...measure.rows];
    const lines = rows.flatMap((row) => measureLines(measure, row).map(({ value, quantity, verdict }) => {
      const name = row.name.length === 0 ? `all ${measure.kind}` : row.name.map(cleanName).join(' · ');
      const line = el('div', { role: 'row', class: 'measure-row' },
        cell('gridcell', 'name', name),
        cell('gridcell', 'binary', quantityText(quantity, measure.units !== null)),
        cell('gridcell', 'value', measureValue(quantity, value.before)),
        cell('gridcell', 'value', measureValue(quantity, value.after)),
        cell('gridcell', 'value', measureChange(quantity, value)),
        cell('gridcell', 'verdict', verdict));
      line.dataset.differs = String(value.verdict !== UNDECIDED);
      return line;
    }));
    const differ = measure.rows.filter((row) => row.verdict !== UNDECIDED).length;
    const title = TITLES[measure.kind];
    return [
      el('h2', {}, `${title}: ${plural(differ, 'row')} of ${measure.rows.length} with a difference, ${plural(measure.tests, 'test')} judged together`),
      ...measure.warnings.map((warning) => el('p', { class: 'measure-note' }, cleanName(warning))),
      el('div', { role: 'grid', 'aria-label': `${title} by difference`, class: 'measure-table' },
        el('div', { role: 'row', class: 'measure-row measure-head' }, ...HEAD.map(([label, kind]) => cell('columnheader', kind, label))),
        ...lines),
    ];
  }
}
