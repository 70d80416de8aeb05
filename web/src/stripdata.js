// The content of the strip of time: series over time, axes, the cells of the heat map.

import { formatDuration, formatPeriod, formatShort, isClockEvent, isWallEvent } from './format.js';
import { groupRows } from './grouping.js';
import { eachStep, seriesOver } from './moments.js';
import { rowFilter } from './tree.js';

/** @import { HeatPlan, Moments, PageEvent, Profile, Rows, SampleChoice, StripSeries } from './types.d.ts' */

/** Series that a strip tells apart; the lighter ones are joined. */
const MAX_SERIES = 8;
/** Steps of the vertical axis, which is low. */
const AXIS_STEPS = 2;
/** An axis of CPUs goes up to those of the machine where the busiest column has this part of them. */
const LEAST_PART = 8;
const MAX_HEAT_COLUMNS = 240;
const MAX_HEAT_ROWS = 50;

/** Steps of an axis from 0 to `most`: 1, 2 or 5 times a power of ten, some `wanted` of them; `top` is the first
 *  step that is not below `most`.
 *  @param {number} most
 *  @param {number} wanted */
export function axisSteps(most, wanted = 3) {
  if (!(most > 0)) {
    return { top: 0, step: 0 };
  }
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough * 0.999) ?? 10 * power;
  return { top: Math.ceil((most / step) * 0.999999) * step, step };
}

/** The axis of a strip that counts CPUs: up to those of the machine, so that its height says how busy the machine was.
 *  Where the busiest column takes less than an eighth of them, the axis ends above that, since nothing would be seen.
 *  @param {number} most
 *  @param {number | null} cpus */
export function cpuAxis(most, cpus) {
  return cpus === null || most > cpus * 1.001 || most * LEAST_PART < cpus ? axisSteps(most, AXIS_STEPS) : { top: cpus, step: Math.max(1, axisSteps(cpus, AXIS_STEPS).step) };
}

/** The largest sum of a column.
 *  @param {Float64Array} sums
 *  @param {number} seriesCount */
export function maxOfColumns(sums, seriesCount) {
  let most = 0;
  for (let at = 0; at < sums.length; at += seriesCount) {
    let sum = 0;
    for (let i = at; i < at + seriesCount; i++) {
      sum += sums[i];
    }
    most = Math.max(most, sum);
  }
  return most;
}

/** Shrinks columns with more weight than the machine has time in them. A sample of a clock stands for the time since the
 *  sample before it. A part of that time lies in columns before its own.
 *  @param {Float64Array} sums
 *  @param {number} seriesCount
 *  @param {number} most */
export function boundColumns(sums, seriesCount, most) {
  for (let at = 0; at < sums.length; at += seriesCount) {
    const column = sums.subarray(at, at + seriesCount);
    const sum = column.reduce((total, value) => total + value, 0);
    if (sum > most) {
      column.forEach((value, i) => {
        column[i] = value * (most / sum);
      });
    }
  }
}

/** Series of the selection by groups, the heaviest first, for `columns` columns of all time.
 *  @param {Profile} profile
 *  @param {{ rows: Rows, moments: Moments, selection: SampleChoice, byPeriod: boolean, event: PageEvent }} from
 *  @param {string} by
 *  @param {number} columns
 *  @returns {StripSeries} */
export function stripSeries(profile, { rows, moments, selection, byPeriod, event }, by, columns) {
  const { groupOf, names } = groupRows(profile, rows, by);
  const weight = byPeriod ? moments.period : moments.samples;
  const byGroup = new Float64Array(names.length);
  const selected = rowFilter(rows, selection);
  const shown = Uint8Array.from(rows.node, (_, row) => (selected(row) ? 1 : 0));
  for (let i = 0; i < moments.count; i++) {
    byGroup[groupOf[moments.row[i]]] += shown[moments.row[i]] === 1 ? weight[i] : 0;
  }
  const ranked = [...byGroup.keys()].filter((group) => byGroup[group] > 0).sort((a, b) => byGroup[b] - byGroup[a]);
  const own = ranked.slice(0, ranked.length > MAX_SERIES ? MAX_SERIES - 1 : MAX_SERIES);
  const labels = own.map((group) => names[group]);
  if (ranked.length > own.length) {
    labels.push(`${ranked.length - own.length} others`);
  }
  const place = new Int32Array(names.length).fill(own.length);
  own.forEach((group, rank) => {
    place[group] = rank;
  });
  const seriesOf = groupOf.map((group, row) => (shown[row] === 1 ? place[group] : -1));
  const sums = seriesOver(moments, seriesOf, Math.max(1, labels.length), columns, weight, [0, moments.buckets]);
  const columnNs = (moments.buckets * moments.bucketNs) / columns;
  const isTime = byPeriod && isClockEvent(event.name);
  const { cpusAvailable = null, cpusOnline = null } = profile.recording ?? {};
  const isCpuTime = isTime && !isWallEvent(event.name);
  if (isCpuTime && cpusAvailable !== null) {
    boundColumns(sums, Math.max(1, labels.length), cpusAvailable * columnNs);
  }
  return {
    labels: labels.length > 0 ? labels : [''],
    shares: own.map((group) => byGroup[group]),
    sums,
    columns,
    seriesOf,
    weight,
    // A clock's period is time on CPUs: their number. Others are rates.
    scale: isTime ? 1 / columnNs : 1e9 / columnNs,
    cpus: isCpuTime ? cpusOnline : null,
    unit: isTime ? (value) => `${Number(value.toPrecision(3))} ${isWallEvent(event.name) ? 'threads' : 'CPUs'}`
      : byPeriod ? (value) => `${formatPeriod(event.name, value)}/s` : (value) => `${formatShort(value)}/s`,
  };
}

/** Time and weights of a column, in words.
 *  @param {Pick<StripSeries, 'sums' | 'columns' | 'scale' | 'unit'> & { series: { label: string }[] }} data
 *  @param {number} ns
 *  @param {number} spanNs */
export function columnText({ series, sums, columns, scale, unit }, ns, spanNs) {
  const column = Math.min(columns - 1, Math.floor((ns / Math.max(1, spanNs)) * columns));
  const values = series.map(({ label }, i) => ({ label, value: sums[column * series.length + i] * scale }));
  const total = values.reduce((sum, { value }) => sum + value, 0);
  const parts = values.filter(({ value }) => value > 0).sort((a, b) => b.value - a.value).slice(0, 3);
  return `${formatDuration(ns)}: ${unit(total)}${parts.map(({ label, value }) => ` · ${label} ${unit(value)}`).join('')}`;
}

/** Columns and rows of the heat map: a column is a round piece of time, and its rows are parts of that.
 *  @param {Pick<Moments, 'spanNs' | 'bucketNs'>} moments
 *  @returns {HeatPlan} */
export function heatPlan({ spanNs, bucketNs }) {
  const least = Math.max(spanNs / MAX_HEAT_COLUMNS, bucketNs, 1);
  const power = 10 ** Math.floor(Math.log10(least));
  const lengthNs = [1, 2, 5, 10].map((factor) => factor * power).find((length) => length >= least * 0.999999) ?? 10 * power;
  const rows = Math.max(1, Math.min(MAX_HEAT_ROWS, Math.floor(lengthNs / bucketNs)));
  return { lengthNs, rows, columns: Math.max(1, Math.ceil((spanNs + 1) / lengthNs)) };
}

/** Weights of the cells, column by column.
 *  @param {Moments} moments
 *  @param {HeatPlan} plan
 *  @param {Pick<StripSeries, 'seriesOf' | 'weight'>} series */
export function heatCells(moments, { lengthNs, rows, columns }, { seriesOf, weight }) {
  const cells = new Float64Array(rows * columns);
  /** @param {number} bucket */
  const cellOf = (bucket) => {
    const ns = bucket * moments.bucketNs;
    const column = Math.min(columns - 1, Math.floor(ns / lengthNs));
    return column * rows + Math.min(rows - 1, Math.floor(((ns - column * lengthNs) / lengthNs) * rows));
  };
  eachStep(moments, [0, moments.buckets], cellOf, (cell, begin, end) => {
    for (let i = begin; i < end; i++) {
      cells[cell] += seriesOf[moments.row[i]] >= 0 ? weight[i] : 0;
    }
  });
  return cells;
}
