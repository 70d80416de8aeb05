// The call tree of context switches, as a table that opens where it is clicked.

import { el } from './dom.js';
import { formatCount, formatDuration } from './format.js';
import { onlyWay, shownNodes } from './switches.js';

/** Rows that are elements at most; the page gives the number of rows left out. */
const MAX_SWITCH_ROWS = 2000;

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
  constructor(container, switches) {
    this.container = container;
    this.switches = switches;
    this.opened = { callee: new Set(), caller: new Set() };
    for (const direction of ['callee', 'caller']) {
      const tree = switches.trees[direction];
      if (tree.parent.length > 0) {
        onlyWay(tree, 0).forEach((node) => this.opened[direction].add(node));
      }
    }
  }

  /** Shows the tree from one end: `callee` or `caller`. */
  show(direction) {
    this.direction = direction;
    const tree = this.switches.trees[direction];
    const columns = SWITCH_COLUMNS.filter(({ id, optional }) => !optional || tree[id].some((value) => value > 0));
    const rows = shownNodes(tree, this.opened[direction]);
    const head = el(
      'tr',
      {},
      ...columns.map(({ label }) => el('th', { scope: 'col' }, label)),
      el('th', { scope: 'col', class: 'stack' }, 'Function / Call Stack'),
    );
    const body = rows.slice(0, MAX_SWITCH_ROWS).map((row) => this.#row(tree, columns, row));
    const left = [];
    if (rows.length > MAX_SWITCH_ROWS) {
      left.push(`${formatCount(rows.length - MAX_SWITCH_ROWS)} rows are not shown: close some`);
    }
    if (tree.leftOut > 0) {
      left.push(`${formatCount(tree.leftOut)} light call stacks are not on this page`);
    }
    this.container.replaceChildren(
      el('table', { class: 'switch-table' }, el('thead', {}, head), el('tbody', {}, ...body)),
      ...left.map((text) => el('p', { class: 'left-out' }, text)),
    );
  }

  #row(tree, columns, { node, depth }) {
    const opened = this.opened[this.direction];
    const name = this.switches.names[tree.name[node]];
    const isOpen = opened.has(node);
    const toggle = tree.children[node] === 0 ? el('span', { class: 'toggle' }) : el(
      'button',
      {
        type: 'button',
        class: 'toggle',
        'aria-expanded': String(isOpen),
        'aria-label': `Call stacks through ${name}`,
        onclick: () => this.#toggle(tree, node),
      },
      isOpen ? '▾' : '▸',
    );
    const stack = el('td', { class: 'stack', title: name }, toggle, name);
    stack.style.paddingLeft = `${8 + depth * 14}px`;
    return el('tr', {}, ...columns.map(({ id, format }) => el('td', {}, format(tree[id][node]))), stack);
  }

  #toggle(tree, node) {
    const opened = this.opened[this.direction];
    if (!opened.delete(node)) {
      onlyWay(tree, node).forEach((at) => opened.add(at));
    }
    this.show(this.direction);
  }
}
