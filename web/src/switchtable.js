// The call tree of context switches, as a table that opens where it is clicked.

import { el } from './dom.js';
import { formatCount, formatDuration } from './format.js';
import { onlyWay, openedNodes, shownNodes } from './switches.js';

/** @import { SwitchTree } from './types.d.ts' */

/** Rows that are elements at most; the page gives the number of rows left out. */
const MAX_SWITCH_ROWS = 2000;

/** @typedef {'cpuNs' | 'waitNs' | 'sync' | 'preempt' | 'lossy' | 'open' | 'throughout'} SwitchSum
 *  @typedef {{ id: SwitchSum, label: string, format: (value: number) => string, optional?: boolean }} SwitchColumn */

/** @type {readonly SwitchColumn[]} */
const SWITCH_COLUMNS = [
  { id: 'cpuNs', label: 'CPU Time', format: formatDuration },
  { id: 'waitNs', label: 'Inactive Wait Time', format: formatDuration },
  { id: 'sync', label: 'Inactive Sync Wait Count', format: formatCount },
  { id: 'preempt', label: 'Preemption Wait Count', format: formatCount },
  { id: 'lossy', label: 'Lossy Waits', format: formatCount, optional: true },
  { id: 'open', label: 'Open Waits', format: formatCount, optional: true },
  { id: 'throughout', label: 'Throughout Waits', format: formatCount, optional: true },
];

export class SwitchTable {
  /** @type {SwitchTree | null} */
  tree = null;
  /** @type {'callee' | 'caller'} */
  direction = 'callee';

  /** @param {HTMLElement} container */
  constructor(container) {
    this.container = container;
    /** @type {Record<string, Set<string>>} Paths of names that show their children, by direction. */
    this.opened = {};
  }

  /** Shows a tree from one end.
   *  @param {SwitchTree} tree
   *  @param {'callee' | 'caller'} direction */
  show(tree, direction) {
    if (this.tree === tree && this.direction === direction) {
      return;
    }
    [this.tree, this.direction] = [tree, direction];
    if (this.opened[direction] === undefined && tree.parent.length > 0) {
      this.opened[direction] = new Set();
      this.#open(tree, 0, '');
    }
    this.#render(tree);
  }

  /** @param {SwitchTree} tree */
  #render(tree) {
    const columns = SWITCH_COLUMNS.filter(({ id, optional }) => !optional || tree[id].some((value) => value > 0));
    const { paths, open } = openedNodes(tree, this.opened[this.direction] ?? new Set());
    const rows = shownNodes(tree, open);
    const head = el(
      'tr',
      {},
      ...columns.map(({ label }) => el('th', { scope: 'col' }, label)),
      el('th', { scope: 'col', class: 'stack' }, 'Function / Call Stack'),
    );
    const body = rows.slice(0, MAX_SWITCH_ROWS).map((row) => this.#row(tree, columns, row, open.has(row.node), paths));
    const left = [];
    if (rows.length > MAX_SWITCH_ROWS) {
      left.push(`${formatCount(rows.length - MAX_SWITCH_ROWS)} rows are not shown: close some`);
    }
    if (tree.leftOut > 0) {
      left.push(`${formatCount(tree.leftOut)} light call stacks are not on this page`);
    }
    if (rows.length === 0) {
      left.push('no wait and no CPU time in this selection');
    }
    this.container.replaceChildren(
      el('table', { class: 'switch-table' }, el('thead', {}, head), el('tbody', {}, ...body)),
      ...left.map((text) => el('p', { class: 'left-out' }, text)),
    );
  }

  /** @param {SwitchTree} tree
   *  @param {readonly SwitchColumn[]} columns
   *  @param {{ node: number, depth: number }} row
   *  @param {boolean} isOpen
   *  @param {Map<number, string>} paths */
  #row(tree, columns, { node, depth }, isOpen, paths) {
    const name = tree.nameOf(node);
    const toggle = tree.children[node] === 0 ? el('span', { class: 'toggle' }) : el(
      'button',
      {
        type: 'button',
        class: 'toggle',
        'aria-expanded': String(isOpen),
        'aria-label': `Call stacks through ${name}`,
        onclick: () => this.#toggle(tree, node, paths),
      },
      isOpen ? '▾' : '▸',
    );
    const stack = el('td', { class: 'stack', title: name }, toggle, name);
    stack.style.paddingLeft = `${8 + depth * 14}px`;
    return el('tr', {}, ...columns.map(({ id, format }) => el('td', {}, format(tree[id][node]))), stack);
  }

  /** Opens a node and the only way below it; `above` is the path of its parent.
   *  @param {SwitchTree} tree
   *  @param {number} node
   *  @param {string} above */
  #open(tree, node, above) {
    let path = above;
    for (const at of onlyWay(tree, node)) {
      path += `\n${tree.nameOf(at)}`;
      this.opened[this.direction].add(path);
    }
  }

  /** @param {SwitchTree} tree
   *  @param {number} node
   *  @param {Map<number, string>} paths */
  #toggle(tree, node, paths) {
    if (!this.opened[this.direction].delete(paths.get(node) ?? '')) {
      this.#open(tree, node, paths.get(tree.parent[node]) ?? '');
    }
    this.#render(tree);
  }
}
