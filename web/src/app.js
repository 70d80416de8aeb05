// The page: one state, one model, and what draws them. Every change goes through `go`.

import { button, byId, copyText, el, press } from './dom.js';
import { formatCount, formatPercent, formatPeriod, isClockEvent, plural } from './format.js';
import { cssColour, KINDS, themePaint, vary } from './colors.js';
import { findPath, functionOf, isInlined, pathTo } from './tree.js';
import { exactly } from './search.js';
import { decodeState, encodeState } from './state.js';
import { Model } from './model.js';
import { FlameGraph } from './flame.js';
import { Menu, Notice, Tooltip } from './popups.js';
import { FunctionTable } from './table.js';
import { renderRecording, renderStrip, shellLine } from './facts.js';
import { categoryColour, renderLegend, renderSelectors } from './controls.js';

const TYPING_MS = 120;
const THEME_KEY = 'whit-theme';
/** What a change of these does to a view is worth a step of the browser's history. */
const HISTORY = ['event', 'pid', 'tid', 'comm', 'view', 'stacks', 'zoom', 'fn', 'callers', 'callees'];

function storedTheme() {
  try {
    return localStorage.getItem(THEME_KEY) ?? 'auto';
  } catch {
    // Storage may be closed to local files; the theme then follows the system.
    return 'auto';
  }
}

export class App {
  constructor(profile) {
    this.model = new Model(profile);
    this.state = decodeState(location.hash);
    this.muted = new Set();
    this.notice = new Notice();
    this.menu = new Menu();
    this.tooltip = new Tooltip(({ side, node }) => this.#tooltipContent(side, node));
    this.darkQuery = window.matchMedia('(prefers-color-scheme: dark)');
    this.#applyTheme(storedTheme());
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
    renderStrip(profile, { losses: byId('losses'), cost: byId('cost'), warnings: byId('warnings') });
    renderRecording(profile, byId('view-recording'));
    this.#renderTitle();
    this.#listen();
    this.render({});
  }

  get profile() {
    return this.model.profile;
  }

  // ---- state

  /** Changes the state, the page and the fragment. */
  go(change, { animate = false } = {}) {
    const before = this.state;
    this.state = { ...before, ...change };
    const step = HISTORY.some((name) => name in change && String(before[name]) !== String(change[name]));
    this.#writeFragment(step);
    this.render({ animate });
  }

  #writeFragment(step) {
    const fragment = `#${encodeState(this.state)}`;
    if (fragment === (location.hash || '#')) {
      return;
    }
    this.written = fragment;
    if (step) {
      location.hash = fragment;
    } else {
      // Unlike history.replaceState this works on every local file.
      location.replace(fragment);
    }
  }

  #listen() {
    window.addEventListener('hashchange', () => {
      if (encodeState(decodeState(location.hash)) !== encodeState(this.state)) {
        this.state = decodeState(location.hash);
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
    this.#typing(byId('filter'), (filter) => this.go({ filter }));
    document.addEventListener('keydown', (event) => this.#key(event));
    this.darkQuery.addEventListener('change', () => {
      this.#applyTheme(this.themeChoice);
      this.render({});
    });
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
    click('theme', () => this.#nextTheme());
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

  // ---- theme

  #applyTheme(choice) {
    this.themeChoice = ['light', 'dark'].includes(choice) ? choice : 'auto';
    this.theme = this.themeChoice === 'auto' ? (this.darkQuery.matches ? 'dark' : 'light') : this.themeChoice;
    document.documentElement.dataset.theme = this.theme;
    byId('theme').textContent = { auto: '◐', light: '☀', dark: '☾' }[this.themeChoice];
    byId('theme').title = `Theme: ${this.themeChoice}. Click for the next.`;
    this.fills = null;
  }

  #nextTheme() {
    this.#applyTheme({ auto: 'light', light: 'dark', dark: 'auto' }[this.themeChoice]);
    try {
      localStorage.setItem(THEME_KEY, this.themeChoice);
    } catch {
      this.notice.show('The browser does not keep the theme for this file');
    }
    this.render({});
  }

  /** Colour of each key in the present theme and colouring. */
  #fill(key) {
    const scheme = `${this.theme} ${this.state.colour}`;
    if (this.fills?.scheme !== scheme) {
      this.fills = { scheme, colours: [] };
    }
    this.fills.colours[key] ??= vary(
      categoryColour(this.model.category(key, this.state.colour), this.state.colour, this.theme),
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
    for (const view of ['graph', 'functions', 'sandwich', 'recording']) {
      byId(`view-${view}`).hidden = view !== state.view;
    }
    const show = {
      graph: () => this.#renderGraph(animate),
      functions: () => this.#renderFunctions(),
      sandwich: () => this.#renderSandwich(animate),
      recording: () => {},
    };
    show[state.view]();
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
    for (const name of ['view', 'stacks', 'shape', 'weight', 'colour']) {
      const buttons = [...document.querySelectorAll(`[data-${name}]`)];
      press(Object.fromEntries(buttons.map((b) => [b.dataset[name], b])), state[name]);
    }
    byId('regex').setAttribute('aria-pressed', String(state.regex));
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
      : invalid ? 'not a regular expression' : `matched ${formatPercent(this.found.share)} of total`;
    byId('matched').title = invalid ? this.found.error : '';
  }

  #drawing(laidOut, zoom, up) {
    const { found, model } = this;
    const matches = found === null || found.error !== '' ? null : found.functions;
    return {
      ...laidOut,
      zoom,
      up,
      paint: themePaint(this.theme),
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
    const { state, theme, muted } = this;
    renderLegend(byId('legend'), this.model, {
      colour: state.colour,
      theme,
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
      colour: cssColour(categoryColour(this.#categoryOf(fn), this.state.colour, this.theme)),
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
    );
    const callers = model.callers(fn, state.callers);
    const callees = model.callees(fn);
    const zoomOf = (laidOut, path) => findPath(laidOut.graph, path);
    this.graphs.callers.show(this.#drawing(callers, zoomOf(callers, state.callers), true), { animate });
    this.graphs.callees.show(this.#drawing(callees, zoomOf(callees, state.callees), false), { animate });
  }

  /** The function with the most samples of its own: what the sandwich shows unasked. */
  #hottest() {
    const self = this.model.selfOf(this.model.functionSums());
    let best = null;
    self.forEach((weight, fn) => {
      best = weight > (best === null ? 0 : self[best]) ? fn : best;
    });
    return best;
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
      1: () => this.go({ view: 'graph' }),
      2: () => this.go({ view: 'functions' }),
      3: () => this.go({ view: 'sandwich' }),
      4: () => this.go({ view: 'recording' }),
      r: () => this.#reset(),
      '?': () => byId('help-dialog').showModal(),
    };
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

  #tooltipContent(side, node) {
    const { graph, weight, zoom } = this.graphs[side].data;
    const { model } = this;
    const key = graph.key[node];
    const head = el('div', { class: 'tip-name' }, model.nodeName(graph, node));
    const shares = [`${formatPercent(weight[node] / model.total)} of all`];
    if (zoom > 0 && weight[zoom] > 0 && graph.depth[node] >= graph.depth[zoom]) {
      shares.push(`${formatPercent(weight[node] / weight[zoom])} of zoomed`);
    }
    if (graph.parent[node] >= 0 && graph.parent[node] !== zoom) {
      shares.push(`${formatPercent(weight[node] / weight[graph.parent[node]])} of frame below`.replace('below', this.graphs[side].data.up ? 'below' : 'above'));
    }
    const parts = [head];
    if (key >= 0) {
      parts.push(this.#tooltipCode(side, node, key));
    }
    parts.push(el('div', { class: 'tip-shares' }, el('b', {}, shares[0]), ` ${shares.slice(1).map((s) => `· ${s}`).join(' ')}`));
    parts.push(this.#tooltipWeights(graph, node));
    return parts;
  }

  #tooltipCode(side, node, key) {
    const { model } = this;
    const dso = model.functionDso(functionOf(key));
    const kind = KINDS[model.keyKind[key]];
    const badge = el('span', { class: 'badge' }, isInlined(key) ? 'inlined' : kind.label.toLowerCase());
    badge.style.background = cssColour(kind[this.theme]);
    const topDown = side === 'graph' && this.state.stacks === 'top-down';
    const lines = key === model.foldedKey ? [] : model.sourceLines(key, topDown ? node : null);
    return el(
      'div',
      { class: 'tip-code' },
      el('div', {}, badge, ` ${dso.path}`),
      ...lines.map(({ line, share }) => el('div', { class: 'tip-line' }, line, share < 1 ? el('small', {}, ` ${formatPercent(share)}`) : null)),
    );
  }

  #tooltipWeights(graph, node) {
    const { model } = this;
    const clock = isClockEvent(model.event.name);
    const row = (label, samples, period) => [
      el('span', { class: 'tip-label' }, label),
      el('span', {}, formatCount(samples)),
      el('span', {}, period > 0 ? formatPeriod(model.event.name, period) : '–'),
      el('span', {}, formatPercent((model.byPeriod ? period : samples) / model.total)),
    ];
    const self = graph.selfSamples === null ? [] : row('self', graph.selfSamples[node], graph.selfPeriod[node]);
    return el(
      'div',
      { class: 'tip-weights' },
      ...['', 'samples', clock ? 'time' : 'period', '%'].map((text) => el('span', { class: 'tip-head' }, text)),
      ...self,
      ...row(graph.selfSamples === null ? 'weight' : 'total', graph.totalSamples[node], graph.totalPeriod[node]),
    );
  }
}
