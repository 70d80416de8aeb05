// The head of the stack chart: times, losses, and the states of the thread.

import { context2d, el } from './dom.js';
import { drawSpans, drawTimes } from './spans.js';
import { spanAt } from './switches.js';

/** @import { Paint, TimelineData, TimeRange } from './types.d.ts' */

const TIMES_PX = 20;
const STATES_PX = 12;
const LOSS_MARK_PX = 4;
const AXIS_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

/** The range in view, the thread's lane in the time line or -1, the beginning of that line in the time of the range.
 *  @typedef {{ window: TimeRange, width: number, place: number, beginNs: number, losses: TimeRange[], lossColour: string, paint: Paint }} AxisData */

export class ChartAxis {
  /** @type {AxisData | null} */
  data = null;

  /** `on` has hover(span or -1, event) and wheel(event).
   *  @param {HTMLElement} container
   *  @param {TimelineData | null} timeline
   *  @param {{ hover: (span: number, event: PointerEvent) => void, wheel: (event: WheelEvent) => void }} on */
  constructor(container, timeline, on) {
    this.container = container;
    this.timeline = timeline;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    container.append(this.canvas);
    this.context = context2d(this.canvas);
    this.canvas.addEventListener('wheel', on.wheel, { passive: false });
    this.canvas.addEventListener('pointermove', (event) => on.hover(this.#spanUnder(event), event));
    this.canvas.addEventListener('pointerleave', (event) => on.hover(-1, event));
  }

  /** @param {MouseEvent} event */
  #spanUnder({ offsetX, offsetY }) {
    const { data, timeline } = this;
    if (data === null || timeline === null || data.place < 0 || offsetY < TIMES_PX) {
      return -1;
    }
    const { window: [from, to], width, place, beginNs } = data;
    return spanAt(timeline, place, from + (offsetX / width) * (to - from) - beginNs);
  }

  /** @param {AxisData} data */
  show(data) {
    this.data = data;
    const { context, canvas, timeline } = this;
    const { window: range, width, place, beginNs, losses, lossColour, paint } = data;
    const height = TIMES_PX + (place < 0 ? 0 : STATES_PX);
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, height);
    context.font = AXIS_FONT;
    drawTimes(context, { left: 0, width, bottom: TIMES_PX - 1, middle: TIMES_PX / 2 - 1 }, range, paint);
    if (timeline !== null && place >= 0) {
      const own = /** @type {TimeRange} */ (range.map((ns) => ns - beginNs));
      drawSpans(context, timeline, place, { left: 0, width, top: TIMES_PX + 1, height: STATES_PX - 2 }, own, paint);
    }
    drawLosses(context, losses, range, width, LOSS_MARK_PX, lossColour);
  }
}

/** Marks windows of losses, from the top down to `height`.
 *  @param {CanvasRenderingContext2D} context
 *  @param {TimeRange[]} losses
 *  @param {TimeRange} range
 *  @param {number} width
 *  @param {number} height
 *  @param {string} colour */
export function drawLosses(context, losses, [from, to], width, height, colour) {
  context.fillStyle = colour;
  for (const [begin, end] of losses) {
    if (begin < to && end >= from) {
      const left = ((begin - from) / (to - from)) * width;
      context.fillRect(left, 0, Math.max(2, ((end - begin) / (to - from)) * width), height);
    }
  }
}
