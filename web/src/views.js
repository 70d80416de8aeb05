// The views of the page, in the order of their tabs. A new view is one module and one row here.

import { ChartView } from './chartview.js';
import { CompareView } from './compareview.js';
import { byId, el } from './dom.js';
import { FunctionsView } from './functionsview.js';
import { GraphView } from './graphview.js';
import { MeasuresView } from './measuresview.js';
import { RecordingView } from './recordingview.js';
import { RequestsView } from './requestsview.js';
import { SandwichView } from './sandwichview.js';
import { SourceView } from './sourceview.js';
import { TracksView } from './tracksview.js';
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
  { id: 'measures', label: 'Waits and requests', make: (page) => (page.compare && page.compare.measures.length > 0 ? new MeasuresView(page.compare.measures) : null) },
  { id: 'graph', label: 'Flame graph', make: (page) => new GraphView(page) },
  { id: 'tracks', label: 'Tracks', make: (page) => page.strip && new TracksView(page, page.strip) },
  { id: 'chart', label: 'Stack chart', make: (page) => page.strip && new ChartView(page, page.strip) },
  { id: 'tree', label: 'Call tree', make: (page) => new TreeView(page) },
  { id: 'functions', label: 'Functions', make: (page) => new FunctionsView(page) },
  { id: 'sandwich', label: 'Callers and callees', make: (page) => new SandwichView(page) },
  { id: 'source', label: 'Source', make: (page) => page.code && new SourceView(page, page.code) },
  { id: 'switches', label: 'Waits', make: (page) => page.switches && new WaitsView(page, page.switches) },
  { id: 'requests', label: 'Requests', make: (page) => page.requests && new RequestsView(page, page.requests) },
  { id: 'recording', label: 'Recording', make: (page) => new RecordingView(page) },
];

/** The section of a view: that of the template, or an empty one at the end.
 *  @param {ViewRow} row */
function sectionOf({ id }) {
  const section = document.getElementById(`view-${id}`) ?? el('section', { id: `view-${id}`, hidden: true });
  section.setAttribute('role', 'tabpanel');
  section.setAttribute('aria-labelledby', `tab-${id}`);
  if (!section.isConnected) {
    byId('main').append(section);
  }
  return section;
}

/** Where a key leads from one of `count` tabs; undefined for other keys.
 *  @param {string} key
 *  @param {number} at
 *  @param {number} count */
function tabByKey(key, at, count) {
  /** @type {Record<string, number>} */
  const places = { ArrowRight: (at + 1) % count, ArrowLeft: (at + count - 1) % count, Home: 0, End: count - 1 };
  return /** @type {number | undefined} */ (places[key]);
}

/** The views that a page has data for, with their tabs and sections. */
export class Views {
  /** @type {Map<string, { view: View, section: HTMLElement, tab: HTMLElement }>} */
  #made = new Map();

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    for (const row of VIEWS) {
      const section = sectionOf(row);
      const view = row.make(page);
      const tab = el('button', {
        type: 'button', role: 'tab', id: `tab-${row.id}`, 'data-view': row.id, 'aria-controls': `view-${row.id}`, hidden: view === null,
        onclick: () => page.go({ view: row.id }),
      }, row.label);
      byId('tabs').append(tab);
      if (view !== null) {
        this.#made.set(row.id, { view, section, tab });
      }
    }
    byId('tabs').addEventListener('keydown', (event) => this.#key(event));
    byId('skip').addEventListener('click', (event) => {
      // The fragment of the address is the state of the page.
      event.preventDefault();
      this.#focusView();
    });
  }

  /** Keys move among the tabs, and the view follows.
   *  @param {KeyboardEvent} event */
  #key(event) {
    const ids = [...this.#made.keys()];
    const to = tabByKey(event.key, ids.indexOf(this.page.state.view), ids.length);
    if (to !== undefined) {
      event.preventDefault();
      this.page.go({ view: ids[to] });
      this.#made.get(ids[to])?.tab.focus();
    }
  }

  /** Puts the keyboard's focus on the content of the view: its graph or table, or else all of it. */
  #focusView() {
    const section = this.#made.get(this.page.state.view)?.section;
    const content = [...section?.querySelectorAll('[tabindex="0"]') ?? []];
    const first = content.find((element) => element instanceof HTMLElement && element.offsetParent !== null);
    const target = first ?? section;
    if (target instanceof HTMLElement) {
      target.tabIndex = target === section ? -1 : 0;
      target.focus();
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
    for (const [id, { section, tab }] of this.#made) {
      const isShown = id === this.page.state.view;
      section.hidden = !isShown;
      tab.setAttribute('aria-selected', String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
    }
    this.current().show(render);
  }

  /** Digits for the tabs from left to right, 0 for the tenth, and the keys of the view.
   *  @returns {Keys} */
  keys() {
    const tabs = [...this.#made.keys()].slice(0, 10).map((view, index) => [(index + 1) % 10, () => this.page.go({ view })]);
    return { ...Object.fromEntries(tabs), ...this.current().keys?.() };
  }
}
