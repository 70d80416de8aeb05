// The strip of time above all views: use of CPUs over time, or a heat map; a range is chosen in it by
// dragging or by key.

import { context2d, el } from './dom.js';
import { formatDuration } from './format.js';
import { axisSteps, columnText, cpuAxis, heatCells, heatPlan, maxOfColumns } from './stripdata.js';

/** @import { HeatPlan, Moments, StripData, TimeRange, Turn } from './types.d.ts' */

/** Heights of the plot: cells of the heat map need more of it. */
const PLOT_PX = { area: 40, heat: 74 };
const AXIS_PX = 16;
const LEFT_PX = 58;
const LOSS_PX = 5;
/** A shorter way of the pointer is a click, which clears the range. */
const MIN_WAY_PX = 4;
const EDGE_PX = 6;
/** A column has so many samples on average, where there are more columns than the fewest: fewer are noise. */
const SAMPLES_EACH = 20;
const MIN_COLUMNS = 60;
/** Part of its own length that a key moves a range by. */
const KEY_STEP = 0.1;
/** Length of a range after a turn of one, relative to that before; turns are bounded, since devices differ. */
const WHEEL_GROWTH = 1.003;
const MAX_TURN = 120;
/** Part of its own length by which a whole turn moves a range. */
const WHEEL_STEP = 0.2;
const SMALL_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** Cuts a range to the recording; null where it is all of it.
 *  @param {TimeRange} range
 *  @param {number} spanNs
 *  @param {number} leastNs
 *  @returns {TimeRange | null} */
export function withinSpan([from, to], spanNs, leastNs) {
  const length = Math.min(Math.max(to - from, leastNs), spanNs);
  const begin = Math.min(Math.max(0, from), spanNs - length);
  return begin === 0 && length === spanNs ? null : [Math.round(begin), Math.round(begin + length)];
}

/** The range that a key makes of a range; undefined for other keys.
 *  @param {string} key
 *  @param {boolean} shift
 *  @param {TimeRange | null} range
 *  @param {number} spanNs
 *  @param {number} leastNs
 *  @returns {TimeRange | null | undefined} */
export function rangeByKey(key, shift, range, spanNs, leastNs) {
  /** @type {Record<string, TimeRange>} */
  const first = {
    ArrowRight: [0, spanNs / 10],
    ArrowLeft: [spanNs * 0.9, spanNs],
    '+': [spanNs / 4, (spanNs * 3) / 4],
    '=': [spanNs / 4, (spanNs * 3) / 4],
  };
  if (key === 'Escape') {
    return null;
  }
  if (range === null) {
    return first[key] === undefined ? undefined : withinSpan(first[key], spanNs, leastNs);
  }
  const [from, to] = range;
  const length = to - from;
  const step = Math.max(leastNs, length * KEY_STEP);
  const middle = (from + to) / 2;
  /** @type {Record<string, TimeRange>} */
  const changed = {
    ArrowLeft: shift ? [from, Math.max(from + leastNs, to - step)] : [from - step, to - step],
    ArrowRight: shift ? [from, Math.min(spanNs, to + step)] : [from + step, to + step],
    '+': [middle - length / 4, middle + length / 4],
    '=': [middle - length / 4, middle + length / 4],
    '-': [middle - length, middle + length],
    Home: [0, length],
    End: [spanNs - length, spanNs],
  };
  return changed[key] === undefined ? undefined : withinSpan(changed[key], spanNs, leastNs);
}

/** The range that a turn of the wheel makes: with Ctrl it is longer or shorter around the moment `at`, with Shift, or
 *  where the wheel turns sideways, it moves; undefined for other turns. null stands for all of the time.
 *  @param {Turn} turn
 *  @param {number} at
 *  @param {TimeRange | null} range
 *  @param {number} spanNs
 *  @param {number} leastNs
 *  @returns {TimeRange | null | undefined} */
export function rangeByWheel({ deltaX, deltaY, ctrlKey, shiftKey }, at, range, spanNs, leastNs) {
  const [from, to] = range ?? [0, spanNs];
  if (ctrlKey) {
    const factor = WHEEL_GROWTH ** Math.max(-MAX_TURN, Math.min(MAX_TURN, deltaY));
    return withinSpan([at - (at - from) * factor, at + (to - at) * factor], spanNs, leastNs);
  }
  // Some systems turn the axes where Shift is held.
  const sideways = Math.abs(deltaX) > Math.abs(deltaY) ? deltaX : 0;
  const way = shiftKey ? deltaX || deltaY : sideways;
  if (way === 0 || range === null) {
    return undefined;
  }
  const step = (Math.max(-MAX_TURN, Math.min(MAX_TURN, way)) / MAX_TURN) * WHEEL_STEP * (to - from);
  return withinSpan([from + step, to + step], spanNs, leastNs);
}

export class Strip {
  /** Width of the canvas, in pixels of the page. */
  width = 0;

  /** `on.wheel` is true where it used the wheel.
   *  @param {HTMLElement} container
   *  @param {Moments} moments
   *  @param {{ select: (range: TimeRange | null, live: boolean) => void, wheel: (event: WheelEvent, ns: number) => boolean, hover: (text: string) => void, resized: () => void }} on */
  constructor(container, moments, on) {
    this.moments = moments;
    this.on = on;
    this.container = container;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    container.append(this.canvas);
    this.context = context2d(this.canvas);
    /** The picture below the range, which stays while that moves; `drawn` is its size, empty where it is out of date. */
    this.still = context2d(document.createElement('canvas'));
    this.drawn = '';
    /** @type {StripData | null} */
    this.data = null;
    /** @type {HeatPlan} Columns and rows of the heat map. */
    this.heat = heatPlan(moments);
    /** @type {Float64Array} Weights of its cells. */
    this.cells = new Float64Array();
    /** @type {{ anchor: number, x: number, y: number, moved: boolean, range?: TimeRange | null } | null} */
    this.drag = null;
    /** @type {number | undefined} The frame that draws a dragged range. */
    this.frame = undefined;
    this.#listen();
  }

  /** The drawn data; there are none before the first `show`. */
  get #shown() {
    if (this.data === null) {
      throw new Error('no strip of time is shown');
    }
    return this.data;
  }

  /** Columns that the plot has room for, that `samples` suffice for, and that `most` allows.
   *  @param {number} samples
   *  @param {number} most */
  columns(samples, most = Infinity) {
    const allowed = Math.min(most, Math.max(MIN_COLUMNS, samples / SAMPLES_EACH));
    return Math.max(1, Math.floor(Math.min(allowed, this.moments.buckets, this.container.clientWidth - LEFT_PX)));
  }

  #listen() {
    const { canvas, on } = this;
    canvas.addEventListener('pointerdown', (event) => event.button === 0 && this.#begin(event));
    canvas.addEventListener('pointermove', (event) => this.#move(event));
    canvas.addEventListener('pointerup', (event) => this.#end(event));
    canvas.addEventListener('pointercancel', () => {
      this.drag = null;
    });
    canvas.addEventListener('pointerleave', () => on.hover(''));
    canvas.addEventListener('wheel', (event) => {
      if (this.data !== null && on.wheel(event, this.#nsAt(event.offsetX, event.offsetY))) {
        event.preventDefault();
      }
    }, { passive: false });
    this.container.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || this.data === null) {
        return;
      }
      const range = rangeByKey(event.key, event.shiftKey, this.data.range, this.moments.spanNs, this.moments.bucketNs);
      if (range !== undefined) {
        event.preventDefault();
        event.stopPropagation();
        on.select(range, false);
      }
    });
    new ResizeObserver(() => {
      // The first call finds the picture of the constructor.
      if (this.data !== null && this.container.clientWidth !== this.width) {
        on.resized();
      }
    }).observe(this.container);
  }

  /** The time under a point; in the heat map, the beginning of its cell.
   *  @param {number} x
   *  @param {number} y */
  #nsAt(x, y) {
    const { spanNs } = this.moments;
    const share = Math.max(0, Math.min(1, (x - LEFT_PX) / this.#plotWidth()));
    if (this.#shown.mode === 'area') {
      return share * spanNs;
    }
    const { lengthNs, columns, rows } = this.heat;
    const column = Math.min(columns - 1, Math.floor((share * spanNs) / lengthNs));
    const row = Math.max(0, Math.min(rows - 1, Math.floor((y / this.#plotPx()) * rows)));
    return Math.min(spanNs, column * lengthNs + (row * lengthNs) / rows);
  }

  #plotPx() {
    return PLOT_PX[this.#shown.mode];
  }

  /** Length of the piece of time that a point stands for. */
  #grainNs() {
    return this.#shown.mode === 'area' ? 0 : this.heat.lengthNs / this.heat.rows;
  }

  #plotWidth() {
    return Math.max(1, this.width - LEFT_PX);
  }

  #heatColumnPx() {
    return (this.heat.lengthNs / Math.max(1, this.moments.spanNs)) * this.#plotWidth();
  }

  /** @param {number} ns */
  #xOf(ns) {
    return LEFT_PX + (ns / Math.max(1, this.moments.spanNs)) * this.#plotWidth();
  }

  /** @param {number} x */
  #edgeUnder(x) {
    const { range, mode } = this.#shown;
    if (range === null || mode !== 'area') {
      return -1;
    }
    return range.findIndex((ns) => Math.abs(this.#xOf(ns) - x) <= EDGE_PX);
  }

  /** @param {PointerEvent} event */
  #begin(event) {
    if (this.data === null) {
      return;
    }
    const edge = this.#edgeUnder(event.offsetX);
    const { range } = this.data;
    const anchor = range !== null && edge >= 0 ? range[1 - edge] : this.#nsAt(event.offsetX, event.offsetY);
    this.drag = { anchor, x: event.offsetX, y: event.offsetY, moved: edge >= 0 };
    // A drag may end beside the canvas.
    this.canvas.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (this.data === null) {
      return;
    }
    if (this.drag === null) {
      this.canvas.style.cursor = this.#edgeUnder(event.offsetX) >= 0 ? 'ew-resize' : 'crosshair';
      this.on.hover(this.#textAt(event.offsetX, event.offsetY));
      return;
    }
    const { drag } = this;
    drag.moved ||= Math.hypot(event.offsetX - drag.x, event.offsetY - drag.y) >= MIN_WAY_PX;
    if (drag.moved) {
      drag.range = this.#dragged(event, drag);
      // One change for each frame drawn, however many moves there are.
      this.frame ??= requestAnimationFrame(() => {
        this.frame = undefined;
        if (this.drag?.range !== undefined) {
          this.on.select(this.drag.range, true);
        }
      });
    }
  }

  /** @param {PointerEvent} event
   *  @param {{ anchor: number }} drag */
  #dragged(event, { anchor }) {
    const [a, b] = [anchor, this.#nsAt(event.offsetX, event.offsetY)];
    return withinSpan([Math.min(a, b), Math.max(a, b) + this.#grainNs()], this.moments.spanNs, this.moments.bucketNs);
  }

  /** @param {PointerEvent} event */
  #end(event) {
    if (this.drag !== null) {
      const range = this.drag.moved ? this.#dragged(event, this.drag) : null;
      this.drag = null;
      this.on.select(range, false);
    }
  }

  /** @param {number} x
   *  @param {number} y */
  #textAt(x, y) {
    const ns = this.#nsAt(x, y);
    return this.#shown.mode === 'area' ? columnText(this.#shown, ns, this.moments.spanNs)
      : `${formatDuration(ns)} to ${formatDuration(ns + this.#grainNs())}`;
  }

  /** @param {StripData} data */
  show(data) {
    this.data = data;
    if (data.mode === 'heat') {
      this.cells = heatCells(this.moments, this.heat, data);
    }
    this.drawn = '';
    this.draw();
  }

  /** Draws again with another range.
   *  @param {TimeRange | null} range */
  showRange(range) {
    if (this.data !== null) {
      this.data.range = range;
      this.draw();
    }
  }

  /** Draws the range over a picture of all else, which is drawn anew where it is out of date. */
  draw() {
    const { canvas, context, still, container } = this;
    this.width = container.clientWidth;
    if (this.width <= LEFT_PX) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    const height = this.#plotPx() + AXIS_PX;
    container.style.height = `${height + 2}px`;
    const [w, h] = [Math.round(this.width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      [canvas.style.width, canvas.style.height] = [`${this.width}px`, `${height}px`];
    }
    if (this.drawn !== `${w} ${h}`) {
      this.drawn = `${w} ${h}`;
      [still.canvas.width, still.canvas.height] = [w, h];
      still.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.#drawStill(height);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(still.canvas, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#drawRange();
  }

  /** @param {number} height */
  #drawStill(height) {
    this.still.fillStyle = this.#shown.paint.gap;
    this.still.fillRect(0, 0, this.width, height);
    if (this.#shown.mode === 'area') {
      this.#drawAreas();
    } else {
      this.#drawHeat();
    }
    this.#drawLosses();
    this.#drawTimeAxis();
  }

  #drawAreas() {
    const { still: context } = this;
    const { series, sums, columns, scale, unit, cpus, paint } = this.#shown;
    const most = maxOfColumns(sums, series.length) * scale;
    const { top, step } = cpuAxis(most, cpus);
    const [width, plot] = [this.#plotWidth() / columns, this.#plotPx() - LOSS_PX];
    const bottoms = new Float64Array(columns).fill(this.#plotPx());
    series.forEach(({ colour }, number) => {
      // One area for each series: along its upper edge, and back along that of the series below.
      const tops = bottoms.map((bottom, column) => (
        bottom - (top > 0 ? ((sums[column * series.length + number] * scale) / top) * plot : 0)));
      context.fillStyle = colour;
      context.beginPath();
      tops.forEach((y, column) => {
        context.lineTo(LEFT_PX + column * width, y);
        context.lineTo(LEFT_PX + (column + 1) * width, y);
      });
      for (let column = columns - 1; column >= 0; column--) {
        context.lineTo(LEFT_PX + (column + 1) * width, bottoms[column]);
        context.lineTo(LEFT_PX + column * width, bottoms[column]);
      }
      context.fill();
      bottoms.set(tops);
    });
    context.font = SMALL_FONT;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    // A long word for the unit stands in the plot, once.
    const [, word = ''] = unit(top).split(' ');
    const isLong = context.measureText(unit(top)).width > LEFT_PX - 8;
    for (let value = 0; value <= top && step > 0; value += step) {
      const y = this.#plotPx() - (value / top) * plot;
      context.fillStyle = paint.mark;
      context.globalAlpha = 0.25;
      context.fillRect(LEFT_PX, y - 0.5, this.#plotWidth(), 1);
      context.globalAlpha = 1;
      context.fillStyle = paint.fadedText;
      const text = isLong ? unit(value).split(' ')[0] : unit(value);
      context.fillText(text, LEFT_PX - 6, Math.min(this.#plotPx() - 5, Math.max(7, y)));
    }
    context.textAlign = 'start';
    if (isLong) {
      context.fillText(word, LEFT_PX + 4, 7);
    }
  }

  #drawHeat() {
    const { still: context } = this;
    const { heat, cells } = this;
    const { paint, heatColour } = this.#shown;
    const most = cells.reduce((max, cell) => Math.max(max, cell), 0);
    const [width, height] = [this.#heatColumnPx(), this.#plotPx() / heat.rows];
    context.fillStyle = heatColour;
    cells.forEach((cell, index) => {
      if (cell > 0) {
        context.globalAlpha = 0.12 + 0.88 * (cell / most);
        const [column, row] = [Math.floor(index / heat.rows), index % heat.rows];
        context.fillRect(LEFT_PX + column * width, row * height, Math.max(width - 0.5, 0.5), Math.max(height - 0.2, 0.5));
      }
    });
    context.globalAlpha = 1;
    context.font = SMALL_FONT;
    context.textAlign = 'right';
    context.fillStyle = paint.fadedText;
    context.textBaseline = 'top';
    context.fillText('+0', LEFT_PX - 6, 1);
    context.textBaseline = 'bottom';
    context.fillText(`+${formatDuration(heat.lengthNs).replace(/\.0+ /, ' ')}`, LEFT_PX - 6, this.#plotPx() - 1);
    context.textAlign = 'start';
  }

  #drawLosses() {
    const { still: context } = this;
    context.fillStyle = this.#shown.lossColour;
    for (const [from, to] of this.moments.lossWindows) {
      const left = this.#xOf(from);
      const width = Math.max(2, this.#xOf(to) - left);
      context.globalAlpha = 0.16;
      context.fillRect(left, 0, width, this.#plotPx());
      context.globalAlpha = 1;
      context.fillRect(left, 0, width, LOSS_PX - 1);
    }
  }

  #drawTimeAxis() {
    const { still: context, moments: { spanNs } } = this;
    const { paint } = this.#shown;
    const wanted = Math.max(1, Math.floor(this.#plotWidth() / 90));
    const { step } = axisSteps(spanNs, wanted);
    context.font = SMALL_FONT;
    context.textBaseline = 'top';
    context.fillStyle = paint.fadedText;
    context.fillRect(LEFT_PX, this.#plotPx(), this.#plotWidth(), 1);
    for (let ns = 0; ns <= spanNs && step > 0; ns += step) {
      const x = this.#xOf(ns);
      const text = ns === 0 ? '0' : formatDuration(ns).replace(/\.0+ /, ' ');
      context.fillRect(x, this.#plotPx(), 1, 4);
      if (x + context.measureText(text).width + 3 < this.width) {
        context.fillText(text, x + 3, this.#plotPx() + 4);
      }
    }
  }

  #drawRange() {
    const { range, mode, paint } = this.#shown;
    if (range === null) {
      return;
    }
    if (mode === 'heat') {
      this.#drawHeatRange(range);
      return;
    }
    const { context } = this;
    const [left, right] = range.map((ns) => this.#xOf(ns));
    context.fillStyle = paint.gap;
    context.globalAlpha = 0.68;
    context.fillRect(LEFT_PX, 0, left - LEFT_PX, this.#plotPx());
    context.fillRect(right, 0, this.width - right, this.#plotPx());
    context.globalAlpha = 1;
    context.fillStyle = paint.text;
    context.fillRect(left - 1, 0, 2, this.#plotPx() + 4);
    context.fillRect(right - 1, 0, 2, this.#plotPx() + 4);
  }

  /** @param {TimeRange} range */
  #drawHeatRange([from, to]) {
    const { context } = this;
    const { heat } = this;
    const { paint } = this.#shown;
    const width = this.#heatColumnPx();
    context.fillStyle = paint.gap;
    context.globalAlpha = 0.68;
    for (let column = 0; column < heat.columns; column++) {
      const begin = column * heat.lengthNs;
      const [top, bottom] = [from, to].map((ns) => Math.max(0, Math.min(1, (ns - begin) / heat.lengthNs)) * this.#plotPx());
      context.fillRect(LEFT_PX + column * width, 0, width, top);
      context.fillRect(LEFT_PX + column * width, bottom, width, this.#plotPx() - bottom);
    }
    context.globalAlpha = 1;
  }
}
