// The page: one state, one model, and the views that draw them. Every change goes through `go`.

import { button, buttons, byId, choiceButton, copyText, el, press } from './dom.js';
import {
  formatCount, formatDuration, formatHalf, formatPercent, formatPeriod, isClockEvent, isWallEvent, plural,
} from './format.js';
import { MAX_COLOURED_BINARIES, binaryColour, cssColour, lossColour, themePaint, vary } from './colors.js';
import { MAX_INVERTED_NODES } from './invert.js';
import { MAX_TIME_NODES } from './timeorder.js';
import { MAX_GROUPED_NODES, findPath, functionOf, isInlined, pathTo } from './tree.js';
import { exactly } from './search.js';
import { shortenName } from './names.js';
import { DEFAULT_STATE, decodeState, encodeState } from './state.js';
import { Model } from './model.js';
import { FlameGraph } from './flame.js';
import { Menu, Notice, Tooltip } from './popups.js';
import { FunctionTable } from './table.js';
import { decodeSwitches } from './switches.js';
import { WaitsView } from './waitsview.js';
import { ChartView } from './chartview.js';
import { renderRecording, renderStrip, shellLine } from './facts.js';
import { CallTree } from './calltree.js';
import { codeEvent, codeFor, decodeCode, hottestCode, noCodeReason } from './code.js';
import { changeColour, decodeCompare } from './compare.js';
import { CompareView } from './compareview.js';
import { CodeView, codeFacts } from './codeview.js';
import { frameTip } from './frametip.js';
import { Theme } from './theme.js';
import { categoryColour, fillChoice, renderLegend, renderSelectors, renderSeries } from './controls.js';
import { Strip, rangeByWheel } from './strip.js';
import { stripSeries } from './stripdata.js';
import { TRANSFORM_KEYS, renderTransforms, transformItems } from './transformbar.js';

/** @import { Profile, State } from './types.d.ts' */

const TYPING_MS = 120;
/** The wheel rests after that: views that take longer follow. */
const WHEEL_RESTS_MS = 150;
/** Intervals are computed when nothing changed for so long. */
const INTERVALS_AFTER_MS = 120;
/** Half of the pieces that the time of a thread is parted into at most (crates/whit-page/src/wall.rs). */
const WALL_COLUMNS = 512;
/** A change of one of these adds a step to the browser's history. */
const HISTORY = ['event', 'pid', 'tid', 'comm', 'lane', 'view', 'stacks', 'zoom', 'fn', 'callers', 'callees', 'range', 'root', 'order', 'transforms'];

const MAX_CRUMB_CHARACTERS = 36;

/** The nodes that a bound took from a graph, in words. */
function cutText(graph, model) {
  if (model.tree.cut) {
    return `deepest frames left out: the tree has ${formatCount(MAX_GROUPED_NODES)} nodes`;
  }
  return graph.inTime ? `later samples left out after ${formatCount(MAX_TIME_NODES)} frames: choose a shorter range`
    : `deepest callers left out: ${formatCount(MAX_INVERTED_NODES)} nodes`;
}

/** Colours of the series; the joined ones are grey. */
function seriesColour(rank, { labels, shares }, theme) {
  return binaryColour(rank < shares.length ? rank : labels.length + MAX_COLOURED_BINARIES, theme);
}

/** @type {any} */
const ABSENT = undefined;

export class App {
  /** @type {State} */
  state;
  /** @type {State | null} The state before the pointer began to move. */
  settled = null;
  /** @type {any} What the search finds. */
  found = null;
  /** @type {any} Colours by key in the present theme and colouring. */
  fills;
  /** @type {any} Series of the strip. */
  stripData;
  /** @type {Set<number> | undefined} Keys of the tree. */
  calledKeys;
  /** @type {number | null} The function of the sandwich. */
  centerFn = null;

  // Parts that only some pages have; what shows them is hidden elsewhere.
  /** @type {CompareView} */
  compareView = ABSENT;
  /** @type {Tooltip} */
  compareTip = ABSENT;
  /** @type {CodeView} */
  codeView = ABSENT;
  /** @type {WaitsView} */
  waits = ABSENT;
  /** @type {ChartView} */
  chart = ABSENT;
  /** @type {Strip | undefined} */
  strip;

  /** @param {Profile} profile */
  constructor(profile) {
    const model = new Model(profile);
    this.model = model;
    this.codeFunctions = new Set((profile.code?.functions ?? []).map((entry) => entry.function));
    this.switches = profile.switches ? decodeSwitches(profile.switches) : null;
    this.compare = profile.compare ? decodeCompare(profile.compare) : null;
    this.code = profile.code ? decodeCode(profile.code) : null;
    this.defaults = {
      ...DEFAULT_STATE,
      view: profile.startView ?? DEFAULT_STATE.view,
      // Programs are not merged at their first function.
      root: this.model.groupings.some(({ id }) => id === 'process') ? 'process' : 'none',
      by: this.model.groupings[0]?.id ?? 'process',
    };
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
      code: this.code === null ? null : (fn) => this.#openCode(fn),
      menu: (fn, x, y) => this.#functionMenu(fn, [], x, y),
    });
    this.callTree = new CallTree(byId('call-tree'), {
      menu: (node, x, y) => this.#treeMenu(node, x, y),
      key: (event, node) => this.#treeKey(event, node),
      opened: () => this.#renderIntervals(),
      status: (node) => {
        const { graph, weight } = this.callTree.data;
        byId('status').textContent = `${model.nodeName(graph, node)}: ${formatPercent(weight[node] / model.total)}`;
      },
    });
    this.#addCompare();
    this.#addCode();
    this.waits = this.switches === null ? ABSENT
      : new WaitsView(this.switches, model, { go: (change) => this.go(change), wheel: (event, ns) => this.#wheel(event, ns) });
    this.#addChart();
    this.#addStrip();
    renderStrip(profile, { losses: byId('losses'), cost: byId('cost'), warnings: byId('warnings') });
    renderRecording(profile, byId('view-recording'));
    this.#renderTitle();
    this.#listen();
    this.render({});
  }

  get profile() {
    return this.model.profile;
  }

  #addStrip() {
    const { groupings, moments } = this.model;
    const labels = groupings.map(({ id, label }) => ({ value: id, text: label }));
    fillChoice(byId('root'), [{ value: 'none', text: 'all' }, ...labels]);
    fillChoice(byId('strip-by'), labels.length > 0 ? labels : [{ value: 'process', text: 'process' }]);
    if (moments === null) {
      choiceButton('order=time').disabled = true;
      return;
    }
    byId('strip').hidden = false;
    this.strip = new Strip(byId('strip-plot'), moments, {
      select: (range, live) => this.#selectRange(range, live),
      wheel: (event, ns) => this.#wheel(event, ns),
      hover: (text) => {
        byId('strip-hover').textContent = text;
      },
      resized: () => this.#renderStrip(),
    });
    byId('strip-clear').addEventListener('click', () => this.go({ range: null }));
  }

  #addCompare() {
    if (this.compare === null) {
      return;
    }
    choiceButton('view=compare').hidden = false;
    this.compareTip = new Tooltip((node) => this.compareView.tip(node));
    this.compareView = new CompareView(this.compare, this.model, {
      zoom: (zoom) => this.go({ zoom }, { animate: true }),
      hover: (node, event) => {
        if (node < 0 || event === null || event.pointerType === 'touch') {
          this.compareTip.hide();
        } else {
          this.compareTip.show(`${node} ${this.state.event}`, node, event.clientX, event.clientY);
        }
      },
      status: (text) => {
        byId('status').textContent = text;
      },
      search: (fn) => this.#find(fn),
    });
  }

  #renderCompare(animate) {
    const { state, model, found, theme } = this;
    const matches = found === null || found.error !== '' ? null : found.functions;
    this.compareTip.hide();
    this.compareView.show({
      event: state.event,
      selection: { ...model.selection, key: JSON.stringify([state.pid, state.tid, state.comm]) },
      zoom: state.zoom,
      shape: state.shape,
      theme: theme.name,
      paint: themePaint(theme.name),
      match: matches === null ? null : (key) => matches[functionOf(key)] === 1,
      animate,
    });
    const swatch = (colour, text, cls = '') => {
      const element = el('span', { class: `swatch ${cls}`, 'aria-hidden': 'true' });
      if (colour !== null) {
        element.style.background = colour;
      }
      return el('span', {}, element, text);
    };
    const of = (change) => cssColour(changeColour(change, theme.name));
    byId('compare-legend').replaceChildren(
      swatch(of(-0.5), 'less after'),
      swatch(of(0), 'same'),
      swatch(of(0.5), 'more after'),
      ...(this.compareView.isPart ? [] : [swatch(null, 'cannot be told', 'hatch')]),
    );
  }

  #addCode() {
    if (this.code === null) {
      return;
    }
    const { model, code } = this;
    code.functions.forEach((entry) => {
      entry.name = model.functionName(entry.function);
    });
    choiceButton('view=source').hidden = false;
    this.codeView = new CodeView(
      { lines: byId('code-lines'), instructions: byId('code-instructions') },
      { status: (text) => {
        byId('status').textContent = text;
      } },
    );
    const option = ({ name, function: fn }, index) => ({ value: String(index), text: `${shortenName(name, 60)} · ${shortenName(model.functionDso(fn).name, 24)}` });
    fillChoice(byId('code-function'), code.functions.map(option));
    byId('code-function').addEventListener('change', () => this.go({ fn: code.functions[Number(byId('code-function').value)].function }));
    byId('code-hottest').addEventListener('click', () => this.codeView.toHottest());
  }

  /** The function whose code a frame is part of: an inlined one stands on the function around it. */
  #codeAround(side, node) {
    const { graph } = this.graphs[side].data;
    const own = functionOf(graph.key[node]);
    if (side !== 'graph' || this.state.stacks !== 'top-down' || codeFor(this.code, own, this.model.functionName(own)) >= 0) {
      return own;
    }
    let at = node;
    while (isInlined(graph.key[at]) && graph.parent[at] > 0) {
      at = graph.parent[at];
    }
    return this.model.isGroup(graph.key[at]) ? own : functionOf(graph.key[at]);
  }

  /** Shows the code of a function. */
  #openCode(fn) {
    this.go({ view: 'source', fn });
  }

  #addChart() {
    const { model } = this;
    if (model.moments === null) {
      return;
    }
    choiceButton('view=chart').hidden = false;
    this.chart = new ChartView(model, this.switches?.timeline ?? null, {
      go: (change) => this.go(change),
      wheel: (event, ns) => this.#wheel(event, ns),
      menu: (fn, items, x, y) => this.#functionMenu(fn, items, x, y),
      open: (fn) => this.go({ view: 'sandwich', fn, callers: [], callees: [] }),
      code: this.code === null ? null : (fn) => this.#openCode(fn),
      copy: (text, done) => this.#copy(text, done),
      notice: (text) => this.notice.show(text),
      transform: (transform) => this.#transform(transform),
    });
  }

  // ---- state

  /** The state of the address; some views need data that not all pages have. */
  #decode() {
    const state = decodeState(location.hash, this.defaults);
    const isMissing = { chart: this.model.moments === null, switches: this.switches === null, source: this.code === null, compare: this.compare === null };
    return isMissing[state.view] ? { ...state, view: 'graph' } : state;
  }

  /** Changes the state, the page and the fragment. */
  go(change, { animate = false, live = false } = {}) {
    const before = this.settled ?? this.state;
    this.state = { ...this.state, ...change };
    if (live) {
      // While the pointer moves, only the picture follows.
      this.settled ??= before;
      this.render({ live });
      return;
    }
    this.settled = null;
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
    /** @param {'event' | 'process' | 'thread' | 'comm' | 'root' | 'strip-by'} id */
    const on = (id, change) => byId(id).addEventListener('change', () => this.go(change(byId(id).value)));
    on('event', (value) => ({ event: Number(value) }));
    on('process', (value) => ({ pid: number(value), tid: null, comm: null }));
    on('thread', (value) => ({ tid: number(value), comm: null }));
    on('root', (root) => ({ root, zoom: [] }));
    on('strip-by', (by) => ({ by }));
    on('comm', (value) => ({ comm: value === '' ? null : value }));
    this.#listenToButtons();
    this.#typing(byId('search'), (search) => this.go({ search }));
    byId('search').addEventListener('keydown', (event) => event.key === 'Enter' && this.#pickFound());
    this.#typing(byId('filter'), (filter) => this.go({ filter }));
    document.addEventListener('keydown', (event) => this.#key(event));
  }

  #listenToButtons() {
    const choose = (attribute, change) => {
      for (const choice of buttons(`[data-${attribute}]`)) {
        choice.addEventListener('click', () => this.go(change(choice.dataset[attribute])));
      }
    };
    choose('view', (view) => ({ view }));
    choose('stacks', (stacks) => ({ stacks, order: 'weight', zoom: [] }));
    choose('order', (order) => ({ order, stacks: 'top-down', zoom: [] }));
    choose('strip', (strip) => ({ strip }));
    choose('shape', (shape) => ({ shape }));
    choose('direction', (direction) => ({ direction }));
    choose('waits', (waits) => ({ waits }));
    choose('weight', (weight) => ({ weight }));
    choose('colour', (colour) => {
      this.muted.clear();
      return { colour };
    });
    const click = (id, action) => byId(id).addEventListener('click', action);
    click('regex', () => this.go({ regex: !this.state.regex }));
    click('search-clear', () => this.#clearSearch());
    click('undo', () => this.#undo());
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

  render({ animate = false, live = false }) {
    const { state, model } = this;
    const isNew = model.select(state);
    this.fills = model.root === this.fillsRoot ? this.fills : undefined;
    this.fillsRoot = model.root;
    this.calledKeys = isNew ? undefined : this.calledKeys;
    if (!live && (isNew || this.stale || this.rendered === undefined)) {
      renderSelectors(
        { event: byId('event'), process: byId('process'), thread: byId('thread'), comm: byId('comm') },
        model,
        state,
      );
    }
    // Selectors are filled when the pointer rests.
    this.stale = live;
    this.rendered = true;
    this.tooltip.hide();
    this.#renderChoices();
    if (live) {
      this.#renderRange();
    } else {
      this.#renderStrip();
      this.#renderTransforms();
    }
    this.#renderSearch();
    for (const view of ['compare', 'graph', 'chart', 'tree', 'functions', 'sandwich', 'source', 'switches', 'recording']) {
      byId(`view-${view}`).hidden = view !== state.view;
    }
    const show = {
      compare: () => this.#renderCompare(animate),
      graph: () => this.#renderGraph(animate, live),
      tree: () => this.#renderTree(),
      functions: () => this.#renderFunctions(),
      sandwich: () => this.#renderSandwich(animate),
      source: () => this.#renderCode(),
      chart: () => this.#renderChart(live),
      switches: () => this.waits.show(state, this.theme.name),
      recording: () => {},
    };
    show[state.view]();
    this.#renderIntervals();
    if (!live) {
      this.#loadRange();
    }
  }

  /** Draws again when a server knows a range more exactly than the page. */
  #loadRange() {
    const { range } = this.state;
    this.model.source.load(range).then(
      (isNew) => isNew && this.render({}),
      (error) => this.notice.show(`whit serve gives no range, so this one is in whole buckets: ${error.message}`),
    );
  }

  #renderCode() {
    const { model, code, state } = this;
    const fn = state.fn !== null && state.fn < model.realNames.length ? state.fn : null;
    const index = fn === null ? hottestCode(code, state.event) : codeFor(code, fn, model.functionName(fn));
    const entry = code.functions[index];
    byId('code-panes').hidden = entry === undefined;
    byId('code-hottest').disabled = entry === undefined;
    byId('code-function').value = entry === undefined ? '' : String(index);
    const notes = [];
    if (entry === undefined) {
      const name = fn === null ? '' : `${shortenName(model.functionName(fn), 80)} is not on this page. `;
      byId('code-facts').textContent = '';
      notes.push(`${name}${noCodeReason(code, fn)}`);
    } else {
      const event = codeEvent(entry, state.event, isWallEvent(model.event.name));
      const { name: eventName, period } = this.profile.events[event] ?? { name: '', period: 0 };
      const whole = entry.weights.find((weight) => weight.event === event) ?? null;
      const isPart = [state.pid, state.tid, state.comm, state.range].some((choice) => choice !== null);
      const binary = model.functionDso(entry.function).path;
      byId('code-facts').textContent = codeFacts(entry, { binary, eventName, whole, eventTotal: period, isPart }).join(' · ');
      if (fn !== null && entry.function !== fn) {
        notes.push(`${shortenName(model.functionName(fn), 80)} is inlined; this is the function that it is a part of.`);
      }
      if (entry.problem !== null) {
        notes.push(`The instructions are not at hand: ${entry.problem}. Addresses of samples stand below.`);
      }
      byId('code-source').hidden = entry.lines.length === 0;
      if (entry.problem === null && entry.lines.length === 0) {
        notes.push('No debug information says which source lines these instructions come from.');
      }
      this.codeView.show(entry, event, whole);
    }
    byId('code-problem').textContent = notes.join(' ');
    byId('code-problem').hidden = notes.length === 0;
  }

  #renderChart(live) {
    if (!live) {
      this.#renderLegend(byId('chart-legend'));
    }
    this.chart.show(this.state, { ...this.#colouring(), lossColour: lossColour(this.theme.name) }, live);
  }

  #renderTitle() {
    const { recording, title } = this.profile;
    const command = this.compare === null ? shellLine(recording.cmdline) : '';
    byId('title').textContent = command === '' ? title : command;
    byId('title').title = command;
    const facts = [recording.hostname, recording.osRelease, recording.arch].filter((text) => text !== '');
    byId('subtitle').textContent = facts.join(' · ');
  }

  #renderChoices() {
    const { state, model } = this;
    for (const name of ['view', 'stacks', 'order', 'strip', 'shape', 'colour', 'direction', 'waits']) {
      for (const choice of buttons(`[data-${name}]`)) {
        choice.setAttribute('aria-pressed', String(choice.dataset[name] === state[name]));
      }
    }
    byId('root').value = model.root;
    byId('strip-by').value = this.#stripBy();
    byId('regex').setAttribute('aria-pressed', String(state.regex));
    // Where samples have no period there is nothing to choose.
    const [byPeriod, bySamples] = ['period', 'samples'].map((weight) => choiceButton(`weight=${weight}`));
    // The statistics of a comparison are those of periods.
    byPeriod.disabled = this.model.weights.totalPeriod[0] === 0 || state.view === 'compare';
    bySamples.disabled = isWallEvent(this.model.event.name) || state.view === 'compare';
    press({ period: byPeriod, samples: bySamples }, this.model.byPeriod ? 'period' : 'samples');
    const { weights, event } = this.model;
    const [samples, period] = [weights.totalSamples[0], weights.totalPeriod[0]];
    const word = isClockEvent(event.name) ? '' : ` ${event.name}`;
    byId('selected').textContent = isWallEvent(event.name) ? `${formatDuration(period)} of threads’ time` : samples > 0
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

  /** Colours of frames, and marks of those that the search finds. */
  #colouring() {
    const { found, model } = this;
    const matches = found === null || found.error !== '' ? null : found.functions;
    return {
      paint: themePaint(this.theme.name),
      fill: (key) => this.#fill(key),
      match: matches === null ? null : (key) => matches[functionOf(key)] === 1,
      muted: (key) => this.muted.has(model.category(key, this.state.colour)),
    };
  }

  #drawing(laidOut, zoom, up, { base = 0, nothing = '' } = {}) {
    return { ...laidOut, ...this.#colouring(), zoom, up, base, nothing, name: (node) => this.model.nodeName(laidOut.graph, node) };
  }

  #renderGraph(animate, live) {
    const { state, model } = this;
    const isPlain = state.stacks === 'top-down' && state.order === 'weight';
    const laidOut = live && isPlain ? model.graphInMotion(state.zoom) : model.graph(state.stacks, state.zoom, state.order);
    const zoom = findPath(laidOut.graph, state.zoom);
    const empty = laidOut.weight[0] === 0;
    byId('empty').hidden = !empty;
    byId('flame').hidden = empty;
    if (empty) {
      this.#renderEmpty(byId('empty'));
    }
    if (!live) {
      this.#renderBreadcrumb(laidOut.graph, zoom);
      this.#renderLegend(byId('legend'));
    }
    const chosen = state.fn === null ? undefined : (key) => functionOf(key) === state.fn;
    this.graphs.graph.show({ ...this.#drawing(laidOut, zoom, state.shape === 'flame'), chosen }, { animate });
    const isCut = laidOut.graph.cut || model.tree.cut;
    byId('cut').hidden = !isCut;
    byId('cut').textContent = isCut ? cutText(laidOut.graph, model) : '';
  }

  #renderTree() {
    const { state, model } = this;
    const laidOut = model.graph(state.stacks, []);
    const { graph } = laidOut;
    this.callTree.show({
      ...laidOut,
      kind: `${state.stacks} ${model.root} ${JSON.stringify(state.transforms)}`,
      self: graph.selfSamples === null ? null : model.selfOf(graph),
      total: model.total,
      name: (node) => model.nodeName(graph, node),
      binary: (node) => model.functionDso(functionOf(graph.key[node])).name,
      format: (weight) => this.#formatWeight(weight),
      colour: (node) => this.#fill(graph.key[node]),
      chosen: (node) => functionOf(graph.key[node]) === state.fn,
    });
  }

  #treeItems(node) {
    const { graph } = this.callTree.data;
    const path = this.state.stacks === 'top-down' ? pathTo(graph, node) : null;
    return transformItems(this.model, graph.key[node], path, (transform) => this.#transform(transform));
  }

  #treeMenu(node, x, y) {
    const { graph } = this.callTree.data;
    const show = ['Show in the graph', () => this.go({ view: 'graph', order: 'weight', zoom: pathTo(graph, node) })];
    this.#functionMenu(functionOf(graph.key[node]), [show, ...this.#treeItems(node)], x, y);
  }

  #treeKey(event, node) {
    const found = this.#treeItems(node).find(([, , key]) => key === event.key);
    const key = this.callTree.data.graph.key[node];
    if (found !== undefined) {
      event.preventDefault();
      found[1]();
    } else if (event.key === 's' && !this.model.isGroup(key)) {
      event.preventDefault();
      this.go({ view: 'sandwich', fn: functionOf(key), callers: [], callees: [] });
    } else if (event.key === 'a' && this.code !== null && !this.model.isGroup(key)) {
      event.preventDefault();
      this.#openCode(functionOf(key));
    }
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
    const nodes = [];
    for (let node = zoom; node >= 0; node = graph.parent[node]) {
      nodes.push(node);
    }
    const crumbs = nodes.reverse().map((node) => {
      const name = this.model.nodeName(graph, node);
      const crumb = button(shortenName(name, MAX_CRUMB_CHARACTERS), () => this.go({ zoom: pathTo(graph, node) }, { animate: true }), { title: name });
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

  #renderLegend(container) {
    const { state, muted } = this;
    renderLegend(container, this.model, {
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
    for (let fn = 0; fn < model.realNames.length; fn++) {
      if (total[fn] > 0) {
        rows.push(this.#functionRow(fn, self[fn], total[fn]));
      }
    }
    if (document.activeElement !== byId('filter')) {
      byId('filter').value = state.filter;
    }
    const { sort, ascending, filter } = state;
    const shown = this.table.show(rows, { sort, ascending, filter, format: (weight) => this.#formatWeight(weight), chosen: state.fn });
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
      hasCode: this.codeFunctions.has(fn),
      known: fn >= model.functionCount || profile.functions.known[fn] === 1,
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
    const fn = state.fn !== null && state.fn < model.realNames.length ? state.fn : this.#hottest();
    byId('sandwich').hidden = fn === null;
    byId('sandwich-empty').hidden = fn !== null;
    this.centerFn = fn;
    if (fn === null) {
      return;
    }
    const sums = model.functionSums();
    const [self, total] = [model.selfOf(sums)[fn], model.weightsOf(sums)[fn]];
    const dso = model.functionDso(fn);
    const share = (weight) => `${formatPercent(model.total > 0 ? weight / model.total : 0)} (${this.#formatWeight(weight)})`;
    byId('center').replaceChildren(
      el('span', { class: 'center-name', title: model.functionName(fn) }, model.functionName(fn)),
      el(
        'span',
        { class: 'center-facts' },
        `${dso.name} · self ${share(self)}`,
        el('span', { class: 'half-self' }),
        ` · with callees ${share(total)}`,
        el('span', { class: 'half-total' }),
      ),
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
    weights.subarray(0, this.model.realNames.length).forEach((weight, fn) => {
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
    if (key >= 0 && !this.model.isGroup(key)) {
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
    const key = data.graph.key[node];
    if (this.code !== null && key >= 0 && !this.model.isGroup(key)) {
      actions.a = () => this.#openCode(this.#codeAround(side, node));
    }
    if (TRANSFORM_KEYS[event.key] !== undefined && key >= 0) {
      const found = this.#transformItems(side, node).find(([, , hint]) => hint === event.key);
      actions[event.key] = found?.[1];
    }
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  }

  // ---- changes of the call tree

  #transformItems(side, node) {
    const { graph } = this.graphs[side].data;
    const key = graph.key[node];
    const isWhole = side === 'graph' && this.state.stacks === 'top-down' && !graph.inTime;
    return transformItems(this.model, key, isWhole ? pathTo(graph, node) : null, (transform) => this.#transform(transform));
  }

  #transform(transform) {
    this.go({ transforms: [...this.state.transforms, transform], zoom: [], callers: [], callees: [] });
  }

  #undo() {
    if (this.state.transforms.length > 0) {
      this.go({ transforms: this.state.transforms.slice(0, -1), zoom: [], callers: [], callees: [] });
    }
  }

  #renderTransforms() {
    byId('transform-bar').hidden = this.state.transforms.length === 0;
    renderTransforms(byId('transforms'), this.model, this.state.transforms, (count) => (
      this.go({ transforms: this.state.transforms.slice(0, count), zoom: [], callers: [], callees: [] })));
  }

  // ---- time

  /** The groups in the strip: those of the address, where this page has them. */
  #stripBy() {
    const { groupings } = this.model;
    return groupings.some(({ id }) => id === this.state.by) ? this.state.by : groupings[0]?.id ?? 'process';
  }

  #renderStrip() {
    const { strip, model, state } = this;
    if (strip === undefined) {
      return;
    }
    const by = this.#stripBy();
    const split = by === 'cpu' ? model.splitByCpu() : { rows: this.profile.rows, moments: model.moments };
    // A wait lasts over many columns, in pieces that begin in one of them.
    const columns = isWallEvent(model.event.name) ? strip.columns(Infinity, WALL_COLUMNS) : strip.columns(model.event.samples);
    const key = JSON.stringify([model.filterKey, by, columns]);
    if (this.stripData?.key !== key) {
      this.stripData = { key, ...stripSeries(this.profile, { ...split, selection: model.selection, byPeriod: model.byPeriod, event: model.event }, by, columns) };
    }
    const data = this.stripData;
    const series = data.labels.map((label, rank) => ({ label, colour: cssColour(seriesColour(rank, data, this.theme.name)) }));
    strip.show({
      ...data, series, range: state.range, mode: state.strip, paint: themePaint(this.theme.name),
      heatColour: this.theme.name === 'dark' ? '#ff9166' : '#b5451b', lossColour: lossColour(this.theme.name),
    });
    renderSeries(byId('strip-legend'), state.strip === 'area' ? series : []);
    this.#renderRange();
  }

  #selectRange(range, live) {
    this.go({ range, ...(this.state.order === 'time' ? { zoom: [] } : {}) }, { live });
  }

  /** Takes a turn of the wheel at a moment of the strip; false where it chooses no range. */
  #wheel(event, ns) {
    const { moments } = this.model;
    const now = this.wheelFrame === undefined ? this.state.range : this.wheelRange;
    const range = moments === null ? undefined : rangeByWheel(event, ns, now, moments.spanNs, moments.bucketNs);
    if (range === undefined) {
      return false;
    }
    // One change for each frame drawn.
    this.wheelRange = range;
    this.wheelFrame ??= requestAnimationFrame(() => {
      this.wheelFrame = undefined;
      this.#selectRange(this.wheelRange, true);
    });
    clearTimeout(this.wheelTimer);
    this.wheelTimer = setTimeout(() => this.#selectRange(this.state.range, false), WHEEL_RESTS_MS);
    return true;
  }

  #renderRange() {
    if (this.strip === undefined) {
      return;
    }
    const { range } = this.state;
    this.strip.showRange(range);
    byId('strip-clear').hidden = range === null;
    byId('strip-range').textContent = range === null ? ''
      : `${formatDuration(range[0])} – ${formatDuration(range[1])} (${formatDuration(range[1] - range[0])})`;
  }

  /** Intervals follow when the reader pauses: they take longer than the sums. */
  #renderIntervals() {
    clearTimeout(this.intervalsTimer);
    const { view } = this.state;
    const isTree = view === 'tree' && this.state.stacks === 'top-down';
    if (this.model.moments === null || !(isTree || ['functions', 'sandwich'].includes(view))) {
      return;
    }
    const steps = isTree ? this.model.nodeIntervalSteps(this.callTree.nodes()) : this.model.intervalSteps();
    const work = () => {
      const { done, value } = steps.next();
      if (done) {
        this.#showIntervals(view, value);
      } else {
        this.intervalsTimer = setTimeout(work);
      }
    };
    this.intervalsTimer = setTimeout(work, INTERVALS_AFTER_MS);
  }

  #showIntervals(view, intervals) {
    if (view === 'functions') {
      this.table.showIntervals(intervals);
    }
    if (view === 'tree') {
      this.callTree.showIntervals(intervals);
      return;
    }
    const fn = this.centerFn ?? null;
    for (const id of ['self', 'total']) {
      const place = byId('center').querySelector(`.half-${id}`);
      if (place !== null && fn !== null) {
        place.textContent = intervals === null ? '' : ` ${formatHalf(intervals[id].half(fn))}`;
      }
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
      i: () => this.go({ view: state.view === 'tree' ? 'tree' : 'graph', stacks: state.stacks === 'top-down' ? 'bottom-up' : 'top-down', order: 'weight', zoom: [] }),
      f: () => this.go({ view: 'graph', shape: state.shape === 'flame' ? 'icicle' : 'flame' }),
      o: () => this.go({ view: 'graph', stacks: 'top-down', zoom: [], order: state.order === 'time' ? 'weight' : 'time' }),
      u: () => this.#undo(),
      r: () => this.#reset(),
      ...(this.code === null || state.view === 'source' ? {} : { a: () => this.go({ view: 'source', ...(state.view === 'sandwich' ? { fn: this.centerFn } : {}) }) }),
      ...(state.view === 'source' ? { h: () => this.codeView.toHottest() } : {}),
      '?': () => byId('help-dialog').showModal(),
    };
    // Digits are the tabs from left to right; that of waits is hidden where there are none.
    const tabs = buttons('[data-view]:not([hidden])');
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
    this.#functionMenu(functionOf(graph.key[node]), [zoom, copyStack, ...this.#transformItems(side, node)], x, y);
  }

  #functionMenu(fn, more, x, y) {
    const name = this.model.functionName(fn);
    const items = more.length > 0 ? more : transformItems(this.model, fn * 2, null, (transform) => this.#transform(transform));
    if (this.model.isGroup(fn * 2)) {
      this.menu.open(name, more, x, y);
      return;
    }
    this.menu.open(name, [
      ...items,
      ['Copy function name', () => this.#copy(name, 'Function name copied'), 'c'],
      ['Search for this function', () => this.#find(fn)],
      ...(this.code === null ? [] : [['Source and assembly', () => this.#openCode(fn), 'a']]),
      ['Callers and callees', () => this.go({ view: 'sandwich', fn, callers: [], callees: [] }), 's'],
    ], x, y);
  }

  #summary(side, node) {
    const { graph, weight } = this.graphs[side].data;
    const share = formatPercent(this.model.total > 0 ? weight[node] / this.model.total : 0);
    return `${this.model.nodeName(graph, node)}: ${share}, ${plural(graph.totalSamples[node], 'sample')}`;
  }
}
