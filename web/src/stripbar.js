// The strip of time with its choices, its legend and the range that it selects; and the wheel, which changes the range from
// other pictures of time as well.

import { MAX_COLOURED_BINARIES, binaryColour, cssColour, lossColour, themePaint } from './colors.js';
import { fillChoice, renderSeries } from './controls.js';
import { byId } from './dom.js';
import { formatDuration, isWallEvent } from './format.js';
import { Strip, rangeByWheel } from './strip.js';
import { stripSeries } from './stripdata.js';

/** @import { Page } from './page.d.ts' */
/** @import { Moments, StripSeries, Theme, TimeRange, Turn } from './types.d.ts' */

/** The wheel rests after that: views that take longer follow. */
const WHEEL_RESTS_MS = 150;
/** Half of the pieces that the time of a thread is parted into at most (crates/read/whit-page/src/wall.rs). */
const WALL_COLUMNS = 512;
const HEAT_COLOURS = { light: '#b5451b', dark: '#ff9166' };

/** Colours of the series; the joined ones are grey.
 *  @param {number} rank
 *  @param {StripSeries} series
 *  @param {Theme} theme */
function seriesColour(rank, { labels, shares }, theme) {
  return binaryColour(rank < shares.length ? rank : labels.length + MAX_COLOURED_BINARIES, theme);
}

export class StripBar {
  /** @type {{ key: string, series: StripSeries } | null} */
  held = null;
  /** @type {TimeRange | null} The range that the wheel has made. */
  wheelRange = null;
  /** @type {number | undefined} The frame that draws it. */
  wheelFrame;
  /** @type {number | undefined} */
  wheelTimer;

  /** @param {Page} page
   *  @param {Moments} moments */
  constructor(page, moments) {
    this.page = page;
    this.moments = moments;
    const { groupings } = page.model;
    const labels = groupings.map(({ id, label }) => ({ value: id, text: label }));
    fillChoice(byId('strip-by'), labels.length > 0 ? labels : [{ value: 'process', text: 'process' }]);
    byId('strip-by').addEventListener('change', () => page.go({ by: byId('strip-by').value }));
    byId('strip').hidden = false;
    this.strip = new Strip(byId('strip-plot'), moments, {
      select: (range, live) => this.#select(range, live),
      wheel: (event, ns) => this.wheel(event, ns),
      hover: (text) => {
        byId('strip-hover').textContent = text;
      },
      resized: () => this.show(),
    });
    byId('strip-clear').addEventListener('click', () => page.go({ range: null }));
  }

  /** The groups in the strip: those of the address, where this page has them. */
  #by() {
    const { model: { groupings }, state } = this.page;
    return groupings.some(({ id }) => id === state.by) ? state.by : groupings[0]?.id ?? 'process';
  }

  show() {
    const { state, theme } = this.page;
    byId('strip-by').value = this.#by();
    const data = this.#series();
    const series = data.labels.map((label, rank) => ({ label, colour: cssColour(seriesColour(rank, data, theme.name)) }));
    this.strip.show({
      ...data,
      series,
      range: state.range,
      mode: state.strip,
      paint: themePaint(theme.name),
      heatColour: HEAT_COLOURS[theme.name],
      lossColour: lossColour(theme.name),
    });
    renderSeries(byId('strip-legend'), state.strip === 'area' ? series : []);
    this.showRange();
  }

  /** The series of the selection, computed anew where it changed. */
  #series() {
    const { moments, page: { model }, strip } = this;
    const by = this.#by();
    // A wait lasts over many columns, in pieces that begin in one of them.
    const columns = isWallEvent(model.event.name) ? strip.columns(Infinity, WALL_COLUMNS) : strip.columns(model.event.samples);
    const key = JSON.stringify([model.filterKey, by, columns]);
    if (this.held?.key !== key) {
      const split = by === 'cpu' ? model.splitByCpu() : { rows: model.profile.rows, moments };
      const { selection, byPeriod, event } = model;
      this.held = { key, series: stripSeries(model.profile, { ...split, selection, byPeriod, event }, by, columns) };
    }
    return this.held.series;
  }

  /** Draws the range alone. */
  showRange() {
    const { range } = this.page.state;
    this.strip.showRange(range);
    byId('strip-clear').hidden = range === null;
    byId('strip-range').textContent = range === null ? ''
      : `${formatDuration(range[0])} – ${formatDuration(range[1])} (${formatDuration(range[1] - range[0])})`;
  }

  /** @param {TimeRange | null} range
   *  @param {boolean} live */
  #select(range, live) {
    const { page } = this;
    page.go({ range, ...(page.state.order === 'time' ? { zoom: [] } : {}) }, { live });
  }

  /** Takes a turn of the wheel at a moment; false where it chooses no range.
   *  @param {Turn} turn
   *  @param {number} ns */
  wheel(turn, ns) {
    const { page: { state }, moments: { spanNs, bucketNs } } = this;
    const now = this.wheelFrame === undefined ? state.range : this.wheelRange;
    const range = rangeByWheel(turn, ns, now, spanNs, bucketNs);
    if (range === undefined) {
      return false;
    }
    // One change for each frame drawn.
    this.wheelRange = range;
    this.wheelFrame ??= requestAnimationFrame(() => {
      this.wheelFrame = undefined;
      this.#select(this.wheelRange, true);
    });
    clearTimeout(this.wheelTimer);
    this.wheelTimer = setTimeout(() => this.#select(this.page.state.range, false), WHEEL_RESTS_MS);
    return true;
  }
}
