// The view of the stack chart: its lane, its boxes on the axis of time, pointer and keys.

import { ChartAxis, drawLosses } from './chartaxis.js';
import { boxText, boxTip } from './charttip.js';
import { lossColour, themePaint } from './colors.js';
import { fillGroups } from './controls.js';
import { byId, el, setStatus } from './dom.js';
import { FlameGraph } from './flame.js';
import { formatCount, formatDuration, formatPercent } from './format.js';
import { boxFunction, chosenLane, laneChart, laneSlices, lanesOf, rowsOfGroups, timelineLanes } from './lanes.js';
import { Tooltip } from './popups.js';
import { RangeDrag } from './rangedrag.js';
import { MAX_CHART_BOXES } from './stackchart.js';
import { rangeByKey, withinSpan } from './strip.js';
import { spanTip } from './timeline.js';
import { TRANSFORM_KEYS } from './transformbar.js';
import { functionOf, pathTo } from './tree.js';

/** @import { Page, Render } from './page.d.ts' */
/** @import { ChartGraph, ChartItem, Keys, Lane, LaneEntries, LaneSlices, TimelineData, TimeRange } from './types.d.ts' */
/** @import { StripBar } from './stripbar.js' */

/** A key with Shift moves the range by this part of its length. */
const KEY_WAY = 0.1;
const LOSS_ALPHA = 0.16;
/** Samples of a server reach beyond a range by this part of it, so that boxes do at its ends. */
const BEYOND = 0.05;

export class ChartView {
  /** @type {{ key: string, lanes: { threads: Lane[], cpus: Lane[] } } | null} */
  held = null;
  /** @type {{ key: string, sliced: LaneSlices, chart: ChartGraph & { distanceNs: number } } | null} Those of all of the time. */
  whole = null;
  /** @type {{ key: string, chart: ChartGraph & { distanceNs: number } } | null} Those of a range, where all are too many. */
  part = null;
  /** @type {{ key: string, entries: LaneEntries } | null} The samples of a range, from the page's server. */
  exact = null;
  wanted = '';
  /** @type {(ChartGraph & { distanceNs: number }) | null} */
  chart = null;
  /** @type {Lane | null} */
  lane = null;
  base = 0;

  /** @param {Page} page
   *  @param {StripBar} strip */
  constructor(page, strip) {
    const { model, switches } = page;
    const timeline = switches?.timeline ?? null;
    this.page = page;
    this.model = model;
    this.timeline = timeline;
    this.places = timelineLanes(timeline);
    this.scroller = byId('chart');
    this.tip = new Tooltip((/** @type {ChartItem} */ what) => (what.span === undefined ? boxTip(model, this.#shown(), what.box, this.#window(), page.theme.name)
      : spanTip(/** @type {TimelineData} */ (timeline), what.span)));
    /** @param {WheelEvent} event */
    const wheel = (event) => strip.wheel(event, this.#nsAt(event.clientX)) && event.preventDefault();
    // Before the graph, which takes all arrows.
    this.scroller.addEventListener('keydown', (event) => this.#moveByKey(event), true);
    this.flame = new FlameGraph(this.scroller, {
      pick: (box) => this.#pick(box),
      zoom: (box) => this.#zoomTo(box),
      open: (box) => boxFunction(this.#shown(), box) >= 0 && this.#isCode(box) && page.actions.open(boxFunction(this.#shown(), box)),
      hover: (box, event) => this.#hover(box < 0 ? null : { box }, event),
      menu: (box, x, y) => this.#menu(box, x, y),
      current: (box) => setStatus(boxText(model, this.#shown(), box, this.#window())),
      key: (event, box) => this.#key(event, box),
    });
    this.scroller.addEventListener('wheel', wheel, { passive: false });
    this.axis = new ChartAxis(byId('chart-axis'), timeline, {
      wheel,
      hover: (span, event) => this.#hover(span < 0 ? null : { span }, event),
    });
    /** @type {ConstructorParameters<typeof RangeDrag>[2]} */
    const drag = {
      nsAt: (clientX) => this.#nsAt(clientX),
      select: (range) => this.#select(range),
      moved: () => this.tip.hide(),
    };
    this.drags = [new RangeDrag(this.scroller, this.flame.spacer, drag), new RangeDrag(byId('chart-axis'), byId('chart-axis'), drag)];
    byId('chart-lane').addEventListener('change', () => page.go({ lane: byId('chart-lane').value }));
    new ResizeObserver(() => this.chart !== null && this.#drawAxis()).observe(this.scroller);
  }

  #moments() {
    return this.model.timed();
  }

  /** @returns {ChartGraph & { distanceNs: number }} */
  #shown() {
    if (this.chart === null) {
      throw new Error('no stack chart is shown');
    }
    return this.chart;
  }

  // ---- showing

  get state() {
    return this.page.state;
  }

  /** @param {Render} render */
  show({ live }) {
    this.tip.hide();
    const lanes = this.#lanes();
    this.lane = chosenLane(lanes, this.state.lane);
    if (!live) {
      this.page.colouring.renderLegend(byId('chart-legend'));
      this.#fillLanes(lanes, this.lane);
    }
    byId('chart-empty').hidden = this.lane !== null;
    byId('chart').hidden = this.lane === null;
    byId('chart-axis').hidden = this.lane === null;
    if (this.lane === null) {
      this.#showNothing();
    } else {
      this.#showLane(this.lane, live);
    }
  }

  #showNothing() {
    this.chart = null;
    byId('chart-note').textContent = '';
    const reason = `No thread has samples of ${this.model.event.name || 'an event'} in this selection.`;
    byId('chart-empty').replaceChildren(el('h2', {}, 'No samples'), el('p', {}, reason));
  }

  /** @param {Lane} lane
   *  @param {boolean} live */
  #showLane(lane, live) {
    const { model, state } = this;
    const chart = this.#charted(lane, live);
    this.chart = chart;
    this.base = 1 + (lane.cpu < 0 ? rowsOfGroups(model, chart) : 0);
    byId('chart-note').textContent = this.#note(lane, chart);
    this.flame.show({
      ...chart,
      ...this.page.colouring.marks(),
      window: this.#window(),
      zoom: 0,
      up: false,
      base: this.base,
      nothing: 'no sample of this thread is left',
      name: (box) => model.nodeName(chart.graph, box),
      chosen: state.fn === null ? undefined : (key) => functionOf(key) === state.fn,
      over: (context, width, height) => {
        context.globalAlpha = LOSS_ALPHA;
        drawLosses(context, this.#moments().lossWindows, this.#window(), width, height, lossColour(this.page.theme.name));
        context.globalAlpha = 1;
      },
    });
    this.#drawAxis();
    if (!live) {
      this.#load(lane);
    }
  }

  #lanes() {
    const key = `${this.model.filterKey} ${this.model.root === 'cpu'}`;
    if (this.held?.key !== key) {
      this.held = { key, lanes: lanesOf(this.model) };
    }
    return this.held.lanes;
  }

  /** @param {{ threads: Lane[], cpus: Lane[] }} lanes
   *  @param {Lane | null} lane */
  #fillLanes({ threads, cpus }, lane) {
    const total = threads.reduce((sum, { weight }) => sum + weight, 0);
    /** @param {Lane} lane */
    const option = ({ id, name, weight }) => ({ value: id, text: `${name}${total > 0 ? ` · ${formatPercent(weight / total)}` : ''}` });
    fillGroups(byId('chart-lane'), [
      { label: `Threads (${formatCount(threads.length)})`, options: threads.map(option) },
      { label: `CPUs (${formatCount(cpus.length)})`, options: cpus.map(option) },
    ], lane?.id ?? '');
  }

  /** The boxes of a lane: of all of the time, so that a moving range draws alone; where those are too many, of the range
   *  when it rests.
   *  @param {Lane} lane
   *  @param {boolean} live */
  #charted(lane, live) {
    const { model, timeline, places, state } = this;
    const key = JSON.stringify([model.filterKey, model.root, state.transforms, lane.id]);
    const exact = this.#exactOf(lane);
    if (exact !== null && !live) {
      return this.#partChart(`${key} ${this.exact?.key}`, () => laneSlices(model, lane, { timeline, places, exact }));
    }
    if (this.whole?.key !== key) {
      const sliced = laneSlices(model, lane, { timeline, places });
      this.whole = { key, sliced, chart: laneChart(model, sliced, null) };
    }
    const { sliced, chart } = this.whole;
    return !chart.graph.cut || live || state.range === null ? chart : this.#partChart(`${key} ${state.range}`, () => sliced);
  }

  /** The boxes of the range alone.
   *  @param {string} key
   *  @param {() => LaneSlices} slices */
  #partChart(key, slices) {
    if (this.part?.key !== key) {
      this.part = { key, chart: laneChart(this.model, slices(), this.state.range) };
    }
    return this.part.chart;
  }

  /** Names the samples that the page's server has of a lane in the range.
   *  @param {Lane} lane */
  #exactKey(lane) {
    return `${lane.id} ${this.state.range}`;
  }

  /** The server's samples of the lane, where they are there and whole.
   *  @param {Lane} lane
   *  @returns {LaneEntries | null} */
  #exactOf(lane) {
    const { exact, model } = this;
    const isOwn = exact?.key === this.#exactKey(lane) && model.allRows === model.profile.rows;
    return exact !== null && isOwn && !exact.entries.isCut ? exact.entries : null;
  }

  /** Asks the page's server, if it has one, for the samples of the lane; draws again when they are there.
   *  @param {Lane} lane */
  async #load(lane) {
    const key = this.#exactKey(lane);
    const { source } = this.model;
    const { spanNs } = this.#moments();
    if (lane.threads.length !== 1 || this.exact?.key === key || this.wanted === key) {
      return;
    }
    this.wanted = key;
    const [from, to] = this.#window();
    const beyond = (to - from) * BEYOND;
    try {
      const entries = await source.lane(lane.threads[0], [Math.max(0, from - beyond), Math.min(spanNs + 1, to + beyond)]);
      // The reader may have gone on.
      if (this.wanted !== key || entries === null) {
        return;
      }
      if (this.state.view === 'chart') {
        this.exact = { key, entries };
        this.show({ animate: false, live: false });
      } else {
        this.wanted = '';
      }
    } catch (error) {
      this.page.notice.show(`whit serve gives no samples, so times are those of buckets: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Bounds that the chart met, and how exact its times are.
   *  @param {Lane} lane
   *  @param {ChartGraph} chart */
  #note(lane, { deepest, stepNs }) {
    const { model: { tree }, state } = this;
    const moments = this.#moments();
    const notes = [];
    if (state.lane !== '' && state.lane !== lane.id) {
      notes.push(`${state.lane} has no samples here: the heaviest thread is shown`);
    }
    const bound = `a chart has ${formatCount(MAX_CHART_BOXES)} boxes; choose a shorter range`;
    if (stepNs > 0) {
      notes.push(`each step of ${formatDuration(stepNs)} shows the stack with most of it: ${bound}`);
    }
    if (deepest < Infinity) {
      notes.push(`frames below row ${formatCount(deepest)} are left out: ${bound}`);
    }
    if (tree.cut) {
      notes.push('deepest frames left out');
    }
    if (this.#exactOf(lane) !== null && moments.sliceNs === null) {
      return notes.join('; ');
    }
    if (this.exact?.key === this.#exactKey(lane) && this.exact.entries.isCut) {
      notes.push(`more than ${formatCount(this.exact.entries.row.length)} samples: choose a shorter range for their own times`);
    }
    if (moments.sliceNs !== null) {
      notes.push(`samples are joined in steps of ${formatDuration(moments.bucketNs)}: their order within is not known`);
    } else if (moments.bucketNs > moments.wantedBucketNs) {
      notes.push(`times are steps of ${formatDuration(moments.bucketNs)}: a page has ${formatCount(moments.maxEntries)} entries`);
    }
    return notes.join('; ');
  }

  /** @returns {TimeRange} */
  #window() {
    return this.state.range ?? [0, Math.max(1, this.#moments().spanNs)];
  }

  #drawAxis() {
    if (this.lane === null || this.scroller.clientWidth === 0) {
      return;
    }
    const moments = this.#moments();
    this.axis.show({
      window: this.#window(),
      width: this.scroller.clientWidth,
      place: this.lane.cpu >= 0 ? -1 : this.places.get(this.lane.id) ?? -1,
      beginNs: moments.waitsBeginNs ?? 0,
      losses: moments.lossWindows,
      lossColour: lossColour(this.page.theme.name),
      paint: themePaint(this.page.theme.name),
    });
  }

  // ---- pointer and keys

  /** @param {number} clientX */
  #nsAt(clientX) {
    const { left } = this.scroller.getBoundingClientRect();
    const share = (clientX - left - this.scroller.clientLeft) / Math.max(1, this.scroller.clientWidth);
    const [from, to] = this.#window();
    return from + Math.max(0, Math.min(1, share)) * (to - from);
  }

  /** @param {TimeRange | null} range */
  #select(range) {
    const { spanNs, bucketNs } = this.#moments();
    this.page.go({ range: range === null ? null : withinSpan(range, spanNs, bucketNs) });
  }

  /** @param {number} box */
  #zoomTo(box) {
    const { layout, weight } = this.#shown();
    this.#select([layout.x[box], layout.x[box] + weight[box]]);
  }

  /** @param {number} box */
  #isCode(box) {
    const key = this.#shown().graph.key[box];
    return key >= 0 && !this.model.isGroup(key);
  }

  /** Chooses the function of a box for all views; once more chooses none.
   *  @param {number} box */
  #pick(box) {
    if (this.#isCode(box)) {
      const fn = boxFunction(this.#shown(), box);
      this.page.go({ fn: fn === this.state.fn ? null : fn, callers: [], callees: [] });
    }
  }

  /** @param {ChartItem | null} what
   *  @param {PointerEvent | null} event */
  #hover(what, event) {
    this.tip.follow(event, `${what?.box} ${what?.span} ${this.whole?.key} ${this.state.range}`, what);
  }

  /** @param {number} box */
  #transformItems(box) {
    const { graph, treeNode } = this.#shown();
    return this.page.actions.transformItems(graph.key[box], pathTo(this.model.tree, treeNode[box]));
  }

  /** @param {number} box
   *  @param {number} x
   *  @param {number} y */
  #menu(box, x, y) {
    this.tip.hide();
    const { treeNode } = this.#shown();
    const zoom = pathTo(this.model.tree, treeNode[box]);
    this.page.actions.menu(boxFunction(this.#shown(), box), [
      ['Select its time', () => this.#zoomTo(box), 'Enter'],
      ['Show in the graph', () => this.page.go({ view: 'graph', stacks: 'top-down', order: 'weight', zoom })],
      ...this.#transformItems(box),
    ], x, y);
  }

  /** @param {KeyboardEvent} event */
  #moveByKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!event.shiftKey || step === undefined || this.state.range === null) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    const [from, to] = this.state.range;
    const way = step * KEY_WAY * (to - from);
    this.#select([from + way, to + way]);
  }

  /** @param {KeyboardEvent} event
   *  @param {number} box */
  #key(event, box) {
    const action = this.#keys(event.key, box)[event.key];
    if (action !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      action();
    }
  }

  /** The action of a key at a box.
   *  @param {string} key
   *  @param {number} box
   *  @returns {Keys} */
  #keys(key, box) {
    const { spanNs, bucketNs } = this.#moments();
    const range = rangeByKey(key, false, this.state.range, spanNs, bucketNs);
    if (TRANSFORM_KEYS[key] !== undefined && box > 0) {
      return { [key]: this.#transformItems(box).find(([, , hint]) => hint === key)?.[1] };
    }
    return {
      ...(range === undefined ? {} : { [key]: () => this.page.go({ range }) }),
      ...(box > 0 && this.#isCode(box) ? this.#functionKeys(boxFunction(this.#shown(), box)) : {}),
    };
  }

  /** @param {number} fn
   *  @returns {Keys} */
  #functionKeys(fn) {
    const { actions } = this.page;
    const { openCode } = actions;
    return {
      c: () => actions.copyName(this.model.functionName(fn)),
      s: () => actions.open(fn),
      ...(openCode === null ? {} : { a: () => openCode(fn) }),
    };
  }
}
