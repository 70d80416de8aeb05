// The views of the page, in the order of their tabs. A new view is one module and one row here.

import { ChartView } from './chartview.js';
import { CompareView } from './compareview.js';
import { byId, el } from './dom.js';
import { FunctionsView } from './functionsview.js';
import { GraphView } from './graphview.js';
import { RecordingView } from './recordingview.js';
import { SandwichView } from './sandwichview.js';
import { SourceView } from './sourceview.js';
import { TreeView } from './treeview.js';
import { WaitsView } from './waitsview.js';

/** @import { Page, Render, View, ViewRow } from './page.d.ts' */
/** @import { Keys } from './types.d.ts' */

/** The view of an address whose own view needs data that the page has not. */
const ALWAYS = 'graph';

/** `make` gives null where a page has no data for the view: its tab is hidden then.
 *  @type {readonly ViewRow[]} */
export const VIEWS = [
  { id: 'compare', label: 'Comparison', make: (page) => page.compare && new CompareView(page, page.compare) },
  { id: 'graph', label: 'Flame graph', make: (page) => new GraphView(page) },
  { id: 'chart', label: 'Stack chart', make: (page) => page.strip && new ChartView(page, page.strip) },
  { id: 'tree', label: 'Call tree', make: (page) => new TreeView(page) },
  { id: 'functions', label: 'Functions', make: (page) => new FunctionsView(page) },
  { id: 'sandwich', label: 'Callers and callees', make: (page) => new SandwichView(page) },
  { id: 'source', label: 'Source', make: (page) => page.code && new SourceView(page, page.code) },
  { id: 'switches', label: 'Waits', make: (page) => page.switches && new WaitsView(page, page.switches) },
  { id: 'recording', label: 'Recording', make: (page) => new RecordingView(page) },
];

/** The section of a view: that of the template, or an empty one at the end.
 *  @param {ViewRow} row */
function sectionOf({ id, label }) {
  const known = document.getElementById(`view-${id}`);
  if (known !== null) {
    return known;
  }
  const section = el('section', { id: `view-${id}`, 'aria-label': label, hidden: true });
  byId('main').append(section);
  return section;
}

/** The views that a page has data for, with their tabs and sections. */
export class Views {
  /** @type {Map<string, { view: View, section: HTMLElement }>} */
  #made = new Map();

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    for (const row of VIEWS) {
      const section = sectionOf(row);
      const view = row.make(page);
      byId('tabs').append(el('button', { type: 'button', 'data-view': row.id, hidden: view === null }, row.label));
      if (view !== null) {
        this.#made.set(row.id, { view, section });
      }
    }
  }

  /** The id of a view that this page has: the wanted one where that is possible, `first` for words that name none.
   *  @param {string} wanted
   *  @param {string} first */
  known(wanted, first) {
    const id = VIEWS.some((row) => row.id === wanted) ? wanted : first;
    return this.#made.has(id) ? id : ALWAYS;
  }

  /** The view of the state. */
  current() {
    const { view } = this.page.state;
    const made = this.#made.get(view);
    if (made === undefined) {
      throw new Error(`the page has no view ${view}`);
    }
    return made.view;
  }

  /** Brings the section of the state's view to the front, and draws it.
   *  @param {Render} render */
  show(render) {
    for (const [id, { section }] of this.#made) {
      section.hidden = id !== this.page.state.view;
    }
    this.current().show(render);
  }

  /** Digits for the tabs from left to right, and the keys of the view.
   *  @returns {Keys} */
  keys() {
    const tabs = [...this.#made.keys()].map((view, index) => [index + 1, () => this.page.go({ view })]);
    return { ...Object.fromEntries(tabs), ...this.current().keys?.() };
  }
}
