// A flame graph on a canvas: draws the visible part, answers pointer and keys.
//
// The canvas is as large as the visible part and stays in place while its scroller moves; only
// frames in view are visited. Frames of a few pixels are drawn as pixels, row by row.

import { findInRow, heaviestChild, neighbour, nodeAt, rowCount } from './layout.js';
import { isInlined } from './tree.js';
import { shortenName } from './names.js';
import { context2d, el } from './dom.js';
import { packColour } from './colors.js';
import { PixelRows } from './pixelrows.js';

/** @import { FlameData, FlameEvents, TimeRange } from './types.d.ts' */

const ROW_PX = 19;
const FONT = '12px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const PADDING_PX = 5;
const HATCH_PX = 6;
/** Narrower frames bear no name. */
const MIN_TEXT_PX = 26;
/** Narrower frames are drawn as pixels. */
const MIN_WIDE_PX = 4;
const ZOOM_MS = 160;
/** Rows kept in view around the zoomed node. */
const CONTEXT_ROWS = 4;

/** A frame that is drawn by itself, and its name.
 *  @typedef {{ node: number, left: number, right: number, row: number }} WideFrame
 *  @typedef {{ node: number, left: number, width: number, top: number, colour: string, inlined: boolean }} Label */

export class FlameGraph {
  width = 0;
  height = 0;
  viewHeight = 0;
  /** @type {FlameData | null} */
  data = null;
  /** @type {{ from: TimeRange, to: TimeRange, start: number }} The way to the range of weights in view. */
  motion = { from: [0, 0], to: [0, 0], start: 0 };

  /** `scroller` is the element that scrolls.
   *  @param {HTMLElement} scroller
   *  @param {FlameEvents} on */
  constructor(scroller, on) {
    this.scroller = scroller;
    this.on = on;
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.hoverOutline = el('div', { class: 'outline hover', hidden: true });
    this.currentOutline = el('div', { class: 'outline current', hidden: true });
    this.spacer = el('div', { class: 'spacer' }, this.canvas, this.hoverOutline, this.currentOutline);
    scroller.append(this.spacer);
    this.context = context2d(this.canvas);
    this.narrow = new PixelRows();
    /** Colours of CSS as pixels have them. */
    this.packedColours = /** @type {Map<string, number>} */ (new Map());
    /** Colours of keys in the picture that is painted. */
    this.keyStyles = /** @type {Map<number, { colour: number, match: boolean }>} */ (new Map());
    this.hovered = -1;
    this.current = -1;
    this.frame = 0;
    this.#listen();
  }

  #listen() {
    new ResizeObserver(() => this.#resize()).observe(this.scroller);
    this.scroller.addEventListener('scroll', () => {
      this.#hover(-1, null);
      this.repaint();
    }, { passive: true });
    /** @param {MouseEvent} event */
    const at = (event) => this.#nodeUnder(event);
    this.canvas.addEventListener('pointermove', (event) => this.#hover(at(event), event));
    this.canvas.addEventListener('pointerleave', () => this.#hover(-1, null));
    this.canvas.addEventListener('click', (event) => {
      const node = at(event);
      if (node >= 0) {
        this.setCurrent(node);
        (this.on.pick ?? this.on.zoom)(node);
      }
    });
    this.canvas.addEventListener('dblclick', (event) => at(event) > 0 && this.on.open(at(event)));
    this.canvas.addEventListener('contextmenu', (event) => {
      const node = at(event);
      if (node >= 0) {
        event.preventDefault();
        this.setCurrent(node);
        this.on.menu(node, event.clientX, event.clientY);
      }
    });
    this.scroller.addEventListener('keydown', (event) => this.#key(event));
  }

  /** The drawn graph; there is none before the first `show`.
   *  @returns {FlameData} */
  get shown() {
    if (this.data === null) {
      throw new Error('no flame graph is shown');
    }
    return this.data;
  }

  /** @param {FlameData} data
   *  @param {{ animate?: boolean }} [options] */
  show(data, { animate = false } = {}) {
    const same = this.data !== null && this.data.graph === data.graph;
    const before = this.data === null ? null : this.#range();
    const movedZoom = this.data === null || !same || this.data.zoom !== data.zoom || this.data.up !== data.up;
    this.data = data;
    if (!same) {
      this.current = -1;
      this.hovered = -1;
    }
    if (data.window !== undefined && this.current >= 0) {
      this.current = this.#inView(this.current);
    }
    const to = this.#target();
    const still = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.motion = animate && before !== null && !still
      ? { from: before, to, start: performance.now() } : { from: to, to, start: 0 };
    const [isPainted, scrolled] = [this.#resize(), this.scroller.scrollTop];
    if (movedZoom) {
      this.#scrollToZoom();
    }
    if (!isPainted || animate || this.scroller.scrollTop !== scrolled) {
      this.repaint();
    }
  }

  /** @returns {TimeRange} */
  #target() {
    const { layout, weight, zoom, window: shown } = this.shown;
    return shown ?? [layout.x[zoom], layout.x[zoom] + weight[zoom]];
  }

  /** The range of weights in view at this moment.
   *  @returns {TimeRange} */
  #range() {
    const { from, to, start } = this.motion;
    const t = Math.min(1, (performance.now() - start) / ZOOM_MS);
    const ease = 1 - (1 - t) ** 3;
    return [from[0] + (to[0] - from[0]) * ease, from[1] + (to[1] - from[1]) * ease];
  }

  /** The last row that the zoomed subtree reaches. */
  #rows() {
    const { graph, layout, zoom } = this.shown;
    return Math.min(rowCount(layout), graph.depth[zoom] + layout.height[zoom] + 1);
  }

  /** Fits the canvas to the visible part; true where that changed it, and painted it anew. */
  #resize() {
    if (this.data === null || this.scroller.clientWidth === 0) {
      return false;
    }
    this.width = this.scroller.clientWidth;
    this.viewHeight = this.scroller.clientHeight;
    this.height = Math.max(this.viewHeight, (this.#rows() - this.shown.base) * ROW_PX);
    this.spacer.style.height = `${this.height}px`;
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.viewHeight * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
      this.canvas.style.width = `${this.width}px`;
      this.canvas.style.height = `${this.viewHeight}px`;
      // A canvas that changes size is empty: paint at once, or it flickers.
      this.#paint();
      return true;
    }
    return false;
  }

  /** @param {number} row */
  #rowTop(row) {
    const shown = row - this.shown.base;
    return this.shown.up ? this.height - (shown + 1) * ROW_PX : shown * ROW_PX;
  }

  #scrollToZoom() {
    const row = Math.max(this.shown.base, this.shown.graph.depth[this.shown.zoom] - CONTEXT_ROWS);
    const top = this.#rowTop(row);
    this.scroller.scrollTop = this.shown.up ? top + ROW_PX - this.viewHeight : top;
  }

  /** @param {number} row */
  #scrollInto(row) {
    const top = this.#rowTop(row);
    if (top < this.scroller.scrollTop) {
      this.scroller.scrollTop = top;
    } else if (top + ROW_PX > this.scroller.scrollTop + this.viewHeight) {
      this.scroller.scrollTop = top + ROW_PX - this.viewHeight;
    }
  }

  /** Paints soon; many calls in a row paint once. */
  repaint() {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.#paint();
      });
    }
  }

  #paint() {
    if (this.data === null || this.canvas.width === 0) {
      return;
    }
    const { context } = this;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.shown.paint.gap;
    context.fillRect(0, 0, this.width, this.viewHeight);
    const [from, to] = this.#range();
    const scale = to > from ? this.width / (to - from) : 0;
    /** @param {number} row */
    const topOf = (row) => this.#rowTop(row) - this.scroller.scrollTop;
    /** @type {number[]} */
    const inView = [];
    for (let row = this.shown.base; row < this.#rows(); row++) {
      if (topOf(row) < this.viewHeight && topOf(row) + ROW_PX > 0 && scale > 0) {
        inView.push(row);
      }
    }
    /** @type {WideFrame[]} */
    const wide = [];
    this.keyStyles.clear();
    this.narrow.begin(this.canvas.width, inView.length, this.#packed(this.shown.paint.gap));
    inView.forEach((row, line) => this.#paintRow(row, line, from, to, scale, wide));
    this.narrow.draw(context, (line) => Math.round(topOf(inView[line]) * ratio), Math.round((ROW_PX - 1) * ratio));
    /** @type {Label[]} */
    const labels = [];
    wide.forEach(({ node, left, right, row }) => this.#paintFrame(node, left, right, topOf(row), labels));
    this.#paintLabels(labels);
    this.shown.over?.(context, this.width, this.viewHeight);
    if (this.#rows() <= this.shown.base) {
      this.#paintNothing();
    }
    this.#placeOutlines();
    if (performance.now() - this.motion.start < ZOOM_MS) {
      this.repaint();
    }
  }

  /** Narrow frames become pixels; the others are added to `wide`.
   *  @param {number} row
   *  @param {number} line
   *  @param {number} from
   *  @param {number} to
   *  @param {number} scale
   *  @param {WideFrame[]} wide */
  #paintRow(row, line, from, to, scale, wide) {
    const { layout, weight } = this.shown;
    const end = layout.rowStart[row + 1];
    for (let at = findInRow(layout, row, from); at < end; at++) {
      const node = layout.order[at];
      if (layout.x[node] >= to) {
        break;
      }
      const left = Math.max(0, (layout.x[node] - from) * scale);
      const right = Math.min(this.width, (layout.x[node] + weight[node] - from) * scale);
      if (right - left >= MIN_WIDE_PX || this.#hasMarks(node, right - left)) {
        wide.push({ node, left, right, row });
      } else if (right > left) {
        this.#addNarrow(line, node, left, right);
      }
    }
  }

  /** True where a frame is hatched or outlined.
   *  @param {number} node
   *  @param {number} width */
  #hasMarks(node, width) {
    const { graph, hatched, outlined } = this.shown;
    const key = graph.key[node];
    return key >= 0 && ((width > 2 && hatched?.(node)) || outlined?.(key));
  }

  /** @param {number} line
   *  @param {number} node
   *  @param {number} left
   *  @param {number} right */
  #addNarrow(line, node, left, right) {
    const ratio = this.canvas.width / this.width;
    const { colour, match } = this.#narrowStyle(node);
    // Frames of more than two pixels have a gap behind them.
    const end = right - (right - left > 2 ? 1 : 0);
    if (match) {
      this.narrow.addMark(line, left * ratio, end * ratio, colour);
    } else {
      this.narrow.add(line, left * ratio, end * ratio, colour);
    }
  }

  /** Colour of a narrow frame; in most graphs frames of one key have one colour, which is looked up once a picture.
   *  @param {number} node */
  #narrowStyle(node) {
    const key = this.shown.fillNode === undefined ? this.shown.graph.key[node] : -1;
    let style = key < 0 ? undefined : this.keyStyles.get(key);
    if (style === undefined) {
      const { fill, match } = this.#style(node);
      style = { colour: this.#packed(fill), match };
      this.keyStyles.set(key, style);
    }
    return style;
  }

  /** @param {string} css */
  #packed(css) {
    let colour = this.packedColours.get(css);
    if (colour === undefined) {
      colour = packColour(css);
      this.packedColours.set(css, colour);
    }
    return colour;
  }

  /** @param {number} node */
  #style(node) {
    const { graph, paint, fill, fillNode, match, muted } = this.shown;
    const key = graph.key[node];
    if (match !== null && key >= 0 && match(key)) {
      return { fill: paint.match, text: paint.text, match: true };
    }
    if (key < 0) {
      return { fill: paint.root, text: paint.text, match: false };
    }
    return match !== null || muted(key)
      ? { fill: paint.fadedFill, text: paint.fadedText, match: false }
      : { fill: fillNode === undefined ? fill(key) : fillNode(node), text: paint.text, match: false };
  }

  /** @param {number} node
   *  @param {number} left
   *  @param {number} right
   *  @param {number} top
   *  @param {Label[]} labels */
  #paintFrame(node, left, right, top, labels) {
    const { context } = this;
    const { graph, paint, zoom } = this.shown;
    const width = right - left;
    const style = this.#style(node);
    // Callers of the zoomed node are context, not part of the picture.
    context.globalAlpha = graph.depth[node] < graph.depth[zoom] ? 0.62 : 1;
    context.fillStyle = style.fill;
    context.fillRect(left, top, width > 2 ? width - 1 : width, ROW_PX - 1);
    context.globalAlpha = 1;
    this.#paintMarks(node, left, width, top);
    const inlined = isInlined(graph.key[node]);
    if (inlined && width > 6) {
      // A dog-eared corner: inlined into the frame that it stands on.
      context.fillStyle = paint.mark;
      context.beginPath();
      context.moveTo(left, top);
      context.lineTo(left + 6, top);
      context.lineTo(left, top + 6);
      context.fill();
    }
    if (width >= MIN_TEXT_PX) {
      labels.push({ node, left, width, top, colour: style.text, inlined });
    }
  }

  /** Hatches a frame, and outlines it, where the data ask for that.
   *  @param {number} node
   *  @param {number} left
   *  @param {number} width
   *  @param {number} top */
  #paintMarks(node, left, width, top) {
    const { context } = this;
    const { graph, paint, hatched, outlined, chosen } = this.shown;
    const isWide = width > 2;
    if (hatched?.(node) && graph.key[node] >= 0 && isWide) {
      context.save();
      context.beginPath();
      context.rect(left, top, width - 1, ROW_PX - 1);
      context.clip();
      context.strokeStyle = paint.hatch;
      context.lineWidth = 1;
      context.beginPath();
      const last = Math.min(left + width, this.width);
      for (let x = Math.floor(Math.max(0, left) / HATCH_PX) * HATCH_PX - ROW_PX; x < last; x += HATCH_PX) {
        context.moveTo(x, top + ROW_PX);
        context.lineTo(x + ROW_PX, top);
      }
      context.stroke();
      context.restore();
    }
    const key = graph.key[node];
    if (key >= 0 && (outlined?.(key) || (width >= MIN_WIDE_PX && chosen?.(key)))) {
      context.strokeStyle = paint.text;
      context.lineWidth = 2;
      context.strokeRect(left + 1, top + 1, Math.max(1, width - 3), ROW_PX - 3);
    }
  }

  /** @param {Label[]} labels */
  #paintLabels(labels) {
    const { context } = this;
    context.textBaseline = 'middle';
    for (const inlined of [false, true]) {
      context.font = inlined ? `italic ${FONT}` : FONT;
      const charPx = context.measureText('0000000000').width / 10;
      for (const label of labels) {
        if (label.inlined === inlined) {
          const space = label.width - 2 * PADDING_PX;
          const text = shortenName(this.shown.name(label.node), Math.floor(space / charPx));
          context.fillStyle = label.colour;
          // The last argument squeezes a character that is wider than usual.
          context.fillText(text, label.left + PADDING_PX, label.top + ROW_PX / 2 - 0.5, Math.max(1, space + 1));
        }
      }
    }
  }

  #paintNothing() {
    const { context } = this;
    context.font = FONT;
    context.fillStyle = this.shown.paint.fadedText;
    context.textAlign = 'center';
    context.fillText(this.shown.nothing, this.width / 2, this.viewHeight / 2);
    context.textAlign = 'start';
  }

  /** Puts the outlines around their frames. They are elements over the canvas, so that moving the
   *  pointer paints nothing. */
  #placeOutlines() {
    this.#placeOutline(this.hoverOutline, this.hovered);
    this.#placeOutline(this.currentOutline, this.current);
  }

  /** @param {HTMLElement} outline
   *  @param {number} node */
  #placeOutline(outline, node) {
    const shown = node >= 0 && this.shown.graph.depth[node] >= this.shown.base;
    const [from, to] = this.#range();
    const { graph, layout, weight } = this.shown;
    /** @param {number} x */
    const place = (x) => Math.min(this.width, Math.max(0, ((x - from) / (to - from)) * this.width));
    const [left, right] = shown ? [place(layout.x[node]), place(layout.x[node] + weight[node])] : [0, 0];
    outline.hidden = right <= left;
    if (!outline.hidden) {
      outline.style.left = `${left}px`;
      outline.style.width = `${Math.max(2, right - left - (right - left > 2 ? 1 : 0))}px`;
      outline.style.top = `${this.#rowTop(graph.depth[node])}px`;
      outline.style.height = `${ROW_PX - 1}px`;
    }
  }

  /** @param {MouseEvent} event */
  #nodeUnder(event) {
    if (this.data === null) {
      return -1;
    }
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.scroller.scrollTop;
    const row = Math.floor((this.shown.up ? this.height - y : y) / ROW_PX) + this.shown.base;
    const [from, to] = this.#target();
    const x = from + ((event.clientX - box.left) / this.width) * (to - from);
    return row < this.#rows() ? nodeAt(this.shown.layout, this.shown.weight, row, x) : -1;
  }

  /** @param {number} node
   *  @param {PointerEvent | null} event */
  #hover(node, event) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
      this.#placeOutline(this.hoverOutline, node);
    }
    this.on.hover(node, event);
  }

  /** Puts the keyboard's mark on a node.
   *  @param {number} node */
  setCurrent(node) {
    this.current = node;
    this.#scrollInto(this.shown.graph.depth[node]);
    this.on.current(node);
    this.#placeOutline(this.currentOutline, node);
  }

  /** The place of a node on the screen, for a menu opened by key.
   *  @param {number} node
   *  @returns {[number, number]} */
  place(node) {
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.#target();
    const x = ((this.shown.layout.x[node] - from) / (to - from)) * this.width;
    const y = this.#rowTop(this.shown.graph.depth[node]) - this.scroller.scrollTop + ROW_PX;
    return [box.left + Math.min(Math.max(0, x), this.width - 40), box.top + y];
  }

  /** Where an arrow key begins: at `node`, or where that is no row, at the heaviest in view of the first one.
   *  @param {number} node */
  #first(node) {
    const { graph, layout, weight, base, window: shown } = this.shown;
    let first = node;
    while (first >= 0 && graph.depth[first] < base) {
      first = heaviestChild(graph, layout, weight, first, shown);
    }
    return Math.max(node, first);
  }

  /** The node that an arrow key leads to from `node`, or -1.
   *  @param {string} key
   *  @param {number} node */
  #step(key, node) {
    const { graph, layout, weight, up, base } = this.shown;
    switch (key) {
      case up ? 'ArrowUp' : 'ArrowDown': return heaviestChild(graph, layout, weight, node, this.shown.window);
      case up ? 'ArrowDown' : 'ArrowUp': return graph.depth[node] > base ? graph.parent[node] : -1;
      case 'ArrowLeft': return this.#inView(neighbour(graph, layout, node, -1));
      case 'ArrowRight': return this.#inView(neighbour(graph, layout, node, 1));
      default: return -1;
    }
  }

  /** @param {number} node */
  #inView(node) {
    const [from, to] = this.#target();
    const { layout, weight } = this.shown;
    return node >= 0 && layout.x[node] < to && layout.x[node] + weight[node] > from ? node : -1;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (this.data === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const node = this.current >= 0 ? this.current : this.shown.zoom;
    if (event.key.startsWith('Arrow')) {
      event.preventDefault();
      const next = this.current < 0 ? this.#first(node) : this.#step(event.key, node);
      if (next >= 0) {
        this.setCurrent(next);
      }
    } else if (event.key === 'Enter') {
      event.preventDefault();
      this.on.zoom(node);
    } else if (event.key === 'ContextMenu' || event.key === 'm') {
      event.preventDefault();
      this.on.menu(node, ...this.place(node));
    } else {
      this.on.key(event, node);
    }
  }
}
