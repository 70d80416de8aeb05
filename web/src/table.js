// The table of functions: only the rows in view are elements.

import { button, el, swatch } from './dom.js';
import { compileQuery } from './search.js';
import { formatHalf, formatPercent } from './format.js';
import { shortenName } from './names.js';
import { stepByKey } from './rowlist.js';

/** @import { FunctionRow, Intervals, State, TableEvents } from './types.d.ts' */

const TABLE_ROW_PX = 28;
const HEAD_PX = 32;
const OVERSCAN_ROWS = 8;
/** Width of a character of a name, and of all else in its cell. */
const NAME_CHARACTER_PX = 7.23;
const NAME_EXTRA_PX = 42;

/** @type {readonly { id: State['sort'], label: string, title: string }[]} */
const COLUMNS = [
  { id: 'self', label: 'Self', title: 'Samples whose innermost frame is this function' },
  { id: 'total', label: 'Children', title: 'Samples with this function anywhere on the stack: self and callees' },
  { id: 'name', label: 'Function', title: 'Function name' },
  { id: 'binary', label: 'Binary', title: 'Binary that holds the function' },
];

/** Compares rows by a column; ties go by weight, then by name.
 *  @param {State['sort']} sort
 *  @param {boolean} ascending */
export function compareRows(sort, ascending) {
  /** @param {FunctionRow} a
   *  @param {FunctionRow} b
   *  @param {(row: FunctionRow) => string} of */
  const text = (a, b, of) => of(a).localeCompare(of(b));
  /** @type {Record<State['sort'], (a: FunctionRow, b: FunctionRow) => number>} */
  const orders = {
    self: (a, b) => a.self - b.self || a.total - b.total,
    total: (a, b) => a.total - b.total || a.self - b.self,
    name: (a, b) => text(a, b, (row) => row.name),
    binary: (a, b) => text(a, b, (row) => row.binary),
  };
  const by = orders[sort];
  const sign = ascending ? 1 : -1;
  return (/** @type {FunctionRow} */ a, /** @type {FunctionRow} */ b) => sign * by(a, b) || b.total - a.total || a.name.localeCompare(b.name);
}

export class FunctionTable {
  /** @param {HTMLElement} container
   *  @param {TableEvents} on */
  constructor(container, on) {
    this.on = on;
    /** @type {FunctionRow[]} */
    this.rows = [];
    /** @type {Intervals | null} */
    this.intervals = null;
    /** @type {(weight: number) => string} */
    this.format = String;
    /** @type {number | null} The function whose row is marked. */
    this.chosen = null;
    this.current = 0;
    this.headers = Object.fromEntries(COLUMNS.map(({ id, label, title }) => (
      [id, el('div', { role: 'columnheader', class: `cell ${id}`, title }, button(label, () => on.sort(id)))])));
    this.body = el('div', { class: 'table-body', role: 'rowgroup' });
    const head = el('div', { role: 'row', class: 'table-head' }, ...Object.values(this.headers), el('div', { class: 'cell act' }));
    this.scroller = el('div', { class: 'table-scroller', tabindex: '0', role: 'presentation' }, head, this.body);
    this.element = el('div', { class: 'table', role: 'table', 'aria-label': 'Functions by weight' }, this.scroller);
    container.append(this.element);
    this.scroller.addEventListener('scroll', () => this.#render(), { passive: true });
    this.scroller.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.#render()).observe(this.scroller);
  }

  /** Shows rows, weights as shares and as text by `format`; the row of the function `chosen` (null for none) is marked, and scrolled into view.
   *  @param {FunctionRow[]} rows
   *  @param {{ sort: State['sort'], ascending: boolean, filter: string, format: (weight: number) => string, chosen: number | null }} options */
  show(rows, { sort, ascending, filter, format, chosen }) {
    const query = compileQuery(filter, false);
    /** @param {FunctionRow} row */
    const passes = (row) => query === null || query.test(row.name) || query.test(row.binary);
    this.rows = rows.filter(passes).sort(compareRows(sort, ascending));
    this.format = format;
    this.intervals = null;
    this.chosen = chosen;
    this.current = Math.max(0, chosen === null ? 0 : this.rows.findIndex(({ fn }) => fn === chosen));
    for (const [id, header] of Object.entries(this.headers)) {
      header.setAttribute('aria-sort', id !== sort ? 'none' : ascending ? 'ascending' : 'descending');
    }
    this.element.setAttribute('aria-rowcount', String(this.rows.length + 1));
    this.body.style.height = `${this.rows.length * TABLE_ROW_PX}px`;
    const room = this.scroller.clientHeight - HEAD_PX - TABLE_ROW_PX;
    this.scroller.scrollTop = this.current * TABLE_ROW_PX > room ? this.current * TABLE_ROW_PX - room / 2 : 0;
    this.#render();
    return this.rows.length;
  }

  #render() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / TABLE_ROW_PX) - OVERSCAN_ROWS);
    const visible = Math.ceil(this.scroller.clientHeight / TABLE_ROW_PX) + 2 * OVERSCAN_ROWS;
    const rows = this.rows.slice(first, first + visible);
    // A focused button must not vanish under the keyboard.
    const focused = this.body.contains(document.activeElement);
    this.body.replaceChildren(...rows.map((row, i) => this.#row(row, first + i)));
    if (focused) {
      this.scroller.focus({ preventScroll: true });
    }
  }

  /** Characters that a name has room for: those of a function lose its scopes and arguments, not its end. */
  #nameLength() {
    const width = this.headers.name.clientWidth - NAME_EXTRA_PX;
    return Math.max(12, Math.floor(width / NAME_CHARACTER_PX));
  }

  /** @param {FunctionRow} row
   *  @param {number} index */
  #row(row, index) {
    /** @param {'self' | 'total'} id */
    const weight = (id) => el(
      'div',
      { role: 'cell', class: `cell ${id}` },
      el('span', { class: 'percent' }, formatPercent(row[`${id}Share`])),
      el('span', { class: 'half-width', title: 'Half of the 95 % interval' }, this.#half(row.fn, id)),
      this.#bar(row[`${id}Share`]),
      el('small', {}, this.format(row[id])),
    );
    const element = el(
      'div',
      { role: 'row', class: `table-row${index === this.current ? ' current' : ''}${row.fn === this.chosen ? ' chosen' : ''}`, 'aria-current': row.fn === this.chosen ? 'true' : null, 'aria-rowindex': String(index + 2), 'data-fn': String(row.fn), oncontextmenu: (event) => {
        event.preventDefault();
        this.on.menu(row.fn, event.clientX, event.clientY);
      } },
      weight('self'),
      weight('total'),
      el(
        'div',
        { role: 'cell', class: 'cell name' },
        swatch(row.colour),
        button(shortenName(row.name, this.#nameLength()), () => this.on.find(row.fn), { class: `link${row.known ? '' : ' unknown'}`, title: `${row.name}\nShow in the graph`, tabindex: '-1' }),
      ),
      el('div', { role: 'cell', class: 'cell binary', title: row.binaryPath }, row.binary),
      el('div', { role: 'cell', class: 'cell act' }, button('⇅', () => this.on.open(row.fn), {
        class: 'icon', title: 'Callers and callees (s)', 'aria-label': `Callers and callees of ${row.name}`, tabindex: '-1',
      }), row.hasCode ? button('≡', () => this.on.code?.(row.fn), {
        class: 'icon', title: 'Source and assembly (a)', 'aria-label': `Source and assembly of ${row.name}`, tabindex: '-1',
      }) : null),
    );
    element.style.top = `${index * TABLE_ROW_PX}px`;
    return element;
  }

  /** Half of an interval, in points of percent.
   *  @param {number} fn
   *  @param {'self' | 'total'} id */
  #half(fn, id) {
    return this.intervals === null ? '' : formatHalf(this.intervals[id].half(fn));
  }

  /** Shows intervals as well: {self, total}, each with half(fn).
   *  @param {Intervals | null} intervals */
  showIntervals(intervals) {
    this.intervals = intervals;
    this.#render();
  }

  /** @param {number} share */
  #bar(share) {
    const fill = el('span', { class: 'fill' });
    fill.style.width = `${Math.min(100, share * 100)}%`;
    return el('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const step = stepByKey(event.key, Math.floor(this.scroller.clientHeight / TABLE_ROW_PX) - 1);
    const row = this.rows[this.current];
    if (step !== undefined) {
      event.preventDefault();
      this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + step));
      const top = this.current * TABLE_ROW_PX;
      const bottom = top + TABLE_ROW_PX + HEAD_PX - this.scroller.clientHeight;
      this.scroller.scrollTop = Math.min(top, Math.max(bottom, this.scroller.scrollTop));
      this.#render();
    } else if (row && event.key === 'Enter') {
      event.preventDefault();
      this.on.find(row.fn);
    } else if (row && event.key === 's') {
      event.preventDefault();
      this.on.open(row.fn);
    } else if (row && event.key === 'a' && this.on.code !== null) {
      event.preventDefault();
      this.on.code(row.fn);
    }
  }
}
