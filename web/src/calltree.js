// The call tree as a table that opens where it is clicked: only the rows in view are elements.

import { button, el, swatch } from './dom.js';
import { formatHalf, formatPercent } from './format.js';
import { findInRow, rowCount } from './layout.js';
import { shortenName } from './names.js';
import { stepByKey } from './rowlist.js';

/** @import { CallTreeData, CallTreeRow, Intervals, LaidOut } from './types.d.ts' */

const TREE_ROW_PX = 24;
const INDENT_PX = 12;
/** Deeper rows are not moved further to the right. */
const MAX_INDENTS = 40;
const TREE_OVERSCAN = 8;
/** Rows that are open at most. */
const MAX_TREE_ROWS = 50_000;
/** A row opens by itself as long as one child has this share of it. */
const MAIN_SHARE = 0.5;
const TREE_CHARACTER_PX = 7.23;

/** Children with weight, heaviest first.
 *  @param {LaidOut} laidOut
 *  @param {number} node
 *  @returns {number[]} */
function childrenOf({ graph, layout, weight }, node) {
  const row = graph.depth[node] + 1;
  const children = [];
  if (row < rowCount(layout)) {
    const end = layout.x[node] + weight[node];
    for (let at = findInRow(layout, row, layout.x[node]); at < layout.rowStart[row + 1]; at++) {
      const child = layout.order[at];
      if (layout.x[child] >= end) {
        break;
      }
      if (graph.parent[child] === node) {
        children.push(child);
      }
    }
  }
  return children;
}

/** Rows {node, path, isOpen, hasChildren} in view where `opened` has the paths of open nodes.
 *  @param {LaidOut} laidOut
 *  @param {ReadonlySet<string>} opened */
function treeRows(laidOut, opened, max = MAX_TREE_ROWS) {
  const rows = [];
  const waiting = childrenOf(laidOut, 0).reverse().map((node) => ({ node, path: `${laidOut.graph.key[node]}` }));
  while (waiting.length > 0 && rows.length < max) {
    const { node, path } = /** @type {{ node: number, path: string }} */ (waiting.pop());
    const isOpen = opened.has(path);
    const hasChildren = laidOut.layout.height[node] > 0;
    rows.push({ node, path, isOpen: isOpen && hasChildren, hasChildren });
    if (isOpen) {
      const below = childrenOf(laidOut, node).reverse();
      waiting.push(...below.map((child) => ({ node: child, path: `${path}.${laidOut.graph.key[child]}` })));
    }
  }
  return { rows, cut: waiting.length > 0 };
}

/** Paths that opening `path` opens: on along the child that has most of it.
 *  @param {LaidOut} laidOut
 *  @param {number} node
 *  @param {string} path */
function mainWay(laidOut, node, path) {
  const { graph, weight } = laidOut;
  const way = [path];
  let [at, on] = [node, path];
  for (;;) {
    const [child] = childrenOf(laidOut, at);
    if (child === undefined || weight[child] < weight[at] * MAIN_SHARE || way.length > 1000) {
      return way;
    }
    on = `${on}.${graph.key[child]}`;
    at = child;
    way.push(on);
  }
}

export class CallTree {
  /** @type {CallTreeData | undefined} */
  data;

  /** `on` has menu(node, x, y), key(event, node), status(node) and opened(), after which other rows are open.
   *  @param {HTMLElement} container
   *  @param {{ menu: (node: number, x: number, y: number) => void, key: (event: KeyboardEvent, node: number) => void, status: (node: number) => void, opened: () => void }} on */
  constructor(container, on) {
    this.on = on;
    /** @type {Set<string>} */
    this.opened = new Set();
    /** @type {CallTreeRow[]} */
    this.rows = [];
    this.current = 0;
    /** @type {Intervals | null} */
    this.intervals = null;
    /** @param {string} id
     *  @param {string} label
     *  @param {string} title */
    const column = (id, label, title) => el('div', { role: 'columnheader', class: `cell ${id}`, title }, label);
    const head = el(
      'div',
      { role: 'row', class: 'table-head tree-grid' },
      column('total', 'Total', 'Samples with this stack: self and callees'),
      column('self', 'Self', 'Samples that end here'),
      column('name', 'Function', 'Function name'),
      column('binary', 'Binary', 'Binary that holds the function'),
    );
    this.body = el('div', { class: 'table-body', role: 'rowgroup' });
    this.scroller = el('div', { class: 'table-scroller', tabindex: '0', role: 'treegrid', 'aria-label': 'Call tree' }, head, this.body);
    this.note = el('p', { class: 'left-out', hidden: true });
    container.append(el('div', { class: 'table' }, this.scroller, this.note));
    this.scroller.addEventListener('scroll', () => this.#render(), { passive: true });
    this.scroller.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.#render()).observe(this.scroller);
  }

  /** Shows a graph: `data` has graph, layout, weight, self (or null), total, name(node), binary(node), format(weight),
   *  colour(node), chosen(node), kind (opened rows are kept for the same kind).
   *  @param {CallTreeData} data */
  show(data) {
    const isNew = this.data === undefined || this.data.kind !== data.kind;
    this.data = data;
    this.intervals = null;
    if (isNew) {
      this.opened = new Set();
      const [heaviest] = childrenOf(data, 0);
      if (heaviest !== undefined) {
        mainWay(data, heaviest, `${data.graph.key[heaviest]}`).forEach((path) => this.opened.add(path));
      }
      this.current = 0;
    }
    this.#collect();
  }

  /** The drawn tree; there is none before the first `show`. */
  get shown() {
    if (this.data === undefined) {
      throw new Error('no call tree is shown');
    }
    return this.data;
  }

  /** Nodes of the open rows. */
  nodes() {
    return this.rows.map(({ node }) => node);
  }

  /** Shows intervals as well: {self, total}, each with half(node), or null.
   *  @param {Intervals | null} intervals */
  showIntervals(intervals) {
    this.intervals = intervals;
    this.#render();
  }

  /** @param {'self' | 'total'} id
   *  @param {number} node */
  #half(id, node) {
    return el('span', { class: 'half-width', title: 'Half of the 95 % interval' }, this.intervals === null ? '' : formatHalf(this.intervals[id].half(node)));
  }

  #collect() {
    const { rows, cut } = treeRows(this.shown, this.opened);
    this.rows = rows;
    this.current = Math.max(0, Math.min(this.current, rows.length - 1));
    this.note.hidden = !cut;
    this.note.textContent = cut ? `more rows are open than are shown (${MAX_TREE_ROWS}): close some` : '';
    this.body.style.height = `${rows.length * TREE_ROW_PX}px`;
    this.#render();
  }

  #render() {
    if (this.data === undefined || this.scroller.clientHeight === 0) {
      return;
    }
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / TREE_ROW_PX) - TREE_OVERSCAN);
    const count = Math.ceil(this.scroller.clientHeight / TREE_ROW_PX) + 2 * TREE_OVERSCAN;
    this.body.replaceChildren(...this.rows.slice(first, first + count).map((row, i) => this.#row(row, first + i)));
  }

  /** @param {CallTreeRow} row
   *  @param {number} index */
  #row({ node, path, isOpen, hasChildren }, index) {
    const { graph, weight, self, total, name, binary, format, colour, chosen } = this.shown;
    /** @param {'self' | 'total'} id
     *  @param {number | null} value */
    const cell = (id, value) => el(
      'div',
      { role: 'gridcell', class: `cell ${id}` },
      ...(value === null ? [] : [el('span', { class: 'percent' }, formatPercent(total > 0 ? value / total : 0)), this.#half(id, node), el('small', {}, format(value))]),
    );
    const text = name(node);
    const indent = Math.min(MAX_INDENTS, graph.depth[node] - 1) * INDENT_PX;
    const room = Math.max(12, Math.floor((this.scroller.clientWidth - 650 - indent) / TREE_CHARACTER_PX));
    const toggle = hasChildren
      ? button(isOpen ? '▾' : '▸', (event) => {
        event.stopPropagation();
        this.#toggle(index);
      }, { class: 'toggle', tabindex: '-1', 'aria-label': `${isOpen ? 'Close' : 'Open'} ${text}` })
      : el('span', { class: 'toggle' });
    const label = el('div', { role: 'gridcell', class: 'cell name', title: text }, toggle, swatch(colour(node)), el('span', {}, shortenName(text, room)));
    label.style.paddingLeft = `${10 + indent}px`;
    const element = el(
      'div',
      {
        role: 'row',
        class: `table-row tree-grid${index === this.current ? ' current' : ''}${chosen(node) ? ' chosen' : ''}`,
        'aria-current': chosen(node) ? 'true' : null,
        'aria-level': String(graph.depth[node]),
        'aria-expanded': hasChildren ? String(isOpen) : null,
        'data-path': path,
        onclick: () => this.#select(index),
        ondblclick: () => this.#toggle(index),
        oncontextmenu: (event) => {
          event.preventDefault();
          this.#select(index);
          this.on.menu(node, event.clientX, event.clientY);
        },
      },
      cell('total', weight[node]),
      cell('self', self === null || self[node] === 0 ? null : self[node]),
      label,
      el('div', { role: 'gridcell', class: 'cell binary' }, binary(node)),
    );
    element.style.top = `${index * TREE_ROW_PX}px`;
    return element;
  }

  /** @param {number} index */
  #select(index) {
    this.current = index;
    const top = index * TREE_ROW_PX;
    const head = 32;
    const bottom = top + TREE_ROW_PX + head - this.scroller.clientHeight;
    this.scroller.scrollTop = Math.min(top, Math.max(bottom, this.scroller.scrollTop));
    this.#render();
    this.on.status(this.rows[index].node);
  }

  /** @param {number} index */
  #toggle(index) {
    const { node, path, isOpen } = this.rows[index];
    if (isOpen) {
      this.opened.delete(path);
    } else {
      mainWay(this.shown, node, path).forEach((opened) => this.opened.add(opened));
    }
    this.#collect();
    this.on.opened();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const row = this.rows[this.current];
    if (row === undefined || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const step = stepByKey(event.key, Math.floor(this.scroller.clientHeight / TREE_ROW_PX) - 2);
    if (step !== undefined) {
      event.preventDefault();
      this.#select(Math.max(0, Math.min(this.rows.length - 1, this.current + step)));
    } else if (event.key === 'ArrowRight' && row.hasChildren && !row.isOpen) {
      event.preventDefault();
      this.opened.add(row.path);
      this.#collect();
      this.on.opened();
    } else if (event.key === 'ArrowRight' && row.isOpen) {
      event.preventDefault();
      this.#select(this.current + 1);
    } else if (event.key === 'ArrowLeft') {
      event.preventDefault();
      this.#closeOrLeave(row);
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.#toggle(this.current);
    } else {
      this.on.key(event, row.node);
    }
  }

  /** @param {CallTreeRow} row */
  #closeOrLeave(row) {
    if (row.isOpen) {
      this.opened.delete(row.path);
      this.#collect();
      return;
    }
    const above = this.rows.findIndex(({ node }) => node === this.shown.graph.parent[row.node]);
    if (above >= 0) {
      this.#select(above);
    }
  }
}
