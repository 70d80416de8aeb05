// Rows of many frames that are a few pixels wide, as pixels: the canvas would take a call for each frame.

import { context2d } from './dom.js';

/** A colour of two, with a part between 0 and 1 of the second; both as in a canvas: red in the lowest byte.
 *  @param {number} below
 *  @param {number} above
 *  @param {number} part */
export function mixed(below, above, part) {
  /** @param {number} shift */
  const channel = (shift) => {
    const from = (below >>> shift) & 255;
    return Math.round(from + (((above >>> shift) & 255) - from) * part) << shift;
  };
  return (0xff000000 | channel(16) | channel(8) | channel(0)) >>> 0;
}

export class PixelRows {
  width = 0;
  pixels = new Uint32Array();
  /** The part of each pixel that frames cover so far. */
  covered = new Float32Array();
  background = 0;
  /** @type {CanvasRenderingContext2D | null} Made with the first picture. */
  context = null;
  /** @type {Uint8Array} 1 for rows with any frame. */
  used = new Uint8Array();
  /** @type {number[][]} Marks by row: they stand on all frames. */
  marks = [];

  /** Empties rows of this width; `colour` is that of the background.
   *  @param {number} width
   *  @param {number} rows
   *  @param {number} colour */
  begin(width, rows, colour) {
    if (this.width !== width || this.used.length !== rows) {
      this.width = width;
      this.pixels = new Uint32Array(width * rows);
      this.covered = new Float32Array(width * rows);
      this.used = new Uint8Array(rows);
    }
    this.background = colour;
    this.pixels.fill(colour);
    this.covered.fill(0);
    this.used.fill(0);
    this.marks = [];
  }

  /** Adds a frame between two places in pixels. Frames that share a pixel mix by their parts of it.
   *  @param {number} row
   *  @param {number} left
   *  @param {number} right
   *  @param {number} colour */
  add(row, left, right, colour) {
    const { covered, pixels, width } = this;
    this.used[row] = 1;
    const last = Math.min(width, Math.ceil(right));
    for (let x = Math.max(0, Math.floor(left)); x < last; x++) {
      const part = Math.min(right, x + 1) - Math.max(left, x);
      const at = row * width + x;
      const before = covered[at];
      pixels[at] = before === 0 ? colour : mixed(pixels[at], colour, part / (before + part));
      covered[at] = before + part;
    }
  }

  /** Adds a frame that is seen however narrow it is.
   *  @param {number} row
   *  @param {number} left
   *  @param {number} right
   *  @param {number} colour */
  addMark(row, left, right, colour) {
    this.used[row] = 1;
    const from = Math.min(this.width - 1, Math.floor(left));
    this.marks.push([row, from, Math.max(from + 1, Math.round(right)), colour]);
  }

  /** Gives pixels that frames cover in part some of the background, and puts marks on them. */
  finish() {
    const { background, covered, pixels, width } = this;
    for (let at = 0; at < pixels.length; at++) {
      if (covered[at] > 0 && covered[at] < 0.99) {
        pixels[at] = mixed(background, pixels[at], covered[at]);
      }
    }
    for (const [row, from, to, colour] of this.marks) {
      pixels.fill(colour, row * width + from, row * width + Math.min(width, to));
    }
  }

  /** Draws rows with frames on a canvas: `topOf(row)` and `height` are in pixels.
   *  @param {CanvasRenderingContext2D} target
   *  @param {(row: number) => number} topOf
   *  @param {number} height */
  draw(target, topOf, height) {
    const { pixels, used, width } = this;
    if (!used.includes(1)) {
      return;
    }
    this.finish();
    this.context ??= context2d(document.createElement('canvas'));
    const { context } = this;
    if (context.canvas.width !== width || context.canvas.height !== used.length) {
      [context.canvas.width, context.canvas.height] = [width, used.length];
    }
    context.putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, used.length), 0, 0);
    target.save();
    target.setTransform(1, 0, 0, 1, 0, 0);
    target.imageSmoothingEnabled = false;
    used.forEach((isUsed, row) => isUsed === 1 && target.drawImage(context.canvas, 0, row, width, 1, 0, topOf(row), width, height));
    target.restore();
  }
}
