// The page: one state, one model, and the views that draw them. `go` makes every change.

import { Actions } from './actions.js';
import { Choices } from './choices.js';
import { decodeCode } from './code.js';
import { Colouring } from './colouring.js';
import { decodeCompare } from './compare.js';
import { byId } from './dom.js';
import { renderStrip, renderTitle } from './facts.js';
import { Folding } from './folding.js';
import { firstGrouping } from './grouping.js';
import { renderHeadline } from './headline.js';
import { Model } from './model.js';
import { Notice, Tooltip } from './popups.js';
import { decodeRequests } from './requests.js';
import { SearchBox } from './searchbox.js';
import { DEFAULT_STATE, decodeState, encodeState } from './state.js';
import { StripBar } from './stripbar.js';
import { decodeSwitches } from './switches.js';
import { Theme } from './theme.js';
import { renderTransforms } from './transformbar.js';
import { Views } from './views.js';

/** @import { FrameGraph } from './frames.js' */
/** @import { Go, Page, Render } from './page.d.ts' */
/** @import { Found, Keys, Profile, State } from './types.d.ts' */

/** Intervals are computed when nothing changed for so long. */
const INTERVALS_AFTER_MS = 120;
/** A change of one of these adds a step to the browser's history.
 *  @type {readonly (keyof State)[]} */
const HISTORY = ['event', 'pid', 'tid', 'comm', 'lane', 'request', 'call', 'view', 'stacks', 'zoom', 'fn', 'callers', 'callees', 'range', 'root', 'order', 'transforms'];

/** @implements {Page} */
export class App {
  /** @type {State | null} The state before the pointer began to move. */
  #settled = null;
  /** @type {Found | null} What the search finds. */
  found = null;
  /** Selectors are filled when the pointer rests. */
  #isStale = true;
  /** @type {number | undefined} */
  #intervalsTimer;

  /** @param {Profile} profile */
  constructor(profile) {
    this.model = new Model(profile);
    this.switches = profile.switches ? decodeSwitches(profile.switches) : null;
    this.compare = profile.compare ? decodeCompare(profile.compare) : null;
    this.code = profile.code ? decodeCode(profile.code) : null;
    this.requests = profile.requests ? decodeRequests(profile.requests) : null;
    const { groupings, moments } = this.model;
    /** @type {State} */
    this.defaults = {
      ...DEFAULT_STATE,
      view: profile.startView ?? DEFAULT_STATE.view,
      root: firstGrouping(groupings),
      by: groupings[0]?.id ?? 'process',
    };
    this.state = this.defaults;
    this.notice = new Notice();
    this.actions = new Actions(this);
    this.theme = new Theme(byId('theme'), () => this.render());
    this.folding = new Folding(() => this.render());
    this.tooltip = new Tooltip((/** @type {{ graph: FrameGraph, node: number }} */ { graph, node }) => graph.tip(node));
    this.colouring = new Colouring(this);
    /** @type {StripBar | null} */
    this.strip = moments === null ? null : new StripBar(this, moments);
    this.views = new Views(this);
    this.choices = new Choices(this);
    this.search = new SearchBox(this, () => this.views.current().pick?.());
    this.state = this.#decode();
    renderStrip(profile, { losses: byId('losses'), cost: byId('cost'), warnings: byId('warnings') });
    renderTitle(profile);
    renderHeadline(profile);
    this.#listen();
    this.render();
  }

  // ---- state

  /** The state of the address; some views need data that not all pages have. */
  #decode() {
    const state = decodeState(location.hash, this.defaults);
    return { ...state, view: this.views.known(state.view, this.defaults.view) };
  }

  /** Changes the state, the page and the fragment.
   *  @type {Go} */
  go(change, { animate = false, live = false } = {}) {
    const before = this.#settled ?? this.state;
    this.state = { ...this.state, ...change };
    if (live) {
      // While the pointer moves, only the picture follows.
      this.#settled ??= before;
      this.render({ live });
      return;
    }
    this.#settled = null;
    this.#writeFragment(HISTORY.some((name) => name in change && String(before[name]) !== String(change[name])));
    this.render({ animate });
  }

  /** @param {boolean} isStep */
  #writeFragment(isStep) {
    const fragment = `#${encodeState(this.state, this.defaults)}`;
    if (fragment === (location.hash || '#')) {
      return;
    }
    if (isStep) {
      location.hash = fragment;
    } else {
      // Unlike history.replaceState this works on every local file.
      location.replace(fragment);
    }
  }

  #readFragment() {
    const state = this.#decode();
    if (encodeState(state) !== encodeState(this.state)) {
      this.state = state;
      this.render({ animate: true });
    }
  }

  #reset() {
    this.colouring.muted.clear();
    byId('search').value = '';
    const fn = this.views.current().isOfFunction ? this.state.fn : null;
    this.go({ zoom: [], callers: [], callees: [], search: '', regex: false, fn }, { animate: true });
  }

  // ---- input

  #listen() {
    window.addEventListener('hashchange', () => this.#readFragment());
    document.addEventListener('keydown', (event) => this.#key(event));
    /** @param {string} id
     *  @param {() => void} action */
    const click = (id, action) => byId(id).addEventListener('click', action);
    click('undo', () => this.actions.undo());
    click('reset', () => this.#reset());
    click('back', () => history.back());
    click('link', () => this.actions.copy(location.href, 'Link copied'));
    click('help', () => byId('help-dialog').showModal());
    click('help-close', () => byId('help-dialog').close());
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const typing = event.target instanceof Element && event.target.matches('input, select, textarea');
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || byId('help-dialog').open) {
      return;
    }
    const action = { ...this.#keys(), ...this.views.keys() }[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
    }
  }

  /** Keys of all views.
   *  @returns {Keys} */
  #keys() {
    const { state } = this;
    return {
      '/': () => this.search.focus(),
      i: () => this.go({ view: 'graph', stacks: state.stacks === 'top-down' ? 'bottom-up' : 'top-down', order: 'weight', zoom: [] }),
      f: () => this.go({ view: 'graph', shape: state.shape === 'flame' ? 'icicle' : 'flame' }),
      o: () => this.go({ view: 'graph', stacks: 'top-down', zoom: [], order: state.order === 'time' ? 'weight' : 'time' }),
      u: () => this.actions.undo(),
      r: () => this.#reset(),
      x: () => this.folding.toggle(),
      ...(this.code === null ? {} : { a: () => this.go({ view: 'source' }) }),
      '?': () => byId('help-dialog').showModal(),
    };
  }

  // ---- rendering

  /** @param {Partial<Render>} [render] */
  render({ animate = false, live = false } = {}) {
    const { state, model } = this;
    const isNew = model.select(state);
    if (!live && (isNew || this.#isStale)) {
      this.choices.fill();
    }
    this.#isStale = live;
    this.tooltip.hide();
    this.choices.show(!this.views.current().hasOwnWeights);
    if (live) {
      this.strip?.showRange();
    } else {
      this.strip?.show();
      byId('transform-bar').hidden = state.transforms.length === 0;
      renderTransforms(byId('transforms'), model, state.transforms, (count) => this.actions.keepTransforms(count));
    }
    this.found = this.search.show();
    this.views.show({ animate, live });
    this.renderIntervals();
    if (!live) {
      this.#loadRange();
    }
  }

  /** Draws again when a server knows a range more exactly than the page. */
  #loadRange() {
    const { range } = this.state;
    this.model.source.load(range).then(
      (isNew) => isNew && this.render(),
      (error) => this.notice.show(`whit serve gives no range, so this one is in whole buckets: ${error.message}`),
    );
  }

  /** Intervals follow when the reader pauses: they take longer than the sums. */
  renderIntervals() {
    clearTimeout(this.#intervalsTimer);
    const intervals = this.model.moments === null ? null : this.views.current().intervals?.() ?? null;
    if (intervals === null) {
      return;
    }
    const work = () => {
      const { done, value } = intervals.steps.next();
      if (done) {
        intervals.show(value);
      } else {
        this.#intervalsTimer = setTimeout(work);
      }
    };
    this.#intervalsTimer = setTimeout(work, INTERVALS_AFTER_MS);
  }
}
