// The view of the flame graph: its choices, the way to the zoomed frame, the legend.

import { fillChoice } from './controls.js';
import { button, byId, choiceButton, el } from './dom.js';
import { formatCount } from './format.js';
import { FrameGraph } from './frames.js';
import { MAX_INVERTED_NODES } from './invert.js';
import { shortenName } from './names.js';
import { MAX_TIME_NODES } from './timeorder.js';
import { MAX_GROUPED_NODES, findPath, functionOf, pathTo } from './tree.js';

/** @import { Page, Render } from './page.d.ts' */
/** @import { Graph } from './types.d.ts' */

const MAX_CRUMB_CHARACTERS = 36;

export class GraphView {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.frames = new FrameGraph(page, 'flame', 'zoom');
    const { groupings, moments } = page.model;
    fillChoice(byId('root'), [{ value: 'none', text: 'all' }, ...groupings.map(({ id, label }) => ({ value: id, text: label }))]);
    byId('root').addEventListener('change', () => page.go({ root: byId('root').value, zoom: [] }));
    choiceButton('order=time').disabled = moments === null;
  }

  /** @param {Render} render */
  show({ animate, live }) {
    const { state, model } = this.page;
    const isPlain = state.stacks === 'top-down' && state.order === 'weight';
    const laidOut = live && isPlain ? model.graphInMotion(state.zoom) : model.graph(state.stacks, state.zoom, state.order);
    const zoom = findPath(laidOut.graph, state.zoom);
    this.#showEmpty(laidOut.weight[0] === 0);
    byId('root').value = model.root;
    if (!live) {
      this.#renderBreadcrumb(laidOut.graph, zoom);
      this.page.colouring.renderLegend(byId('legend'));
    }
    const chosen = state.fn === null ? undefined : (/** @type {number} */ key) => functionOf(key) === state.fn;
    this.frames.show(laidOut, { zoom, up: state.shape === 'flame', chosen }, animate);
    byId('cut').textContent = this.#cutText(laidOut.graph);
    byId('cut').hidden = byId('cut').textContent === '';
  }

  /** The nodes that a bound took from a graph, in words; empty where none did.
   *  @param {Graph} graph */
  #cutText(graph) {
    if (this.page.model.tree.cut) {
      return `deepest frames left out: the tree has ${formatCount(MAX_GROUPED_NODES)} nodes`;
    }
    if (!graph.cut) {
      return '';
    }
    return graph.inTime ? `later samples left out after ${formatCount(MAX_TIME_NODES)} frames: choose a shorter range`
      : `deepest callers left out: ${formatCount(MAX_INVERTED_NODES)} nodes`;
  }

  /** @param {boolean} isEmpty */
  #showEmpty(isEmpty) {
    byId('empty').hidden = !isEmpty;
    byId('flame').hidden = isEmpty;
    if (!isEmpty) {
      return;
    }
    const { page } = this;
    const { pid, tid, comm } = page.state;
    const all = button('Show all processes and threads', () => page.go({ pid: null, tid: null, comm: null }));
    const isPart = pid !== null || tid !== null || comm !== null;
    byId('empty').replaceChildren(el('h2', {}, 'No samples'), el('p', {}, this.#emptyReason()), isPart ? all : '');
  }

  #emptyReason() {
    const { event, profile: { events, rows } } = this.page.model;
    if (events.length === 0) {
      return 'The recording names no event.';
    }
    return rows.node.length === 0
      ? 'The recording holds no samples. The target may have slept, or ended before the first one was due.'
      : `No sample of ${event.name || 'this event'} in this selection.`;
  }

  /** @param {Graph} graph
   *  @param {number} zoom */
  #renderBreadcrumb(graph, zoom) {
    const nodes = [];
    for (let node = zoom; node >= 0; node = graph.parent[node]) {
      nodes.push(node);
    }
    byId('breadcrumb').replaceChildren(...nodes.reverse().map((node) => this.#crumb(graph, node, node === zoom)));
    // The innermost frames matter most: they are in view.
    byId('breadcrumb').scrollLeft = byId('breadcrumb').scrollWidth;
    byId('reset').disabled = zoom === 0 && this.page.found === null && this.page.colouring.muted.size === 0;
  }

  /** @param {Graph} graph
   *  @param {number} node
   *  @param {boolean} isLast */
  #crumb(graph, node, isLast) {
    const name = this.page.model.nodeName(graph, node);
    const zoom = () => this.page.go({ zoom: pathTo(graph, node) }, { animate: true });
    const crumb = button(shortenName(name, MAX_CRUMB_CHARACTERS), zoom, { title: name });
    if (isLast) {
      crumb.setAttribute('aria-current', 'location');
    }
    return el('li', {}, crumb);
  }
}
