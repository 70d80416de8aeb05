// The critical path of a call: a lane for each thread, and a line where the path goes from one to another.

import { context2d, el } from './dom.js';
import { formatDuration } from './format.js';
import { shortenThread } from './names.js';
import { Tooltip } from './popups.js';
import { RangeDrag } from './rangedrag.js';
import { pieceAt, pieceColour, windowOfCall } from './requests.js';
import { drawTimes } from './spans.js';

/** @import { CallPath, Paint, RequestCall, Theme, TimeRange } from './types.d.ts' */

const PATH_LANE_PX = 20;
const PATH_GAP_PX = 3;
const PATH_LABEL_PX = 170;
const PATH_AXIS_PX = 20;
const PATH_BORDER_PX = 2;
const PATH_FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

/** @typedef {{ call: RequestCall, path: CallPath, range: TimeRange | null, paint: Paint, theme: Theme }} ShownPath */

export class PathLanes {
  /** @type {ShownPath | null} */
  shown = null;

  /** `select` takes a range since the beginning of the call and the lane of a clicked piece, or null for all of the time.
   *  @param {HTMLElement} scroller
   *  @param {{ select: (range: TimeRange | null, lane: CallPath['lanes'][number] | null) => void, wheel: (event: WheelEvent, ns: number) => boolean }} on */
  constructor(scroller, on) {
    this.scroller = scroller;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.spacer = el('div', { class: 'spacer' }, this.canvas);
    scroller.append(this.spacer);
    this.context = context2d(this.canvas);
    this.tip = new Tooltip((/** @type {number} */ piece) => this.#tip(piece));
    new ResizeObserver(() => this.#draw()).observe(scroller);
    scroller.addEventListener('scroll', () => this.#draw(), { passive: true });
    scroller.addEventListener('keydown', (event) => event.key === 'Escape' && on.select(null, null));
    this.canvas.addEventListener('pointermove', (event) => this.#hover(event));
    this.canvas.addEventListener('pointerleave', () => this.tip.hide());
    this.canvas.addEventListener('wheel', (event) => {
      if (on.wheel(event, this.#nsAt(event.clientX))) {
        event.preventDefault();
      }
    }, { passive: false });
    this.canvas.addEventListener('click', (event) => {
      const [piece, { shown }] = [this.#pieceUnder(event), this];
      if (piece >= 0 && shown !== null) {
        const { path: { fromNs, durationNs, lane, lanes } } = shown;
        on.select([fromNs[piece], fromNs[piece] + durationNs[piece]], lanes[lane[piece]]);
      }
    });
    this.drag = new RangeDrag(scroller, this.spacer, {
      nsAt: (clientX) => this.#nsAt(clientX),
      select: (range) => on.select(range, null),
      moved: () => this.tip.hide(),
    });
  }

  /** @param {ShownPath | null} shown */
  show(shown) {
    this.tip.hide();
    this.shown = shown;
    const lanes = shown?.path.lanes.length ?? 0;
    const height = lanes * PATH_LANE_PX + PATH_AXIS_PX;
    this.spacer.style.height = `${height}px`;
    this.scroller.style.height = `${height + PATH_BORDER_PX}px`;
    this.#draw();
  }

  /** @returns {TimeRange} */
  #window() {
    return this.shown === null ? [0, 1] : windowOfCall(this.shown.call, this.shown.range);
  }

  #width() {
    return Math.max(1, this.scroller.clientWidth - PATH_LABEL_PX);
  }

  /** @param {number} clientX */
  #nsAt(clientX) {
    const [from, to] = this.#window();
    const share = (clientX - this.canvas.getBoundingClientRect().left - PATH_LABEL_PX) / this.#width();
    return from + Math.max(0, Math.min(1, share)) * (to - from);
  }

  /** @param {MouseEvent} event */
  #pieceUnder({ clientX, offsetX, offsetY }) {
    const { shown, scroller } = this;
    if (shown === null || offsetX < PATH_LABEL_PX || offsetY < PATH_AXIS_PX) {
      return -1;
    }
    const piece = pieceAt(shown.path, this.#nsAt(clientX));
    const lane = Math.floor((offsetY - PATH_AXIS_PX + scroller.scrollTop) / PATH_LANE_PX);
    return piece >= 0 && shown.path.lane[piece] === lane ? piece : -1;
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const piece = this.#pieceUnder(event);
    this.tip.follow(event, piece, piece < 0 ? null : piece);
  }

  /** @param {number} piece */
  #tip(piece) {
    if (this.shown === null) {
      return [];
    }
    const { path } = this.shown;
    const explains = path.explainsOf(piece);
    return [
      el('div', { class: 'tip-name' }, `${path.lanes[path.lane[piece]].name}: ${path.textOf(piece)}`),
      el('div', {}, `after ${formatDuration(path.fromNs[piece])}, for ${formatDuration(path.durationNs[piece])}`),
      ...(explains === '' ? [] : [el('div', { class: 'tip-code' }, explains)]),
    ];
  }

  #draw() {
    const { scroller, canvas, context, shown } = this;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    if (width === 0 || height === 0) {
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (shown === null) {
      context.clearRect(0, 0, width, height);
      return;
    }
    const { path, paint, theme } = shown;
    const range = this.#window();
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, height);
    context.font = PATH_FONT;
    context.textBaseline = 'middle';
    /** @param {number} lane */
    const topOf = (lane) => PATH_AXIS_PX + lane * PATH_LANE_PX - scroller.scrollTop;
    const drawn = Math.max(1, this.#width());
    path.lanes.forEach(({ name }, lane) => {
      context.fillStyle = paint.fadedFill;
      context.fillRect(PATH_LABEL_PX, topOf(lane), drawn, PATH_LANE_PX - PATH_GAP_PX);
      context.fillStyle = paint.text;
      context.fillText(shortenThread(name, 22), 8, topOf(lane) + (PATH_LANE_PX - PATH_GAP_PX) / 2);
    });
    this.#drawPieces(path, range, topOf, { theme, line: paint.fadedText });
    context.fillStyle = paint.gap;
    context.fillRect(0, 0, width, PATH_AXIS_PX);
    drawTimes(context, { left: PATH_LABEL_PX, width: drawn, bottom: PATH_AXIS_PX - 1, middle: PATH_AXIS_PX / 2 - 1 }, range, paint);
  }

  /** @param {CallPath} path
   *  @param {TimeRange} range
   *  @param {(lane: number) => number} topOf
   *  @param {{ theme: Theme, line: string }} look */
  #drawPieces(path, [from, to], topOf, { theme, line }) {
    const { context } = this;
    const scale = this.#width() / (to - from);
    const height = PATH_LANE_PX - PATH_GAP_PX;
    for (let i = Math.max(0, pieceAt(path, from)); i < path.fromNs.length && path.fromNs[i] < to; i++) {
      const left = PATH_LABEL_PX + Math.max(0, path.fromNs[i] - from) * scale;
      const right = PATH_LABEL_PX + Math.min(to - from, path.fromNs[i] + path.durationNs[i] - from) * scale;
      context.fillStyle = pieceColour(path.kindOf(i), theme);
      context.fillRect(left, topOf(path.lane[i]), Math.max(1, right - left), height);
      if (i > 0 && path.lane[i] !== path.lane[i - 1] && path.fromNs[i] >= from) {
        const [above, below] = [path.lane[i], path.lane[i - 1]].sort((a, b) => a - b);
        context.fillStyle = line;
        context.fillRect(left, topOf(above) + height, 1, topOf(below) - topOf(above) - height);
      }
    }
  }
}
