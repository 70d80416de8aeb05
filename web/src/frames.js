// A flame graph of the page's call tree: what pointer, keys and menu do with its frames.

import { codeFor } from './code.js';
import { byId, setStatus } from './dom.js';
import { FlameGraph } from './flame.js';
import { formatPercent, plural } from './format.js';
import { frameTip } from './frametip.js';
import { TRANSFORM_KEYS } from './transformbar.js';
import { functionOf, isInlined, pathTo } from './tree.js';

/** @import { Page } from './page.d.ts' */
/** @import { FlamePlace, Keys, LaidOut, MenuItem } from './types.d.ts' */

export class FrameGraph {
  /** `path` names the part of the state that has the path to the zoomed frame. The graph of `zoom` is the whole one, the
   *  others are those of one function.
   *  @param {Page} page
   *  @param {string} id
   *  @param {'zoom' | 'callers' | 'callees'} path */
  constructor(page, id, path) {
    this.page = page;
    this.path = path;
    this.flame = new FlameGraph(byId(id), {
      zoom: (node) => this.#zoomTo(node),
      open: (node) => this.#open(node),
      hover: (node, event) => (
        page.tooltip.follow(event, `${path} ${node} ${page.model.selectionKey}`, node < 0 ? null : { graph: this, node })),
      menu: (node, x, y) => this.#menu(node, x, y),
      current: (node) => setStatus(this.#summary(node)),
      key: (event, node) => this.#key(event, node),
    });
  }

  /** Draws a graph in the colours of the page.
   *  @param {LaidOut} laidOut
   *  @param {FlamePlace} place
   *  @param {boolean} animate */
  show(laidOut, place, animate) {
    const { model, colouring } = this.page;
    this.flame.show({
      ...laidOut, ...colouring.marks(), base: 0, nothing: '', ...place, name: (node) => model.nodeName(laidOut.graph, node),
    }, { animate });
  }

  /** Elements of the tooltip of a frame.
   *  @param {number} node */
  tip(node) {
    const { model, theme } = this.page;
    return frameTip(model, this.flame.shown, node, { theme: theme.name, topDown: this.#isTopDown() });
  }

  /** True for the whole graph from the root down. */
  #isTopDown() {
    return this.path === 'zoom' && this.page.state.stacks === 'top-down';
  }

  /** True for a frame of a function: neither the root nor a group.
   *  @param {number} node */
  #isCode(node) {
    const key = this.flame.shown.graph.key[node];
    return key >= 0 && !this.page.model.isGroup(key);
  }

  /** @param {number} node */
  #zoomTo(node) {
    this.page.go({ [this.path]: pathTo(this.flame.shown.graph, node) }, { animate: true });
  }

  /** @param {number} node */
  #open(node) {
    if (this.#isCode(node)) {
      this.page.actions.open(functionOf(this.flame.shown.graph.key[node]));
    }
  }

  /** The function whose code a frame is part of: an inlined one belongs to the function around it.
   *  @param {number} node */
  #codeAround(node) {
    const { model, code } = this.page;
    const { graph } = this.flame.shown;
    const own = functionOf(graph.key[node]);
    if (!this.#isTopDown() || code === null || codeFor(code, own, model.functionName(own)) >= 0) {
      return own;
    }
    let at = node;
    while (isInlined(graph.key[at]) && graph.parent[at] > 0) {
      at = graph.parent[at];
    }
    return model.isGroup(graph.key[at]) ? own : functionOf(graph.key[at]);
  }

  /** @param {KeyboardEvent} event
   *  @param {number} node */
  #key(event, node) {
    const action = this.#keys(node)[event.key] ?? this.#transformOf(event.key, node);
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  }

  /** @param {number} node
   *  @returns {Keys} */
  #keys(node) {
    const { actions, model } = this.page;
    const { graph, zoom } = this.flame.shown;
    const { openCode } = actions;
    return {
      Backspace: () => this.#zoomTo(Math.max(0, graph.parent[zoom])),
      Escape: () => this.#zoomTo(0),
      Home: () => this.#zoomTo(0),
      c: () => actions.copyName(model.nodeName(graph, node)),
      s: () => this.#open(node),
      ...(openCode !== null && this.#isCode(node) ? { a: () => openCode(this.#codeAround(node)) } : {}),
    };
  }

  /** The change of the call tree that a key makes by a frame.
   *  @param {string} key
   *  @param {number} node */
  #transformOf(key, node) {
    const isChange = TRANSFORM_KEYS[key] !== undefined && this.flame.shown.graph.key[node] >= 0;
    return isChange ? this.#transformItems(node).find(([, , hint]) => hint === key)?.[1] : undefined;
  }

  /** @param {number} node */
  #transformItems(node) {
    const { graph } = this.flame.shown;
    const isWhole = this.#isTopDown() && !graph.inTime;
    return this.page.actions.transformItems(graph.key[node], isWhole ? pathTo(graph, node) : null);
  }

  /** @param {number} node
   *  @param {number} x
   *  @param {number} y */
  #menu(node, x, y) {
    const { actions, tooltip } = this.page;
    const { graph } = this.flame.shown;
    /** @type {MenuItem} */
    const zoom = ['Zoom to this frame', () => this.#zoomTo(node), 'Enter'];
    tooltip.hide();
    if (graph.key[node] < 0) {
      actions.popup.open('all', [zoom], x, y);
      return;
    }
    /** @type {MenuItem} */
    const copyStack = ['Copy stack', () => actions.copy(this.#stackText(node), 'Stack copied')];
    actions.menu(functionOf(graph.key[node]), [zoom, copyStack, ...this.#transformItems(node)], x, y);
  }

  /** Names from the root to a node (or from the leaf), for the clipboard: folded, root first.
   *  @param {number} node */
  #stackText(node) {
    const { page: { model, state }, path, flame: { shown: { graph } } } = this;
    const names = [];
    for (let at = node; at > 0 || (at === 0 && graph.key[0] >= 0); at = graph.parent[at]) {
      names.push(model.nodeName(graph, at));
    }
    const fromLeaf = path === 'callers' || (path === 'zoom' && state.stacks === 'bottom-up');
    return (fromLeaf ? names : names.reverse()).join(';');
  }

  /** @param {number} node */
  #summary(node) {
    const { model } = this.page;
    const { graph, weight } = this.flame.shown;
    const share = formatPercent(model.total > 0 ? weight[node] / model.total : 0);
    return `${model.nodeName(graph, node)}: ${share}, ${plural(graph.totalSamples[node], 'sample')}`;
  }
}
