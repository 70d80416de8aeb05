// The states of each thread over time: running, preempted or waiting. A row for each thread, on a
// canvas as large as the visible part.

import { button, context2d, el, replaceKeepingFocus, swatch } from './dom.js';
import { formatCount, formatDuration } from './format.js';
import { shortenThread } from './names.js';
import { waitKind } from './colors.js';
import { activityColour, classColours, drawSpans, drawTimes } from './spans.js';
import { ACTIVITIES, spanAt, wakeChain } from './switches.js';

/** @import { Activity, Paint, TimelineData, TimelineEvents, TimeRange } from './types.d.ts' */

const LANE_PX = 20;
const LANE_GAP_PX = 3;
const LABEL_PX = 170;
const LANE_AXIS_PX = 20;
const LANE_FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
/** A shorter range is not zoomed to. */
const MIN_RANGE_NS = 100;
/** A shorter way of the pointer is a click. */
const MIN_DRAG_PX = 4;
const ARROW_PX = 5;
/** Narrower spans are outlined wider than they are. */
const MIN_OUTLINE_PX = 4;

/** Elements that describe a span.
 *  @param {TimelineData} timeline
 *  @param {number} index */
export function spanTip(timeline, index) {
  const activity = ACTIVITIES[timeline.activity[index]];
  /** @param {string} text */
  const line = (text) => el('div', {}, text);
  const lines = [
    el('div', { class: 'tip-name' }, `${timeline.threads[timeline.thread[index]]}: ${activity.label}`),
    line(`from ${formatDuration(timeline.startNs[index])} for ${formatDuration(timeline.durationNs[index])}`),
  ];
  if (timeline.cpu[index] > 0) {
    lines.push(line(`CPU ${timeline.cpu[index] - 1}`));
  }
  if (activity.id === 'mixed') {
    const parts = timeline.partsNs.map((part, i) => `${ACTIVITIES[i].label} ${formatDuration(part[index])}`);
    lines.push(line(`${formatCount(timeline.count[index])} intervals: ${parts.join(', ')}`));
  }
  if (timeline.reason[index] > 0) {
    const reason = timeline.reason[index] - 1;
    lines.push(stackLine(timeline.programReasons[reason]));
    if (timeline.programReasons[reason] !== timeline.reasons[reason]) {
      lines.push(stackLine(`innermost: ${timeline.reasons[reason]}`));
    }
  }
  if (timeline.waker[index] > 0) {
    lines.push(...wakerLines(timeline, index));
  }
  if (timeline.lossy[index] > 0) {
    lines.push(line('lossy: records were lost meanwhile'));
  }
  return lines;
}

/** @param {string} text */
const stackLine = (text) => el('div', { class: 'tip-code' }, text);

/** The waker of a wait: its thread, the moment, and its call stack.
 *  @param {TimelineData} timeline
 *  @param {number} index */
function wakerLines({ wakers, reasons, waker, blockedNs, durationNs }, index) {
  const number = waker[index] - 1;
  const runnable = formatDuration(durationNs[index] - blockedNs[index]);
  const name = wakers.names[wakers.name[number]];
  const woken = `woken after ${formatDuration(blockedNs[index])} by ${name}, then runnable for ${runnable}`;
  const stack = wakers.reason[number] > 0 ? [stackLine(reasons[wakers.reason[number] - 1])] : [];
  return [el('div', {}, woken), ...stack];
}

/** The legend: activities, and the kinds of waits that there are.
 *  @param {HTMLElement} container
 *  @param {Paint} paint
 *  @param {TimelineData} timeline
 *  @param {{ hidden: ReadonlySet<string>, toggle: (kind: string) => void }} options */
export function renderActivities(container, paint, timeline, { hidden, toggle }) {
  const { classes, grainNs } = timeline;
  const colours = classColours(timeline, paint);
  const kinds = new Map(classes.map((name, index) => [waitKind(name), colours[index]]));
  const known = ACTIVITIES.filter(({ id }) => (id === 'waiting' ? kinds.size === 0 : id !== 'mixed' || grainNs > 0));
  // The end of a wait, when its thread could run, has the same colour.
  /** @param {Activity} activity */
  const label = ({ id, label: own }) => (id === 'preempted' ? 'waits for a CPU' : own);
  const entries = known.map((activity) => [label(activity), activityColour(activity, paint)]);
  /** @param {string} text */
  const lower = (text) => `${text[0].toLowerCase()}${text.slice(1)}`;
  /** @param {string} colour
   *  @param {HTMLElement} whole */
  const entry = (colour, whole) => {
    whole.prepend(swatch(colour));
    return whole;
  };
  replaceKeepingFocus(container, [
    ...entries.map(([text, colour]) => entry(colour, el('span', {}, ` ${lower(text)} `))),
    ...[...kinds].map(([{ id, label: text }, colour]) => entry(colour, button(lower(text), () => toggle(id), {
      class: 'legend-entry',
      'data-key': id,
      'aria-pressed': String(!hidden.has(id)),
      title: 'Click to leave these waits out of the table of the longest waits, or to show them again.',
    }))),
  ]);
}

export class Timeline {
  /** @param {HTMLElement} scroller
   *  @param {TimelineData} timeline
   *  @param {TimelineEvents} on */
  constructor(scroller, timeline, on) {
    this.scroller = scroller;
    this.timeline = timeline;
    this.on = on;
    this.from = 0;
    this.to = Math.max(timeline.spanNs, 1);
    /** @type {number | null} Where a drag began. */
    this.dragFrom = null;
    /** @type {Paint | undefined} */
    this.paint = undefined;
    this.hovered = -1;
    this.chosen = -1;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.lanes = [...timeline.threads.keys()];
    this.spacer = el('div', { class: 'spacer' }, this.canvas);
    scroller.append(this.spacer);
    this.context = context2d(this.canvas);
    new ResizeObserver(() => this.#draw()).observe(scroller);
    scroller.addEventListener('scroll', () => this.#draw(), { passive: true });
    scroller.addEventListener('keydown', (event) => event.key === 'Escape' && this.whole());
    this.canvas.addEventListener('pointermove', (event) => this.#hover(this.#spanUnder(event), event));
    this.canvas.addEventListener('pointerleave', (event) => this.#hover(-1, event));
    this.canvas.addEventListener('wheel', (event) => {
      if (on.wheel(event, this.#nsAt(event.offsetX))) {
        event.preventDefault();
      }
    }, { passive: false });
    this.canvas.addEventListener('pointerdown', (event) => {
      this.dragFrom = event.offsetX;
      // A drag may end beside the canvas.
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener('pointerup', (event) => this.#drop(event));
  }

  /** @param {number} span
   *  @param {PointerEvent} event */
  #hover(span, event) {
    if (span !== this.hovered) {
      this.hovered = span;
      this.#draw();
    }
    this.on.hover(span, event);
  }

  /** Outlines a span, scrolls its lane into view, and draws the arrows that lead to it; -1 for none.
   *  @param {number} span */
  choose(span) {
    this.chosen = span;
    const lane = span < 0 ? -1 : this.lanes.indexOf(this.timeline.thread[span]);
    if (lane >= 0) {
      const top = lane * LANE_PX;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop || top + LANE_PX + LANE_AXIS_PX > scrollTop + clientHeight) {
        this.scroller.scrollTop = Math.max(0, top - (clientHeight - LANE_AXIS_PX) / 2);
      }
    }
    this.#draw();
  }

  /** Shows these lanes, within `range` (null: as it was).
   *  @param {Paint} paint
   *  @param {number[]} lanes
   *  @param {TimeRange | null} range */
  show(paint, lanes, range = null) {
    this.paint = paint;
    this.lanes = lanes;
    if (range !== null) {
      [this.from, this.to] = range;
    }
    this.spacer.style.height = `${this.lanes.length * LANE_PX + LANE_AXIS_PX}px`;
    this.#draw();
  }

  /** Shows a part of the time.
   *  @param {number} from
   *  @param {number} to */
  zoom(from, to) {
    this.#range(Math.max(0, from), Math.min(Math.max(this.timeline.spanNs, 1), to));
  }

  /** Shows the whole recording. */
  whole() {
    this.#select(null);
  }

  /** Selects a range, or null for all of the time, in all views or, where they have none, here.
   *  @param {TimeRange | null} range */
  #select(range) {
    if (this.on.select !== null) {
      this.on.select(range);
    } else {
      this.#range(...(range ?? /** @type {TimeRange} */ ([0, Math.max(this.timeline.spanNs, 1)])));
    }
  }

  /** @param {number} from
   *  @param {number} to */
  #range(from, to) {
    [this.from, this.to] = [from, to];
    this.#draw();
  }

  /** @param {PointerEvent} event */
  #drop(event) {
    const [x, from] = [event.offsetX, this.dragFrom];
    this.dragFrom = null;
    if (from === null) {
      return;
    }
    if (Math.abs(x - from) < MIN_DRAG_PX) {
      const span = this.#spanUnder(event);
      this.choose(span);
      this.on.choose(span);
      return;
    }
    const [a, b] = [this.#nsAt(Math.min(from, x)), this.#nsAt(Math.max(from, x))];
    if (b - a >= MIN_RANGE_NS) {
      this.#select([a, b]);
    }
  }

  /** The colours; there are none before the first `show`. */
  get #colours() {
    if (this.paint === undefined) {
      throw new Error('no time line is shown');
    }
    return this.paint;
  }

  #width() {
    return Math.max(1, this.scroller.clientWidth - LABEL_PX);
  }

  /** @param {number} x */
  #nsAt(x) {
    const share = Math.max(0, Math.min(1, (x - LABEL_PX) / this.#width()));
    return this.from + share * (this.to - this.from);
  }

  /** @param {MouseEvent} event */
  #spanUnder(event) {
    const lane = Math.floor((event.offsetY - LANE_AXIS_PX + this.scroller.scrollTop) / LANE_PX);
    if (event.offsetX < LABEL_PX || event.offsetY < LANE_AXIS_PX || lane >= this.lanes.length) {
      return -1;
    }
    return spanAt(this.timeline, this.lanes[lane], this.#nsAt(event.offsetX));
  }

  #draw() {
    const { scroller, canvas, context, timeline, paint } = this;
    if (paint === undefined || scroller.clientWidth === 0) {
      return;
    }
    const ratio = window.devicePixelRatio;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, height);
    const first = Math.floor(scroller.scrollTop / LANE_PX);
    const last = Math.min(this.lanes.length, Math.ceil((scroller.scrollTop + height) / LANE_PX));
    for (let lane = first; lane < last; lane++) {
      this.#drawLane(this.lanes[lane], LANE_AXIS_PX + lane * LANE_PX - scroller.scrollTop);
    }
    this.#drawOutline(this.chosen);
    this.#drawArrows(this.hovered >= 0 ? this.hovered : this.chosen);
    this.#drawAxis(width);
    const joined = timeline.grainNs > 0
      ? `; intervals shorter than ${formatDuration(timeline.grainNs)} are joined: a page holds ${formatCount(timeline.maxSpans)}` : '';
    this.on.range(`${formatDuration(this.from)} to ${formatDuration(this.to)}${joined}`);
  }

  /** @param {number} ns */
  #x(ns) {
    return LABEL_PX + ((ns - this.from) / (this.to - this.from)) * this.#width();
  }

  /** Middle of a thread's lane on the canvas, or null where it has none.
   *  @param {number} thread */
  #laneMiddle(thread) {
    const lane = this.lanes.indexOf(thread);
    return lane < 0 ? null : LANE_AXIS_PX + lane * LANE_PX - this.scroller.scrollTop + (LANE_PX - LANE_GAP_PX) / 2;
  }

  /** @param {number} span */
  #drawOutline(span) {
    const middle = span < 0 ? null : this.#laneMiddle(this.timeline.thread[span]);
    const [start, length] = [this.timeline.startNs[span], this.timeline.durationNs[span]];
    if (middle === null || start > this.to || start + length < this.from) {
      return;
    }
    const [left, right] = [Math.max(LABEL_PX, this.#x(start)), Math.min(LABEL_PX + this.#width(), this.#x(start + length))];
    this.context.strokeStyle = this.#colours.text;
    this.context.lineWidth = 2;
    this.context.strokeRect(left, middle - (LANE_PX - LANE_GAP_PX) / 2 + 1, Math.max(MIN_OUTLINE_PX, right - left), LANE_PX - LANE_GAP_PX - 2);
  }

  /** Wake-ups that led to a span, as arrows between lanes; those farther back are fainter.
   *  @param {number} span */
  #drawArrows(span) {
    const { context } = this;
    const paint = this.#colours;
    const arrows = span < 0 ? [] : wakeChain(this.timeline, span);
    arrows.forEach(({ ns, from, to }, index) => {
      const [start, end] = [this.#laneMiddle(from), this.#laneMiddle(to)];
      if (start === null || end === null || ns < this.from || ns > this.to) {
        return;
      }
      const x = this.#x(ns);
      const sign = Math.sign(end - start) || 1;
      context.globalAlpha = index === 0 ? 1 : 0.55;
      [context.strokeStyle, context.fillStyle] = [paint.text, paint.text];
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(x, start, 2.5, 0, 2 * Math.PI);
      context.fill();
      context.beginPath();
      context.moveTo(x, start);
      context.lineTo(x, end);
      context.stroke();
      context.beginPath();
      context.moveTo(x, end);
      context.lineTo(x - ARROW_PX, end - sign * ARROW_PX * 1.5);
      context.lineTo(x + ARROW_PX, end - sign * ARROW_PX * 1.5);
      context.fill();
      context.globalAlpha = 1;
    });
  }

  /** Times above the lanes, which move under them.
   *  @param {number} width */
  #drawAxis(width) {
    const { context } = this;
    const paint = this.#colours;
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, LANE_AXIS_PX);
    context.font = LANE_FONT;
    const place = { left: LABEL_PX, width: this.#width(), bottom: LANE_AXIS_PX - 2, middle: LANE_AXIS_PX / 2 };
    drawTimes(context, place, [this.from, this.to], paint);
  }

  /** @param {number} thread
   *  @param {number} top */
  #drawLane(thread, top) {
    const { context, timeline } = this;
    const paint = this.#colours;
    const place = { left: LABEL_PX, width: this.#width(), top, height: LANE_PX - LANE_GAP_PX };
    drawSpans(context, timeline, thread, place, [this.from, this.to], paint);
    context.fillStyle = paint.gap;
    context.fillRect(0, top, LABEL_PX, LANE_PX);
    context.fillStyle = paint.text;
    context.font = LANE_FONT;
    context.textBaseline = 'middle';
    const characterPx = context.measureText('0').width;
    context.fillText(shortenThread(timeline.threads[thread], Math.floor((LABEL_PX - 12) / characterPx)), 6, top + LANE_PX / 2, LABEL_PX - 12);
  }
}
