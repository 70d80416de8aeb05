// The page: one state, one model, and the views that draw them. Every change goes through `go`.

import { button, byId, copyText, el, press } from './dom.js';
import { formatCount, formatPercent, formatPeriod, isClockEvent, plural } from './format.js';
import { cssColour, themePaint, vary } from './colors.js';
import { findPath, functionOf, pathTo } from './tree.js';
import { exactly } from './search.js';
import { DEFAULT_STATE, decodeState, encodeState } from './state.js';
import { Model } from './model.js';
import { FlameGraph } from './flame.js';
import { Menu, Notice, Tooltip } from './popups.js';
import { FunctionTable } from './table.js';
import { decodeSwitches } from './switches.js';
import { SwitchTable } from './switchtable.js';
import { Timeline, renderActivities, spanTip } from './timeline.js';
import { renderRecording, renderStrip, shellLine } from './facts.js';
import { frameTip } from './frametip.js';
import { Theme } from './theme.js';
import { categoryColour, renderLegend, renderSelectors } from './controls.js';

const TYPING_MS = 120;
/** A change of one of these adds a step to the browser's history. */
const HISTORY = ['event', 'pid', 'tid', 'comm', 'view', 'stacks', 'zoom', 'fn', 'callers', 'callees'];

export class App {
  constructor(profile) {
    this.model = new Model(profile);
    this.switches = profile.switches ? decodeSwitches(profile.switches) : null;
    this.defaults = { ...DEFAULT_STATE, view: profile.startView ?? DEFAULT_STATE.view };
    this.state = this.#decode();
    this.muted = new Set();
    this.notice = new Notice();
    this.menu = new Menu();
    this.theme = new Theme(byId('theme'), () => this.render({}));
    this.tooltip = new Tooltip(({ side, node }) => frameTip(this.model, this.graphs[side].data, node, {
      theme: this.theme.name,
      topDown: side === 'graph' && this.state.stacks === 'top-down',
    }));
    this.graphs = {
      graph: new FlameGraph(byId('flame'), this.#graphEvents('graph')),
      callers: new FlameGraph(byId('callers'), this.#graphEvents('callers')),
      callees: new FlameGraph(byId('callees'), this.#graphEvents('callees')),
    };
    this.table = new FunctionTable(byId('function-table'), {
      sort: (id) => this.#sortBy(id),
      find: (fn) => this.#find(fn),
      open: (fn) => this.go({ view: 'sandwich', fn, callers: [], callees: [] }),
      menu: (fn, x, y) => this.#functionMenu(fn, [], x, y),
    });
    this.#addSwitches();
    renderStrip(profile, { losses: byId('losses'), cost: byId('cost'), warnings: byId('warnings') });
    renderRecording(profile, byId('view-recording'));
    this.#renderTitle();
    this.#listen();
    this.render({});
  }

  get profile() {
    return this.model.profile;
  }

  #addSwitches() {
    if (this.switches === null) {
      return;
    }
    document.querySelector('[data-view=switches]').hidden = false;
    byId('switch-facts').replaceChildren(...this.switches.facts.map((fact) => el('p', {}, fact)));
    this.switchTable = new SwitchTable(byId('switch-table'), this.switches);
    this.spanTip = new Tooltip((index) => spanTip(this.switches.timeline, index));
    this.timeline = new Timeline(byId('timeline'), this.switches.timeline, {
      hover: (index, event) => {
        if (index < 0) {
          this.spanTip.hide();
        } else {
          this.spanTip.show(index, index, event.clientX, event.clientY);
        }
      },
      range: (text) => {
        byId('timeline-range').textContent = text;
      },
    });
    byId('timeline-whole').addEventListener('click', () => this.timeline.whole());
  }

  // ---- state

  /** The state of the address; the view of waits needs waits. */
  #decode() {
    const state = decodeState(location.hash, this.defaults);
    return state.view === 'switches' && this.switches === null ? { ...state, view: 'graph' } : state;
  }

  /** Changes the state, the page and the fragment. */
  go(change, { animate = false } = {}) {
    const before = this.state;
    this.state = { ...before, ...change };
    const step = HISTORY.some((name) => name in change && String(before[name]) !== String(change[name]));
    this.#writeFragment(step);
    this.render({ animate });
  }

  #writeFragment(step) {
    const fragment = `#${encodeState(this.state, this.defaults)}`;
    if (fragment === (location.hash || '#')) {
      return;
    }
    if (step) {
      location.hash = fragment;
    } else {
      // Unlike history.replaceState this works on every local file.
      location.replace(fragment);
    }
  }

  #listen() {
    window.addEventListener('hashchange', () => {
      const state = this.#decode();
      if (encodeState(state) !== encodeState(this.state)) {
        this.state = state;
        this.render({ animate: true });
      }
    });
    const number = (value) => (value === '' ? null : Number(value));
    const on = (id, change) => byId(id).addEventListener('change', (event) => this.go(change(event.target.value)));
    on('event', (value) => ({ event: Number(value) }));
    on('process', (value) => ({ pid: number(value), tid: null, comm: null }));
    on('thread', (value) => ({ tid: number(value), comm: null }));
    on('comm', (value) => ({ comm: value === '' ? null : value }));
    this.#listenToButtons();
    this.#typing(byId('search'), (search) => this.go({ search }));
    byId('search').addEventListener('keydown', (event) => event.key === 'Enter' && this.#pickFound());
    this.#typing(byId('filter'), (filter) => this.go({ filter }));
    document.addEventListener('keydown', (event) => this.#key(event));
  }

  #listenToButtons() {
    const choose = (attribute, change) => {
      for (const choice of document.querySelectorAll(`[data-${attribute}]`)) {
        choice.addEventListener('click', () => this.go(change(choice.dataset[attribute])));
      }
    };
    choose('view', (view) => ({ view }));
    choose('stacks', (stacks) => ({ stacks, zoom: [] }));
    choose('shape', (shape) => ({ shape }));
    choose('direction', (direction) => ({ direction }));
    choose('weight', (weight) => ({ weight }));
    choose('colour', (colour) => {
      this.muted.clear();
      return { colour };
    });
    const click = (id, action) => byId(id).addEventListener('click', action);
    click('regex', () => this.go({ regex: !this.state.regex }));
    click('search-clear', () => this.#clearSearch());
    click('reset', () => this.#reset());
    click('back', () => history.back());
    click('link', () => this.#copy(location.href, 'Link copied'));
    click('help', () => byId('help-dialog').showModal());
    click('help-close', () => byId('help-dialog').close());
  }

  #typing(input, change) {
    let timer = 0;
    input.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(() => change(input.value), TYPING_MS);
    });
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        input.value = '';
        change('');
        input.blur();
      } else if (event.key === 'Enter') {
        clearTimeout(timer);
        change(input.value);
      }
    });
  }

  #clearSearch() {
    byId('search').value = '';
    this.go({ search: '', regex: false });
  }

  #reset() {
    this.muted.clear();
    byId('search').value = '';
    const sandwich = this.state.view === 'sandwich';
    this.go(
      { zoom: [], callers: [], callees: [], search: '', regex: false, ...(sandwich ? {} : { fn: null }) },
      { animate: true },
    );
  }

  #sortBy(id) {
    const same = this.state.sort === id;
    const byText = id === 'name' || id === 'binary';
    this.go({ sort: id, ascending: same ? !this.state.ascending : byText });
  }

  /** Searches for one function alone and shows the graph. */
  #find(fn) {
    this.go({ view: 'graph', search: exactly(this.model.functionName(fn)), regex: true });
  }

  // ---- colours

  /** Colour of each key in the present theme and colouring. */
  #fill(key) {
    const scheme = `${this.theme.name} ${this.state.colour}`;
    if (this.fills?.scheme !== scheme) {
      this.fills = { scheme, colours: [] };
    }
    this.fills.colours[key] ??= vary(
      categoryColour(this.model.category(key, this.state.colour), this.state.colour, this.theme.name),
      this.model.functionName(functionOf(key)),
    );
    return this.fills.colours[key];
  }

  // ---- rendering

  render({ animate = false }) {
    const { state, model } = this;
    if (model.select(state) || this.rendered === undefined) {
      renderSelectors(
        { event: byId('event'), process: byId('process'), thread: byId('thread'), comm: byId('comm') },
        model,
        state,
      );
    }
    this.rendered = true;
    this.tooltip.hide();
    this.#renderChoices();
    this.#renderSearch();
    for (const view of ['graph', 'functions', 'sandwich', 'switches', 'recording']) {
      byId(`view-${view}`).hidden = view !== state.view;
    }
    const show = {
      graph: () => this.#renderGraph(animate),
      functions: () => this.#renderFunctions(),
      sandwich: () => this.#renderSandwich(animate),
      switches: () => this.#renderSwitches(),
      recording: () => {},
    };
    show[state.view]();
  }

  #renderSwitches() {
    const paint = themePaint(this.theme.name);
    this.switchTable.show(this.state.direction);
    renderActivities(byId('switch-legend'), paint);
    this.timeline.show(paint);
  }

  #renderTitle() {
    const { recording, title } = this.profile;
    const command = shellLine(recording.cmdline);
    byId('title').textContent = command === '' ? title : command;
    byId('title').title = command;
    const facts = [recording.hostname, recording.osRelease, recording.arch].filter((text) => text !== '');
    byId('subtitle').textContent = facts.join(' · ');
  }

  #renderChoices() {
    const { state } = this;
    for (const name of ['view', 'stacks', 'shape', 'colour', 'direction']) {
      const buttons = [...document.querySelectorAll(`[data-${name}]`)];
      press(Object.fromEntries(buttons.map((b) => [b.dataset[name], b])), state[name]);
    }
    byId('regex').setAttribute('aria-pressed', String(state.regex));
    // Where samples have no period there is nothing to choose.
    const [byPeriod, bySamples] = ['period', 'samples'].map((weight) => document.querySelector(`[data-weight=${weight}]`));
    byPeriod.disabled = this.model.weights.totalPeriod[0] === 0;
    press({ period: byPeriod, samples: bySamples }, this.model.byPeriod ? 'period' : 'samples');
    const { weights, event } = this.model;
    const [samples, period] = [weights.totalSamples[0], weights.totalPeriod[0]];
    const word = isClockEvent(event.name) ? '' : ` ${event.name}`;
    byId('selected').textContent = samples > 0
      ? `${plural(samples, 'sample')}${period > 0 ? ` · ${formatPeriod(event.name, period)}${word}` : ''}` : 'no samples';
  }

  #renderSearch() {
    const { state } = this;
    const input = byId('search');
    if (document.activeElement !== input) {
      input.value = state.search;
    }
    this.found = this.model.search(state.search, state.regex);
    const invalid = this.found !== null && this.found.error !== '';
    input.setAttribute('aria-invalid', String(invalid));
    byId('search-clear').hidden = this.found === null;
    byId('matched').textContent = this.found === null ? ''
      : invalid ? 'no regular expression' : `matched ${formatPercent(this.found.share)} of total`;
    byId('matched').title = invalid ? this.found.error : '';
  }

  #drawing(laidOut, zoom, up, { base = 0, nothing = '' } = {}) {
    const { found, model } = this;
    const matches = found === null || found.error !== '' ? null : found.functions;
    return {
      ...laidOut,
      zoom,
      up,
      base,
      nothing,
      paint: themePaint(this.theme.name),
      fill: (key) => this.#fill(key),
      name: (node) => model.nodeName(laidOut.graph, node),
      match: matches === null ? null : (key) => matches[functionOf(key)] === 1,
      muted: (key) => this.muted.has(model.category(key, this.state.colour)),
    };
  }

  #renderGraph(animate) {
    const { state, model } = this;
    const laidOut = model.graph(state.stacks, state.zoom);
    const zoom = findPath(laidOut.graph, state.zoom);
    const empty = laidOut.weight[0] === 0;
    byId('empty').hidden = !empty;
    byId('flame').hidden = empty;
    if (empty) {
      this.#renderEmpty(byId('empty'));
    }
    this.#renderBreadcrumb(laidOut.graph, zoom);
    this.#renderLegend();
    this.graphs.graph.show(this.#drawing(laidOut, zoom, state.shape === 'flame'), { animate });
    byId('cut').hidden = !laidOut.graph.cut;
  }

  #renderEmpty(container) {
    const { events, rows } = this.profile;
    const nothing = rows.node.length === 0;
    const reason = events.length === 0 ? 'The recording names no event.'
      : nothing ? 'The recording holds no samples. The target may have slept, or ended before the first one was due.'
        : `No sample of ${this.model.event.name || 'this event'} in this selection.`;
    const all = button('Show all processes and threads', () => this.go({ pid: null, tid: null, comm: null }));
    const filtered = this.state.pid !== null || this.state.tid !== null || this.state.comm !== null;
    container.replaceChildren(el('h2', {}, 'No samples'), el('p', {}, reason), filtered ? all : '');
  }

  #renderBreadcrumb(graph, zoom) {
    const path = pathTo(graph, zoom);
    const nodes = [];
    for (let node = zoom; node >= 0; node = graph.parent[node]) {
      nodes.push(node);
    }
    const crumbs = nodes.reverse().map((node, depth) => {
      const name = this.model.nodeName(graph, node);
      const crumb = button(name, () => this.go({ zoom: path.slice(0, depth) }, { animate: true }), { title: name });
      if (node === zoom) {
        crumb.setAttribute('aria-current', 'location');
      }
      return el('li', {}, crumb);
    });
    byId('breadcrumb').replaceChildren(...crumbs);
    // The innermost frames matter most: they are in view.
    byId('breadcrumb').scrollLeft = byId('breadcrumb').scrollWidth;
    byId('reset').disabled = zoom === 0 && this.found === null && this.muted.size === 0;
  }

  #renderLegend() {
    const { state, muted } = this;
    renderLegend(byId('legend'), this.model, {
      colour: state.colour,
      theme: this.theme.name,
      muted,
      toggle: (category) => {
        if (!muted.delete(category)) {
          muted.add(category);
        }
        this.render({});
      },
    });
  }

  #renderFunctions() {
    const { model, state } = this;
    const sums = model.functionSums();
    const [self, total] = [model.selfOf(sums), model.weightsOf(sums)];
    const rows = [];
    for (let fn = 0; fn < model.functionCount; fn++) {
      if (total[fn] > 0) {
        rows.push(this.#functionRow(fn, self[fn], total[fn]));
      }
    }
    if (document.activeElement !== byId('filter')) {
      byId('filter').value = state.filter;
    }
    const { sort, ascending, filter } = state;
    const shown = this.table.show(rows, { sort, ascending, filter, format: (weight) => this.#formatWeight(weight) });
    byId('function-count').textContent = shown === rows.length
      ? plural(rows.length, 'function') : `${formatCount(shown)} of ${plural(rows.length, 'function')}`;
  }

  #functionRow(fn, self, total) {
    const { model, profile } = this;
    const dso = model.functionDso(fn);
    return {
      fn,
      name: model.functionName(fn),
      binary: dso.name,
      binaryPath: dso.path,
      known: profile.functions.known[fn] === 1,
      self,
      total,
      selfShare: self / model.total,
      totalShare: total / model.total,
      colour: cssColour(categoryColour(this.#categoryOf(fn), this.state.colour, this.theme.name)),
    };
  }

  /** Category of a function: as called where it is, else as inlined. */
  #categoryOf(fn) {
    this.calledKeys ??= new Set(this.model.tree.key);
    return this.model.category(this.calledKeys.has(fn * 2) ? fn * 2 : fn * 2 + 1, this.state.colour);
  }

  #renderSandwich(animate) {
    const { model, state } = this;
    const fn = state.fn !== null && state.fn < model.functionCount ? state.fn : this.#hottest();
    byId('sandwich').hidden = fn === null;
    byId('sandwich-empty').hidden = fn !== null;
    if (fn === null) {
      return;
    }
    const sums = model.functionSums();
    const [self, total] = [model.selfOf(sums)[fn], model.weightsOf(sums)[fn]];
    const dso = model.functionDso(fn);
    const share = (weight) => `${formatPercent(model.total > 0 ? weight / model.total : 0)} (${this.#formatWeight(weight)})`;
    byId('center').replaceChildren(
      el('span', { class: 'center-name', title: model.functionName(fn) }, model.functionName(fn)),
      el('span', { class: 'center-facts' }, `${dso.name} · self ${share(self)} · with callees ${share(total)}`),
      ...(state.callers.length + state.callees.length > 0
        ? [button('reset zoom', () => this.go({ callers: [], callees: [] }, { animate: true }))] : []),
    );
    const callers = model.callers(fn, state.callers);
    const callees = model.callees(fn);
    const zoomOf = (laidOut, path) => findPath(laidOut.graph, path);
    this.graphs.callers.show(this.#drawing(callers, zoomOf(callers, state.callers), true, { base: 1, nothing: 'no callers: it is the outermost frame' }), { animate });
    this.graphs.callees.show(this.#drawing(callees, zoomOf(callees, state.callees), false, { base: 1, nothing: 'no callees: all of its samples are its own' }), { animate });
  }

  /** The function with the most samples of its own: what the sandwich shows unasked. */
  #hottest() {
    return this.#heaviest(this.model.selfOf(this.model.functionSums()), () => true);
  }

  #heaviest(weights, test) {
    let best = null;
    weights.forEach((weight, fn) => {
      best = test(fn) && weight > (best === null ? 0 : weights[best]) ? fn : best;
    });
    return best;
  }

  /** Enter in the search box, in the view of callers and callees: the heaviest match is shown. */
  #pickFound() {
    const { found, model } = this;
    if (this.state.view === 'sandwich' && found !== null) {
      const fn = this.#heaviest(model.weightsOf(model.functionSums()), (f) => found.functions[f] === 1);
      if (fn === null) {
        this.notice.show('No function of this selection matches');
      } else {
        byId('search').value = '';
        this.go({ fn, callers: [], callees: [], search: '', regex: false });
      }
    }
  }

  // ---- frames

  #formatWeight(weight) {
    return this.model.byPeriod ? formatPeriod(this.model.event.name, weight) : plural(weight, 'sample');
  }

  #pathName(side) {
    return side === 'graph' ? 'zoom' : side;
  }

  #graphEvents(side) {
    return {
      zoom: (node) => this.#zoomTo(side, node),
      open: (node) => this.#open(side, node),
      hover: (node, event) => {
        if (node < 0 || event === null || event.pointerType === 'touch') {
          this.tooltip.hide();
        } else {
          this.tooltip.show(`${side} ${node} ${this.model.selectionKey}`, { side, node }, event.clientX, event.clientY);
        }
      },
      menu: (node, x, y) => this.#frameMenu(side, node, x, y),
      current: (node) => {
        byId('status').textContent = this.#summary(side, node);
      },
      key: (event, node) => this.#graphKey(side, event, node),
    };
  }

  #zoomTo(side, node) {
    const { graph } = this.graphs[side].data;
    this.go({ [this.#pathName(side)]: pathTo(graph, node) }, { animate: true });
  }

  #open(side, node) {
    const key = this.graphs[side].data.graph.key[node];
    if (key >= 0) {
      this.go({ view: 'sandwich', fn: functionOf(key), callers: [], callees: [] });
    }
  }

  #graphKey(side, event, node) {
    const { data } = this.graphs[side];
    const actions = {
      Backspace: () => this.#zoomTo(side, Math.max(0, data.graph.parent[data.zoom])),
      Escape: () => this.#zoomTo(side, 0),
      Home: () => this.#zoomTo(side, 0),
      c: () => this.#copy(this.model.nodeName(data.graph, node), 'Function name copied'),
      s: () => this.#open(side, node),
    };
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  }

  #key(event) {
    const typing = event.target instanceof Element && event.target.matches('input, select, textarea');
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || byId('help-dialog').open) {
      return;
    }
    const { state } = this;
    const actions = {
      '/': () => {
        const input = byId(state.view === 'functions' ? 'filter' : 'search');
        input.focus();
        input.select();
      },
      i: () => this.go({ view: 'graph', stacks: state.stacks === 'top-down' ? 'bottom-up' : 'top-down', zoom: [] }),
      f: () => this.go({ view: 'graph', shape: state.shape === 'flame' ? 'icicle' : 'flame' }),
      r: () => this.#reset(),
      '?': () => byId('help-dialog').showModal(),
    };
    // Digits are the tabs from left to right; that of waits is hidden where there are none.
    const tabs = document.querySelectorAll('[data-view]:not([hidden])');
    tabs.forEach((tab, index) => {
      actions[index + 1] = () => this.go({ view: tab.dataset.view });
    });
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  }

  async #copy(text, done) {
    this.notice.show(await copyText(text) ? done : 'The browser does not let this page copy');
  }

  /** Names from the root to a node (or from the leaf), for the clipboard: folded, root first. */
  #stackText(side, node) {
    const { graph } = this.graphs[side].data;
    const names = [];
    for (let at = node; at > 0 || (at === 0 && graph.key[0] >= 0); at = graph.parent[at]) {
      names.push(this.model.nodeName(graph, at));
    }
    const fromLeaf = side === 'callers' || (side === 'graph' && this.state.stacks === 'bottom-up');
    return (fromLeaf ? names : names.reverse()).join(';');
  }

  #frameMenu(side, node, x, y) {
    const { graph } = this.graphs[side].data;
    const zoom = ['Zoom to this frame', () => this.#zoomTo(side, node), 'Enter'];
    this.tooltip.hide();
    if (graph.key[node] < 0) {
      this.menu.open('all', [zoom], x, y);
      return;
    }
    const copyStack = ['Copy stack', () => this.#copy(this.#stackText(side, node), 'Stack copied')];
    this.#functionMenu(functionOf(graph.key[node]), [zoom, copyStack], x, y);
  }

  #functionMenu(fn, more, x, y) {
    const name = this.model.functionName(fn);
    this.menu.open(name, [
      ...more,
      ['Copy function name', () => this.#copy(name, 'Function name copied'), 'c'],
      ['Search for this function', () => this.#find(fn)],
      ['Callers and callees', () => this.go({ view: 'sandwich', fn, callers: [], callees: [] }), 's'],
    ], x, y);
  }

  #summary(side, node) {
    const { graph, weight } = this.graphs[side].data;
    const share = formatPercent(this.model.total > 0 ? weight[node] / this.model.total : 0);
    return `${this.model.nodeName(graph, node)}: ${share}, ${plural(graph.totalSamples[node], 'sample')}`;
  }
}
