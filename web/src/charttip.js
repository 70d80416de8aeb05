// A box of the stack chart in words.

import { cssColour, KINDS } from './colors.js';
import { el } from './dom.js';
import { formatDuration, formatMoment, formatPeriod, plural } from './format.js';
import { functionOf, isInlined } from './tree.js';

/** @import { Model } from './model.js' */
/** @import { ChartGraph, Theme, TimeRange } from './types.d.ts' */

/** Moments of the time in view that words tell apart. */
const MOMENTS = 1000;

/** When a box begins; `shown` is the time in view.
 *  @param {ChartGraph} chart
 *  @param {number} box
 *  @param {TimeRange} shown */
function beginText({ layout, weight }, box, [from, to]) {
  return `from ${formatMoment(layout.x[box], Math.min(weight[box] / 10, (to - from) / MOMENTS))}`;
}

/** One line.
 *  @param {Model} model
 *  @param {ChartGraph} chart
 *  @param {number} box
 *  @param {TimeRange} shown */
export function boxText(model, chart, box, shown) {
  const { graph, weight } = chart;
  const samples = plural(graph.totalSamples[box], 'sample');
  return `${model.nodeName(graph, box)}: ${formatDuration(weight[box])} ${beginText(chart, box, shown)}, ${samples}`;
}

/** Elements of a tooltip.
 *  @param {Model} model
 *  @param {ChartGraph & { distanceNs: number }} chart
 *  @param {number} box
 *  @param {TimeRange} shown
 *  @param {Theme} theme */
export function boxTip(model, chart, box, shown, theme) {
  const { graph, weight, distanceNs } = chart;
  const key = graph.key[box];
  const kind = KINDS[model.kindOf(key)];
  const badge = el('span', { class: 'badge' }, isInlined(key) ? 'inlined' : kind.label.toLowerCase());
  badge.style.background = cssColour(kind[theme]);
  const samples = graph.totalSamples[box];
  const period = graph.totalPeriod[box] > 0 ? ` · ${formatPeriod(model.event.name, graph.totalPeriod[box])}` : '';
  return [
    el('div', { class: 'tip-name' }, model.nodeName(graph, box)),
    el('div', { class: 'tip-code' }, badge, ` ${model.functionDso(functionOf(key)).path}`),
    el('div', { class: 'tip-shares' }, el('b', {}, formatDuration(weight[box])), ` ${beginText(chart, box, shown)}`),
    ...(samples > 0 ? [el('div', {}, `${plural(samples, 'sample')}${period}; one stands for ${formatDuration(distanceNs)}`)] : []),
  ];
}
