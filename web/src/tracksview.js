// The view of tracks: CPUs, events and the stacks of many threads above each other, on the axis of time.

import { boxTip } from './charttip.js';
import { binaryColour, cssColour, lossColour, themePaint } from './colors.js';
import { drawLosses } from './chartaxis.js';
import { byId, context2d, el, press, setStatus } from './dom.js';
import { formatCount, formatDuration, formatPercent, formatPeriod, formatShort, isWallEvent, plural } from './format.js';
import { groupRows } from './grouping.js';
import { boxFunction, laneChart, laneSlices, lanesOf, timelineLanes } from './lanes.js';
import { bucketsOf } from './moments.js';
import { shortenThread } from './names.js';
import { Tooltip } from './popups.js';
import { RangeDrag } from './rangedrag.js';
import { drawSpans, drawTimes } from './spans.js';
import { rangeByKey, withinSpan } from './strip.js';
import { spanAt } from './switches.js';
import { spanTip } from './timeline.js';
import { boxesInRange, drawColumns, drawRuns, drawStacks } from './trackcanvas.js';
import { commonRow, eventColumns, eventWeights, runAt, sampledEvent, sampledRuns, switchedRuns, trackEvents, trackThreads } from './tracks.js';
import { functionOf, rowFilter } from './tree.js';

/** @import { Page, Render } from './page.d.ts' */
/** @import { StripBar } from './stripbar.js' */
/** @import { TrackPlace } from './trackcanvas.js' */
/** @import { ChartGraph, Keys, Lane, TimeRange, Track, TrackRuns } from './types.d.ts' */

const LABEL_WIDTH_PX = 190;
const TIMES_HEIGHT_PX = 20;
const [CPU_PX, EVENT_PX, STATE_PX, STACK_ROW_PX, STACK_ROWS, GAP_PX] = [18, 34, 7, 13, 7, 5];
/** More CPUs are drawn lower, without names of threads. */
const MAX_TALL_CPUS = 8;
const LOW_CPU_PX = 10;
const TRACK_FONT = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
/** Boxes of one thread's stacks; beyond, they are joined in steps of time. */
const MAX_TRACK_BOXES = 60_000;
/** Charts of threads that are kept. */
const MAX_KEPT = 48;

/** The place under the pointer.
 *  @typedef {{ track: number, box?: number, span?: number, ns: number }} Spot */

export class TracksView {
  /** @type {Track[]} */
  tracks = [];
  /** @type {Map<string, ChartGraph & { distanceNs: number, base: number }>} */
  charts = new Map();
  chartKey = '';
  /** @type {{ key: string, sums: Float64Array, columns: number, stride: number } | null} */
  columns = null;
  /** @type {{ seriesOf: Int32Array, weight: Float64Array } | null} The weights of the events' tracks. */
  weights = null;
  /** @type {{ key: string, byCpu: Map<number, TrackRuns>, colours: string[] } | null} */
  sampled = null;
  /** @type {number[] | null} The page's thread of each lane of the time line. */
  ofLanes = null;
  /** Weight of all threads in the range. */
  total = 0;
  /** The track that keys are for. */
  current = 0;

  /** @param {Page} page
   *  @param {StripBar} strip */
  constructor(page, strip) {
    this.page = page;
    this.model = page.model;
    this.timeline = page.switches?.timeline ?? null;
    this.places = timelineLanes(this.timeline);
    this.switched = this.timeline === null ? new Map() : switchedRuns(this.timeline, this.#beginNs());
    const { events } = page.model.profile;
    const wall = events.findIndex(({ name }) => isWallEvent(name));
    byId('tracks-stacks').hidden = wall < 0;
    byId('tracks-waits').addEventListener('click', () => page.go({ event: wall }));
    byId('tracks-cpu').addEventListener('click', () => page.go({ event: Math.max(0, sampledEvent(events, 0)) }));
    this.scroller = byId('tracks');
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.spacer = el('div', { class: 'spacer' }, this.canvas);
    this.scroller.append(this.spacer);
    this.context = context2d(this.canvas);
    this.tip = new Tooltip((/** @type {Spot} */ spot) => this.#tip(spot));
    new ResizeObserver(() => this.#draw()).observe(this.scroller);
    this.scroller.addEventListener('scroll', () => this.#draw(), { passive: true });
    this.scroller.addEventListener('keydown', (event) => this.#key(event));
    this.canvas.addEventListener('pointermove', (event) => this.#hover(event));
    this.canvas.addEventListener('pointerleave', () => this.tip.hide());
    this.canvas.addEventListener('click', (event) => this.#click(event));
    this.canvas.addEventListener('dblclick', (event) => this.#open(this.#trackAt(event.offsetY)));
    this.canvas.addEventListener('wheel', (event) => strip.wheel(event, this.#nsAt(event.clientX)) && event.preventDefault(), { passive: false });
    this.drag = new RangeDrag(this.scroller, this.spacer, {
      nsAt: (clientX) => this.#nsAt(clientX),
      select: (range) => this.#select(range),
      moved: () => this.tip.hide(),
    });
  }

  get state() {
    return this.page.state;
  }

  #beginNs() {
    return this.model.moments?.waitsBeginNs ?? 0;
  }

  /** @returns {TimeRange} */
  #window() {
    return this.state.range ?? [0, Math.max(1, this.model.timed().spanNs)];
  }

  #width() {
    return Math.max(1, this.scroller.clientWidth - LABEL_WIDTH_PX);
  }

  /** @param {Render} render */
  show({ live }) {
    this.tip.hide();
    if (!live) {
      this.#arrange();
      this.page.colouring.renderLegend(byId('tracks-legend'));
    }
    this.#draw();
  }

  /** Makes the list of tracks of the selection. */
  #arrange() {
    const { model, state } = this;
    const { events } = model.profile;
    const event = sampledEvent(events, state.event);
    const isWall = isWallEvent(model.event.name);
    press({ 'tracks-cpu': byId('tracks-cpu'), 'tracks-waits': byId('tracks-waits') }, isWall ? 'tracks-waits' : 'tracks-cpu');
    const key = JSON.stringify([event, state.by]);
    if (this.sampled?.key !== key) {
      const byCpu = event < 0 ? new Map() : sampledRuns(model.profile, model.timed(), event);
      this.sampled = { key, byCpu, colours: [] };
    }
    this.sampled.colours = this.#programColours(event);
    const chartKey = JSON.stringify([model.filterKey, model.root, state.transforms]);
    if (this.chartKey !== chartKey) {
      this.chartKey = chartKey;
      this.charts.clear();
    }
    const cpus = [...new Set([...this.switched.keys(), ...this.sampled.byCpu.keys()])].sort((a, b) => a - b);
    const others = trackEvents(events, state.event);
    const lanes = this.#weighed(lanesOf(model).threads);
    this.total = lanes.reduce((sum, { weight }) => sum + weight, 0);
    const threads = trackThreads(lanes, model.roles(), state);
    /** @type {Omit<Track, 'top'>[]} */
    const all = [
      ...cpus.map((cpu) => ({ kind: /** @type {const} */ ('cpu'), name: `CPU ${cpu}`, height: cpus.length > MAX_TALL_CPUS ? LOW_CPU_PX : CPU_PX, cpu })),
      ...others.map((own, place) => ({ kind: /** @type {const} */ ('event'), name: own.name, height: EVENT_PX, event: own, place })),
      ...threads.map((lane) => ({ kind: /** @type {const} */ ('thread'), name: lane.name, height: STATE_PX + STACK_ROW_PX * STACK_ROWS, lane })),
    ];
    let top = TIMES_HEIGHT_PX;
    this.tracks = all.map((track) => {
      const own = { ...track, top };
      top += track.height + GAP_PX;
      return own;
    });
    this.spacer.style.height = `${top}px`;
    this.current = Math.min(this.current, this.tracks.length - 1);
    byId('tracks-note').textContent = [
      cpus.length > 0 ? plural(cpus.length, 'CPU') : 'no CPUs in this recording', others.length > 0 ? plural(others.length, 'other event') : '', plural(threads.length, 'thread'),
    ].filter((text) => text !== '').join(' · ');
    [this.columns, this.weights] = [null, null];
  }

  /** The same lanes with their weights in the range.
   *  @param {Lane[]} lanes
   *  @returns {Lane[]} */
  #weighed(lanes) {
    const { model } = this;
    const { rows } = model;
    // Waits of the event of CPU time and waits are no weight of a lane.
    if (model.range === null || isWallEvent(model.event.name)) {
      return lanes;
    }
    const [weight, selected] = [model.byPeriod ? rows.period : rows.samples, rowFilter(rows, model.selection)];
    const byThread = new Float64Array(model.profile.threads.length);
    rows.thread.forEach((thread, row) => {
      byThread[thread] += selected(row) ? weight[row] : 0;
    });
    return lanes.map((lane) => ({ ...lane, weight: lane.threads.reduce((sum, thread) => sum + byThread[thread], 0) }));
  }

  /** Colours of the page's threads by their programs, the heaviest first, as in the strip.
   *  @param {number} event */
  #programColours(event) {
    const { profile } = this.model;
    const { groupOf, names } = groupRows(profile, profile.rows, 'program');
    const [weight, program] = [new Float64Array(names.length), new Int32Array(profile.threads.length)];
    groupOf.forEach((group, row) => {
      program[profile.rows.thread[row]] = group;
      weight[group] += profile.rows.event[row] === event ? profile.rows.period[row] : 0;
    });
    const ranks = new Map([...names.keys()].sort((a, b) => weight[b] - weight[a]).map((group, rank) => [group, rank]));
    return Array.from(program, (group) => cssColour(binaryColour(ranks.get(group) ?? Infinity, this.page.theme.name)));
  }

  /** The stacks of a thread; those that were used last are kept.
   *  @param {Lane} lane */
  #chart(lane) {
    const { model, timeline, places } = this;
    const held = this.charts.get(lane.id);
    const chart = held ?? { ...laneChart(model, laneSlices(model, lane, { timeline, places }), null, MAX_TRACK_BOXES), base: 1 };
    if (held === undefined) {
      chart.base = commonRow(chart);
    }
    this.charts.delete(lane.id);
    this.charts.set(lane.id, chart);
    if (this.charts.size > MAX_KEPT) {
      this.charts.delete(this.charts.keys().next().value ?? '');
    }
    return chart;
  }

  /** Sums of the events' tracks in columns of the window. */
  #eventSums() {
    const { model } = this;
    const events = this.tracks.flatMap(({ event }) => event ?? []);
    const moments = model.timed();
    const buckets = bucketsOf(moments, this.#window());
    const columns = Math.max(1, Math.min(Math.floor(this.#width() / 2), buckets[1] - buckets[0]));
    const key = JSON.stringify([buckets, columns, events.length]);
    if (this.columns?.key !== key) {
      const stride = Math.max(1, events.length);
      this.weights ??= eventWeights(events, model.profile.rows, moments);
      this.columns = { key, columns, stride, sums: eventColumns(this.weights, moments, stride, columns, buckets) };
    }
    return this.columns;
  }

  // ---- drawing

  #draw() {
    const { scroller, canvas, context, tracks } = this;
    if (scroller.clientWidth === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const paint = themePaint(this.page.theme.name);
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, height);
    context.font = TRACK_FONT;
    context.textBaseline = 'middle';
    const characterPx = context.measureText('0').width;
    const range = this.#window();
    tracks.forEach((track, at) => {
      const top = track.top - scroller.scrollTop;
      if (top < height && top + track.height > 0) {
        this.#drawTrack(track, { left: LABEL_WIDTH_PX, width: this.#width(), top, height: track.height }, range, characterPx);
        this.#drawLabel(track, top, at === this.current, characterPx);
      }
    });
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, TIMES_HEIGHT_PX);
    drawTimes(context, { left: LABEL_WIDTH_PX, width: this.#width(), bottom: TIMES_HEIGHT_PX - 2, middle: TIMES_HEIGHT_PX / 2 }, range, paint);
    context.save();
    context.translate(LABEL_WIDTH_PX, 0);
    context.globalAlpha = 0.5;
    drawLosses(context, this.model.timed().lossWindows, range, this.#width(), TIMES_HEIGHT_PX - 2, lossColour(this.page.theme.name));
    context.restore();
  }

  /** @param {Track} track
   *  @param {number} top
   *  @param {boolean} isCurrent
   *  @param {number} characterPx */
  #drawLabel(track, top, isCurrent, characterPx) {
    const { context } = this;
    const paint = themePaint(this.page.theme.name);
    context.fillStyle = paint.gap;
    context.fillRect(0, top - 1, LABEL_WIDTH_PX - 2, track.height + 2);
    context.fillStyle = paint.text;
    const letters = Math.floor((LABEL_WIDTH_PX - 12) / characterPx);
    context.fillText(shortenThread(track.name, letters), 6, top + Math.min(track.height, CPU_PX) / 2);
    if (track.lane !== undefined) {
      context.fillStyle = paint.fadedText;
      context.fillText(this.total > 0 ? formatPercent(track.lane.weight / this.total) : '', 6, top + CPU_PX + 5);
    } else if (track.event !== undefined) {
      context.fillStyle = paint.fadedText;
      context.fillText(this.#mostText(track), 6, top + CPU_PX + 5);
    }
    if (isCurrent && document.activeElement === this.scroller) {
      context.strokeStyle = paint.text;
      context.strokeRect(1.5, top - 0.5, LABEL_WIDTH_PX - 5, track.height + 1);
    }
  }

  /** The largest rate of an event's track, in words.
   *  @param {Track} track */
  #mostText({ event, place = 0 }) {
    const { sums, columns, stride } = this.#eventSums();
    let most = 0;
    for (let column = 0; column < columns; column++) {
      most = Math.max(most, sums[column * stride + place]);
    }
    const [from, to] = this.#window();
    const rate = (most * columns * 1e9) / (to - from);
    return event?.isMarker ? `up to ${formatShort(rate)}/s` : `up to ${formatPeriod(event?.name ?? '', rate)}/s`;
  }

  /** @param {Track} track
   *  @param {TrackPlace} place
   *  @param {TimeRange} range
   *  @param {number} characterPx */
  #drawTrack(track, place, range, characterPx) {
    const { context, page, model, timeline } = this;
    const paint = themePaint(page.theme.name);
    if (track.kind === 'cpu') {
      this.#drawCpu(track.cpu ?? 0, place, range, characterPx);
    } else if (track.kind === 'event') {
      const { sums, columns, stride } = this.#eventSums();
      const colour = cssColour(binaryColour(track.event?.isMarker ? 3 : 1, page.theme.name));
      drawColumns(context, { sums, columns, stride, at: track.place ?? 0, isMarker: track.event?.isMarker ?? false, colour }, place);
    } else if (track.lane !== undefined) {
      const lane = track.lane;
      const at = this.places.get(lane.id);
      if (timeline !== null && at !== undefined) {
        const own = /** @type {TimeRange} */ (range.map((ns) => ns - this.#beginNs()));
        drawSpans(context, timeline, at, { ...place, height: STATE_PX - 2 }, own, paint);
      }
      const chart = this.#chart(lane);
      drawStacks(context, chart, {
        base: chart.base, rows: STACK_ROWS, rowPx: STACK_ROW_PX, characterPx, name: (box) => model.nodeName(chart.graph, box),
        isChosen: (key) => this.state.fn !== null && key >= 0 && functionOf(key) === this.state.fn,
      }, page.colouring.marks(), { ...place, top: place.top + STATE_PX }, range);
    }
  }

  /** Runs that samples say, below those that switches say exactly.
   *  @param {number} cpu
   *  @param {TrackPlace} place
   *  @param {TimeRange} range
   *  @param {number} characterPx */
  #drawCpu(cpu, place, range, characterPx) {
    const { context, timeline, sampled, model: { profile } } = this;
    const text = place.height < CPU_PX ? '' : themePaint(this.page.theme.name).text;
    const colours = sampled?.colours ?? [];
    const bySample = sampled?.byCpu.get(cpu);
    if (bySample !== undefined) {
      const name = (/** @type {number} */ thread) => this.#threadName(thread);
      drawRuns(context, bySample, place, range, { colour: (thread) => colours[thread], name, text, characterPx });
    }
    const bySwitch = this.switched.get(cpu);
    if (bySwitch !== undefined && timeline !== null) {
      const threads = this.#threadsOfLanes(profile.threads);
      const colour = (/** @type {number} */ lane) => colours[threads[lane]] ?? cssColour(binaryColour(Infinity, this.page.theme.name));
      drawRuns(context, bySwitch, place, range, { colour, name: (lane) => timeline.threads[lane], text, characterPx });
    }
  }

  /** @param {number} thread */
  #threadName(thread) {
    const { threads, comms } = this.model.profile;
    return `${comms[threads[thread].comm]} ${threads[thread].tid}`;
  }

  /** The page's thread of each lane of the time line, -1 where it has none.
   *  @param {readonly { pid: number, tid: number }[]} threads */
  #threadsOfLanes(threads) {
    this.ofLanes ??= (() => {
      const byId = new Map(threads.map(({ pid, tid }, thread) => [`${pid}.${tid}`, thread]));
      return (this.timeline?.ids ?? []).map(({ pid, tid }) => byId.get(`${pid}.${tid}`) ?? -1);
    })();
    return this.ofLanes;
  }

  // ---- pointer and keys

  /** @param {number} clientX */
  #nsAt(clientX) {
    const { left } = this.scroller.getBoundingClientRect();
    const share = (clientX - left - this.scroller.clientLeft - LABEL_WIDTH_PX) / this.#width();
    const [from, to] = this.#window();
    return from + Math.max(0, Math.min(1, share)) * (to - from);
  }

  /** @param {number} offsetY */
  #trackAt(offsetY) {
    const y = offsetY + this.scroller.scrollTop;
    return offsetY < TIMES_HEIGHT_PX ? -1 : this.tracks.findIndex(({ top, height }) => y >= top && y < top + height);
  }

  /** @param {MouseEvent} event
   *  @returns {Spot | null} */
  #spot(event) {
    const track = this.#trackAt(event.offsetY);
    const ns = this.#nsAt(event.clientX);
    if (track < 0) {
      return null;
    }
    const { lane, top } = this.tracks[track];
    if (lane === undefined || event.offsetX < LABEL_WIDTH_PX) {
      return { track, ns };
    }
    const y = event.offsetY + this.scroller.scrollTop - top;
    const place = this.places.get(lane.id);
    if (y < STATE_PX) {
      const span = this.timeline === null || place === undefined ? -1 : spanAt(this.timeline, place, ns - this.#beginNs());
      return span < 0 ? { track, ns } : { track, ns, span };
    }
    const chart = this.#chart(lane);
    // A sample may be narrower than a pixel.
    const [from, to] = this.#window();
    const half = (to - from) / this.#width() / 2;
    const [first, last] = boxesInRange(chart, chart.base + Math.floor((y - STATE_PX) / STACK_ROW_PX), [ns - half, ns + half]);
    return first < last ? { track, ns, box: chart.layout.order[first] } : { track, ns };
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const spot = this.#spot(event);
    const track = spot === null ? null : this.tracks[spot.track];
    // Empty time of a thread says nothing.
    const isEmpty = track?.lane !== undefined && spot?.box === undefined && spot?.span === undefined && event.offsetX >= LABEL_WIDTH_PX;
    const what = spot === null || isEmpty ? null : spot;
    const id = what === null ? '' : `${what.track} ${what.box ?? ''} ${what.span ?? ''} ${what.box === undefined && what.span === undefined ? event.offsetX : ''} ${this.state.range}`;
    this.tip.follow(event, id, what);
  }

  /** @param {Spot} spot
   *  @returns {HTMLElement[]} */
  #tip({ track, box, span, ns }) {
    const own = this.tracks[track];
    if (own.lane !== undefined && box !== undefined) {
      return boxTip(this.model, this.#chart(own.lane), box, this.#window(), this.page.theme.name);
    }
    if (span !== undefined && this.timeline !== null) {
      return spanTip(this.timeline, span);
    }
    const lines = own.kind === 'cpu' ? this.#cpuText(own.cpu ?? 0, ns) : own.kind === 'event' ? this.#eventText(own, ns) : [this.#threadText(own)];
    return [el('div', { class: 'tip-name' }, own.name), ...lines.map((line) => el('div', {}, line))];
  }

  /** @param {Track} track */
  #threadText({ lane }) {
    return lane === undefined ? '' : `${this.model.formatWeight(lane.weight)} of ${this.model.event.name}`;
  }

  /** @param {number} cpu
   *  @param {number} ns
   *  @returns {string[]} */
  #cpuText(cpu, ns) {
    const [bySwitch, bySample] = [this.switched.get(cpu), this.sampled?.byCpu.get(cpu)];
    const exact = bySwitch === undefined ? -1 : runAt(bySwitch, ns);
    if (bySwitch !== undefined && exact >= 0) {
      const [from, to] = [bySwitch.from[exact], bySwitch.to[exact]];
      return [`${this.timeline?.threads[bySwitch.thread[exact]] ?? ''} ran`, `from ${formatDuration(from)} for ${formatDuration(to - from)}, by switches`];
    }
    const near = bySample === undefined ? -1 : runAt(bySample, ns);
    return bySample !== undefined && near >= 0 ? [`${this.#threadName(bySample.thread[near])} ran at ${formatDuration(bySample.to[near])}, by a sample`] : [`${formatDuration(ns)}: nothing recorded`];
  }

  /** @param {Track} track
   *  @param {number} ns
   *  @returns {string[]} */
  #eventText({ event, place = 0 }, ns) {
    const { sums, columns, stride } = this.#eventSums();
    const [from, to] = this.#window();
    const column = Math.max(0, Math.min(columns - 1, Math.floor(((ns - from) / (to - from)) * columns)));
    const sum = sums[column * stride + place];
    const [length, value] = [formatDuration((to - from) / columns), event?.isMarker ? formatCount(sum) : formatPeriod(event?.name ?? '', sum)];
    return [`${value} in ${length} at ${formatDuration(ns)}`, 'a double click shows its flame graph'];
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const spot = this.#spot(event);
    if (spot === null) {
      return;
    }
    this.current = spot.track;
    const { lane } = this.tracks[spot.track];
    const fn = lane === undefined || spot.box === undefined ? -1 : boxFunction(this.#chart(lane), spot.box);
    if (fn >= 0) {
      this.page.go({ fn: fn === this.state.fn ? null : fn, callers: [], callees: [] });
    } else {
      this.#draw();
    }
  }

  /** Opens what a track stands for: a stack chart, or the flame graph of an event.
   *  @param {number} track */
  #open(track) {
    const own = this.tracks[track];
    if (own?.event !== undefined) {
      this.page.go({ view: 'graph', event: own.event.event, zoom: [] });
    } else if (own !== undefined) {
      this.page.go({ view: 'chart', lane: own.lane?.id ?? `cpu${own.cpu}` });
    }
  }

  /** @param {TimeRange | null} range */
  #select(range) {
    const { spanNs, bucketNs } = this.model.timed();
    this.page.go({ range: range === null ? null : withinSpan(range, spanNs, bucketNs) });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { spanNs, bucketNs } = this.model.timed();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const range = rangeByKey(event.key, event.shiftKey, this.state.range, spanNs, bucketNs);
    /** @type {Keys} */
    const actions = {
      ...(step === undefined ? {} : { [event.key]: () => this.#move(step) }),
      ...(range === undefined ? {} : { [event.key]: () => this.page.go({ range }) }),
      Enter: () => this.#open(this.current),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (action !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      action();
    }
  }

  /** @param {number} step */
  #move(step) {
    this.current = Math.max(0, Math.min(this.tracks.length - 1, this.current + step));
    const { top, height } = this.tracks[this.current];
    const { scrollTop, clientHeight } = this.scroller;
    if (top - TIMES_HEIGHT_PX < scrollTop || top + height > scrollTop + clientHeight) {
      this.scroller.scrollTop = Math.max(0, top - clientHeight / 2);
    }
    const track = this.tracks[this.current];
    const facts = track.event !== undefined ? this.#mostText(track) : this.#threadText(track);
    setStatus(`${track.name}${facts === '' ? '' : `: ${facts}`}`);
    this.#draw();
  }
}
