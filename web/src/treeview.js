// The view of the call tree: what its rows show, and their menu and keys.

import { CallTree } from './calltree.js';
import { byId, setStatus } from './dom.js';
import { formatPercent } from './format.js';
import { functionOf, pathTo } from './tree.js';

/** @import { Page } from './page.d.ts' */
/** @import { Keys, MenuItem } from './types.d.ts' */

export class TreeView {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.rows = new CallTree(byId('call-tree'), {
      menu: (node, x, y) => this.#menu(node, x, y),
      key: (event, node) => this.#key(event, node),
      opened: () => page.renderIntervals(),
      status: (node) => setStatus(`${this.#name(node)}: ${formatPercent(this.rows.shown.weight[node] / page.model.total)}`),
    });
  }

  show() {
    const { model, state, colouring } = this.page;
    const laidOut = model.graph(state.stacks, []);
    const { graph } = laidOut;
    this.rows.show({
      ...laidOut,
      kind: `${state.stacks} ${model.root} ${JSON.stringify(state.transforms)}`,
      self: model.selfOf(graph),
      total: model.total,
      name: (node) => model.nodeName(graph, node),
      binary: (node) => model.functionDso(functionOf(graph.key[node])).name,
      format: (weight) => model.formatWeight(weight),
      colour: (node) => colouring.fill(graph.key[node]),
      chosen: (node) => functionOf(graph.key[node]) === state.fn,
    });
  }

  /** @returns {Keys} */
  keys() {
    const { page } = this;
    return { i: () => page.go({ stacks: page.state.stacks === 'top-down' ? 'bottom-up' : 'top-down', order: 'weight', zoom: [] }) };
  }

  intervals() {
    const { page: { model, state }, rows } = this;
    return state.stacks !== 'top-down' ? null : {
      steps: model.nodeIntervalSteps(rows.nodes()),
      show: rows.showIntervals.bind(rows),
    };
  }

  /** @param {number} node */
  #name(node) {
    return this.page.model.nodeName(this.rows.shown.graph, node);
  }

  /** @param {number} node */
  #transformItems(node) {
    const { graph } = this.rows.shown;
    const path = this.page.state.stacks === 'top-down' ? pathTo(graph, node) : null;
    return this.page.actions.transformItems(graph.key[node], path);
  }

  /** @param {number} node
   *  @param {number} x
   *  @param {number} y */
  #menu(node, x, y) {
    const { graph } = this.rows.shown;
    /** @type {MenuItem} */
    const show = ['Show in the graph', () => this.page.go({ view: 'graph', order: 'weight', zoom: pathTo(graph, node) })];
    this.page.actions.menu(functionOf(graph.key[node]), [show, ...this.#transformItems(node)], x, y);
  }

  /** @param {KeyboardEvent} event
   *  @param {number} node */
  #key(event, node) {
    const action = this.#transformItems(node).find(([, , key]) => key === event.key)?.[1] ?? this.#functionKeys(node)[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  }

  /** @param {number} node
   *  @returns {Keys} */
  #functionKeys(node) {
    const { actions, model } = this.page;
    const key = this.rows.shown.graph.key[node];
    const fn = functionOf(key);
    const { openCode } = actions;
    return model.isGroup(key) ? {} : {
      s: () => actions.open(fn),
      ...(openCode === null ? {} : { a: () => openCode(fn) }),
    };
  }
}
