// The tooltip of a frame.

import { el } from './dom.js';
import { KINDS, cssColour } from './colors.js';
import { formatCount, formatHalf, formatPercent, formatPeriod, isClockEvent } from './format.js';
import { functionOf, isInlined } from './tree.js';

/** @import { Model } from './model.js' */
/** @import { FlameData, Graph, Theme } from './types.d.ts' */

/** Elements that describe a node of a drawn graph; `drawing` is what FlameGraph shows, `topDown`
 *  whether it is the tree from the root down.
 *  @param {Model} model
 *  @param {FlameData} drawing
 *  @param {number} node
 *  @param {{ theme: Theme, topDown: boolean }} options */
export function frameTip(model, drawing, node, { theme, topDown }) {
  const { graph } = drawing;
  const key = graph.key[node];
  return [
    el('div', { class: 'tip-name' }, model.nodeName(graph, node)),
    ...(key >= 0 ? [tipCode(model, key, topDown ? node : null, theme)] : []),
    tipShares(model, drawing, node, topDown),
    tipWeights(model, graph, node),
  ];
}

/** @param {Model} model
 *  @param {number} key
 *  @param {number | null} node
 *  @param {Theme} theme */
function tipCode(model, key, node, theme) {
  const dso = model.functionDso(functionOf(key));
  const kind = KINDS[model.kindOf(key)];
  const badge = el('span', { class: 'badge' }, isInlined(key) ? 'inlined' : kind.label.toLowerCase());
  badge.style.background = cssColour(kind[theme]);
  const lines = key === model.foldedKey ? [] : model.sourceLines(key, node);
  /** @param {{ line: string, share: number }} place */
  const line = (place) => el(
    'div',
    { class: 'tip-line' },
    place.line,
    place.share < 1 ? el('small', {}, ` ${formatPercent(place.share)}`) : null,
  );
  return el('div', { class: 'tip-code' }, el('div', {}, badge, ` ${dso.path}`), ...lines.map(line));
}

/** @param {Model} model
 *  @param {Pick<FlameData, 'graph' | 'weight' | 'zoom' | 'up'>} drawing
 *  @param {number} node
 *  @param {boolean} topDown */
function tipShares(model, { graph, weight, zoom, up }, node, topDown) {
  const shares = [];
  if (zoom > 0 && weight[zoom] > 0 && graph.depth[node] >= graph.depth[zoom]) {
    shares.push(`${formatPercent(weight[node] / weight[zoom])} of zoomed`);
  }
  const parent = graph.parent[node];
  if (parent >= 0 && parent !== zoom && weight[parent] > 0) {
    shares.push(`${formatPercent(weight[node] / weight[parent])} of frame ${up ? 'below' : 'above'}`);
  }
  // In order of time a frame is a part of a node.
  const half = topDown && !graph.inTime && node > 0 ? formatHalf(model.nodeHalf(node)) : '';
  const all = `${formatPercent(model.total > 0 ? weight[node] / model.total : 0)}${half === '' ? '' : ` ${half}`} of all`;
  return el('div', { class: 'tip-shares' }, el('b', {}, all), ...shares.map((share) => ` · ${share}`));
}

/** @param {Model} model
 *  @param {Graph} graph
 *  @param {number} node */
function tipWeights(model, graph, node) {
  const event = model.event.name;
  /** @param {string} label
   *  @param {number} samples
   *  @param {number} period */
  const row = (label, samples, period) => [
    el('span', { class: 'tip-label' }, label),
    el('span', {}, formatCount(samples)),
    el('span', {}, formatPeriod(event, period)),
    el('span', {}, formatPercent((model.byPeriod ? period : samples) / model.total)),
  ];
  // From the leaf up, a frame has the weight of the stacks through it; none is its own.
  const { selfSamples, selfPeriod } = graph;
  const self = selfSamples === null || selfPeriod === null ? [] : row('self', selfSamples[node], selfPeriod[node]);
  const head = ['', 'samples', isClockEvent(event) ? 'time' : 'period', '%'];
  return el(
    'div',
    { class: 'tip-weights' },
    ...head.map((text) => el('span', { class: 'tip-head' }, text)),
    ...self,
    ...row(selfSamples === null ? 'weight' : 'total', graph.totalSamples[node], graph.totalPeriod[node]),
  );
}
