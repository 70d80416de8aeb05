// Tracks on a canvas: runs, columns of events, boxes of stacks.

import { shortenName } from './names.js';

/** @import { ChartGraph, Marks, TimeRange, TrackRuns } from './types.d.ts' */

/** Narrower pieces have no text. */
const LEAST_TEXT_PX = 34;
const NAME_PAD_PX = 4;
const LEAST_RUN_PX = 0.6;

/** The place of a track: its left edge, width, top and height.
 *  @typedef {{ left: number, width: number, top: number, height: number }} TrackPlace */

/** Writes a name into a piece, where it has room.
 *  @param {CanvasRenderingContext2D} context
 *  @param {string} name
 *  @param {number} left
 *  @param {number} right
 *  @param {number} middle
 *  @param {number} characterPx */
function writeName(context, name, left, right, middle, characterPx) {
  if (right - left >= LEAST_TEXT_PX) {
    context.fillText(shortenName(name, Math.floor((right - left - 2 * NAME_PAD_PX) / characterPx)), left + NAME_PAD_PX, middle);
  }
}

/** The first run that ends after a moment.
 *  @param {Pick<TrackRuns, 'to'>} runs
 *  @param {number} ns */
export function firstRun({ to }, ns) {
  let [low, high] = [0, to.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (to[middle] <= ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Draws runs of threads, each in its colour, with its name where there is room and a colour for text.
 *  @param {CanvasRenderingContext2D} context
 *  @param {TrackRuns} runs
 *  @param {TrackPlace} place
 *  @param {TimeRange} range
 *  @param {{ colour: (thread: number) => string, name: (thread: number) => string, text: string, characterPx: number }} look */
export function drawRuns(context, runs, { left, width, top, height }, [from, to], { colour, name, text, characterPx }) {
  const scale = width / (to - from);
  let drawnTo = -1;
  // Runs of one colour that follow each other are one piece.
  let piece = { colour: '', from: 0, to: 0 };
  const fill = () => {
    if (piece.colour !== '') {
      context.fillStyle = piece.colour;
      context.fillRect(piece.from, top, piece.to - piece.from, height);
    }
  };
  for (let i = firstRun(runs, from); i < runs.from.length && runs.from[i] < to; i++) {
    const b = left + Math.min(to - from, runs.to[i] - from) * scale;
    // Not seen: within the pixel drawn last.
    if (b <= drawnTo) {
      continue;
    }
    const a = left + Math.max(0, runs.from[i] - from) * scale;
    const own = colour(runs.thread[i]);
    if (own !== piece.colour || a > piece.to + 0.5) {
      fill();
      piece = { colour: own, from: a, to: a };
    }
    piece.to = Math.max(a + LEAST_RUN_PX, b);
    if (text !== '' && b - a >= LEAST_TEXT_PX) {
      fill();
      context.fillStyle = text;
      writeName(context, name(runs.thread[i]), a, b, top + height / 2, characterPx);
      piece = { colour: '', from: b, to: b };
    }
    drawnTo = Math.floor(a) + 1;
  }
  fill();
}

/** Draws columns of one track: bars from the bottom for a counter, ticks for markers. Gives the largest sum.
 *  @param {CanvasRenderingContext2D} context
 *  @param {{ sums: Float64Array, stride: number, at: number, columns: number, isMarker: boolean, colour: string }} track
 *  @param {TrackPlace} place */
export function drawColumns(context, { sums, stride, at, columns, isMarker, colour }, { left, width, top, height }) {
  let most = 0;
  for (let column = 0; column < columns; column++) {
    most = Math.max(most, sums[column * stride + at]);
  }
  const columnPx = width / columns;
  context.fillStyle = colour;
  for (let column = 0; column < columns; column++) {
    const sum = sums[column * stride + at];
    if (sum > 0) {
      const share = sum / most;
      context.globalAlpha = isMarker ? 0.3 + 0.7 * share : 1;
      const tall = isMarker ? height : Math.max(1, share * height);
      context.fillRect(left + column * columnPx, top + height - tall, Math.max(1, columnPx), tall);
    }
  }
  context.globalAlpha = 1;
  return most;
}

/** The boxes of a row of a chart that reach into a range, as places in its order.
 *  @param {ChartGraph} chart
 *  @param {number} row
 *  @param {TimeRange} range
 *  @returns {TimeRange} */
export function boxesInRange({ layout, weight }, row, [from, to]) {
  const end = layout.rowStart[row + 1] ?? 0;
  let [low, high] = [layout.rowStart[row] ?? 0, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    const box = layout.order[middle];
    if (layout.x[box] + weight[box] <= from) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const first = low;
  for (high = end; low < high;) {
    const middle = (low + high) >> 1;
    if (layout.x[layout.order[middle]] < to) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return [first, low];
}

/** Draws rows of a chart from `base` on, from the top down.
 *  @param {CanvasRenderingContext2D} context
 *  @param {ChartGraph} chart
 *  @param {{ base: number, rows: number, rowPx: number, name: (box: number) => string, characterPx: number, isChosen: (key: number) => boolean }} look
 *  @param {Marks} marks
 *  @param {TrackPlace} place
 *  @param {TimeRange} range */
export function drawStacks(context, chart, { base, rows, rowPx, name, characterPx, isChosen }, { paint, fill, match, muted }, { left, width, top }, [from, to]) {
  const { graph: { key }, layout, weight } = chart;
  const scale = width / (to - from);
  for (let row = 0; row < rows && base + row + 1 < layout.rowStart.length; row++) {
    const [first, last] = boxesInRange(chart, base + row, [from, to]);
    let drawnTo = -1;
    for (let at = first; at < last; at++) {
      const box = layout.order[at];
      const a = left + Math.max(0, layout.x[box] - from) * scale;
      const b = left + Math.min(to - from, layout.x[box] + weight[box] - from) * scale;
      if (b <= drawnTo) {
        continue;
      }
      const isMatch = (match !== null && match(key[box])) || isChosen(key[box]);
      const isFaded = muted(key[box]);
      context.fillStyle = isMatch ? paint.match : isFaded ? paint.fadedFill : fill(key[box]);
      context.fillRect(a, top + row * rowPx, Math.max(0.6, b - a - (b - a > 3 ? 0.5 : 0)), rowPx - 1);
      context.fillStyle = isFaded ? paint.fadedText : paint.text;
      writeName(context, b - a >= LEAST_TEXT_PX ? name(box) : '', a, b, top + row * rowPx + rowPx / 2, characterPx);
      drawnTo = Math.floor(a) + 1;
    }
  }
}
