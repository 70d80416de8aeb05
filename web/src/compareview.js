// The comparison of two sides: a flame graph of both, and the table of functions with verdicts.

import { buttons, byId, el, press } from './dom.js';
import { formatPercent, plural } from './format.js';
import { cssColour } from './colors.js';
import { FlameGraph } from './flame.js';
import { layoutGraph } from './layout.js';
import { ALL, findPath, functionOf, pathTo } from './tree.js';
import { RowList } from './rowlist.js';
import {
  cannotBeTold, changeColour, changeText, comparedEvent, comparedRows, judgedOf, partRows, relativeChange, sideShares, valueText, verdictShort, verdictText,
} from './compare.js';

/** @import { Graph, Rows } from './types.d.ts' */

const TABLE_HEAD = [['Function', 'name'], ['Binary', 'binary'], ['Before', 'value'], ['After', 'value'], ['Change', 'value'], ['Verdict', 'verdict']];

const PART_NOTE = 'Values are shares of the selected part. A part has no ± and no verdicts: whit diff --comms NAME judges a command.';

export class CompareView {
  /** @type {any} The compared event. */
  event = null;
  /** @type {any} Masks of the selected threads and commands. */
  selection = null;
  /** @type {any} Graph, shares, weight and layout of the flame graph. */
  data = null;
  /** @type {any} Zoom, shape, theme, paint and matches of the picture. */
  drawn = null;
  /** @type {any[]} Rows of the table. */
  rows = [];
  /** @type {Record<string, any[]>} Those of a part, by value. */
  partRows = {};
  chosen = -1;

  /** `on` has zoom(path), hover(node or -1, event), status(text), search(fn), key(event, node). */
  constructor(compare, model, on) {
    this.compare = compare;
    this.model = model;
    this.on = on;
    this.what = 'self';
    this.filter = '';
    this.shown = '';
    this.isPart = false;
    this.graph = new FlameGraph(byId('compare-flame'), {
      zoom: (node) => on.zoom(pathTo(this.data.graph, node)),
      open: () => {},
      hover: (node, event) => on.hover(node, event),
      menu: () => {},
      current: (node) => on.status(this.summary(node)),
      key: (event) => this.#graphKey(event),
    });
    const head = TABLE_HEAD.map(([label, kind]) => el('span', { role: 'columnheader', class: `compare-${kind}` }, label));
    this.table = new RowList(byId('compare-table'), 'Functions by difference', {
      current: (index) => this.#choose(this.rows[index]),
      key: (event, index) => this.#tableKey(event, index),
    }, head);
    this.buttons = Object.fromEntries(buttons('[data-compare]').map((choice) => [choice.dataset.compare ?? '', choice]));
    Object.entries(this.buttons).forEach(([what, choice]) => choice.addEventListener('click', () => {
      this.what = what;
      this.#showTable();
    }));
    byId('compare-filter').addEventListener('input', () => {
      this.filter = byId('compare-filter').value;
      this.#showTable();
    });
  }

  #notes() {
    const { before, after, per, units, perEvent, commands, narrowed } = this.compare;
    const values = {
      share: 'Values are shares of all samples. They cannot show that everything became slower or faster alike.',
      units: `Values are event counts per unit of work: ${units?.join(' before, ')} after in each recording.`,
      event: `Values are event counts per ${perEvent}.`,
    }[per];
    return [
      `Before: ${before.join(', ')}. After: ${after.join(', ')}. ${this.isPart ? PART_NOTE : values}`,
      ...(commands.length > 0 ? [`Only samples of ${commands.join(', ')} are on this page; shares are of all samples.`] : []),
      ...(narrowed.length > 0 ? [`Only ${narrowed.join(', ')} has statistics; the graph shows all stacks.`] : []),
    ];
  }

  /** Draws both for the event and the selected threads and commands; `zoom` is a path, `match` marks functions. */
  show({ event, selection, zoom, shape, theme, paint, match, animate }) {
    const known = comparedEvent(this.compare, event);
    const shown = JSON.stringify([this.compare.events.indexOf(known), selection.key]);
    if (this.shown !== shown) {
      this.shown = shown;
      this.event = known;
      this.selection = selection;
      this.isPart = selection.threads !== null || selection.comms !== null;
      this.partRows = {};
      this.chosen = -1;
      this.table.current = -1;
      const { base, profile } = this.model;
      const wholes = this.isPart ? null : known.sides.map((side) => profile.events[side] ?? null);
      const shares = sideShares(base, profile.rows, known.sides, selection, wholes);
      const graph = { ...base, totalSamples: shares.weight, totalPeriod: shares.weight };
      this.data = { graph, shares, weight: shares.weight, layout: layoutGraph(graph, shares.weight, this.model.foldedKey) };
      byId('compare-notes').replaceChildren(...this.#notes().map((note) => el('p', {}, note)));
    }
    this.drawn = { zoom, shape, theme, paint, match };
    this.#showGraph(animate);
    this.#showTable();
  }

  /** Rows of the table: those of the comparison, or of a part of the samples. */
  #allRows() {
    if (!this.isPart) {
      return this.event.rows;
    }
    const { model, what } = this;
    const describe = (fn) => ({ name: model.functionName(fn), binary: model.functionDso(fn).name });
    this.partRows[what] ??= partRows(model.base, model.profile.rows, this.event.sides, this.selection, what, model.functionCount, describe);
    return this.partRows[what];
  }

  #showGraph(animate = false) {
    const { graph, layout, weight, shares } = this.data;
    const { zoom, shape, theme, paint, match } = this.drawn;
    const chosen = this.chosen >= 0 ? (key) => functionOf(key) === this.chosen : match;
    this.graph.show({
      graph,
      layout,
      weight,
      zoom: findPath(graph, zoom),
      up: shape === 'flame',
      base: 0,
      nothing: 'no samples',
      paint,
      fill: () => paint.root,
      fillNode: (node) => cssColour(changeColour(relativeChange(shares.before[node], shares.after[node]), theme)),
      hatched: (node) => !this.isPart && cannotBeTold(this.event, graph.key[node]),
      name: (node) => this.name(node),
      match: null,
      outlined: chosen,
      muted: () => false,
    }, { animate });
  }

  name(node) {
    return graphName(this.model, this.data.graph, node);
  }

  summary(node) {
    const { before, after } = this.data.shares;
    const judged = judgedOf(this.#statistics(this.data.graph.key[node]));
    const verdict = judged === null ? '' : `; the function: ${verdictText(judged, this.compare.per)}`;
    return `${this.name(node)}: ${formatPercent(before[node])} before, ${formatPercent(after[node])} after${verdict}`;
  }

  /** The statistics of a frame's function; a part of the samples has none. */
  #statistics(key) {
    return key === ALL || this.isPart ? undefined : this.event.byFunction.get(functionOf(key));
  }

  /** Elements of the tooltip of a frame. */
  tip(node) {
    const { graph, shares } = this.data;
    const key = graph.key[node];
    const row = this.#statistics(key);
    const line = (text) => el('div', {}, text);
    const part = (label, judged) => (judged === null || judged === undefined ? [] : [
      el('div', { class: 'tip-part' }, label),
      line(`before ${valueText(judged.before, judged.before_plus_minus, this.compare.per)} · after ${valueText(judged.after, judged.after_plus_minus, this.compare.per)}`),
      line(`${changeText(judged, this.compare.per)}: ${verdictText(judged, this.compare.per)}`),
    ]);
    return [
      el('div', { class: 'tip-name' }, this.name(node)),
      ...(row === undefined ? [] : [el('div', { class: 'tip-code' }, row.binary)]),
      line(`this stack: ${formatPercent(shares.before[node])} before, ${formatPercent(shares.after[node])} after`),
      ...part('the function with its callees', row?.total),
      ...part('the function itself', row?.self),
      ...(row?.renamed ? [line(`after: ${row.renamed.name} in ${row.renamed.binary}${row.matched === 'similar' ? ', perhaps' : ''}`)] : []),
      ...(key !== ALL && row === undefined ? [line(this.isPart ? 'a part of the samples has no verdicts' : 'no statistics of this function are on the page')] : []),
    ];
  }

  #showTable() {
    press(this.buttons, this.what);
    this.rows = comparedRows(this.#allRows(), this.filter);
    this.table.show(this.rows.length, (index) => this.#row(this.rows[index]), (index) => (
      this.chosen >= 0 && this.rows[index].fn === this.chosen));
    const { tests, leftOff } = this.event;
    const left = leftOff > 0 ? `; ${plural(leftOff, 'further function')} left off: a page compares ${this.compare.maxRows}` : '';
    byId('compare-count').textContent = this.isPart ? plural(this.rows.length, 'function')
      : `${plural(this.rows.length, 'function')}, ${plural(tests, 'test')} judged together${left}`;
  }

  #row(row) {
    const per = this.#per();
    const judged = this.what === 'total' ? row.total ?? row.self : row.self;
    const cell = (kind, text, title = text) => el('span', { role: 'gridcell', class: `compare-${kind}`, title }, text);
    const both = (part) => (row.renamed === null || row.renamed[part] === row[part] ? row[part] : `${row[part]} → ${row.renamed[part]}`);
    const name = both('name');
    const guess = row.matched === 'similar' ? '\nperhaps the same function: the names are similar' : '';
    const caller = row.caller === null ? '' : `\nmost often called from ${row.caller.name}: ${verdictText(row.caller.total, per)}`;
    const verdict = cell('verdict', verdictShort(judged, per), verdictText(judged, per));
    verdict.dataset.verdict = judged.verdict;
    return [
      cell('name', name, `${name}${guess}${caller}`),
      cell('binary', both('binary')),
      cell('value', valueText(judged.before, judged.before_plus_minus, per)),
      cell('value', valueText(judged.after, judged.after_plus_minus, per)),
      cell('value', changeText(judged, per)),
      verdict,
    ];
  }

  /** The unit of the table's values. */
  #per() {
    return this.isPart ? 'share' : this.compare.per;
  }

  /** Outlines the frames of a row's function. */
  #choose(row) {
    this.chosen = row.fn;
    this.#showGraph();
    this.table.render();
    const judged = this.what === 'total' ? row.total ?? row.self : row.self;
    this.on.status(`${row.name}: ${changeText(judged, this.#per())}, ${verdictText(judged, this.#per())}`);
  }

  #tableKey(event, index) {
    if (event.key === 'Enter' && index >= 0 && this.rows[index].fn >= 0) {
      event.preventDefault();
      this.on.search(this.rows[index].fn);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      this.chosen = -1;
      this.#showGraph();
      this.table.render();
    }
  }

  #graphKey(event) {
    const { graph } = this.data;
    const zoom = findPath(graph, this.drawn.zoom);
    const to = { Escape: 0, Home: 0, Backspace: Math.max(0, graph.parent[zoom]) }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.on.zoom(pathTo(graph, to));
    }
  }
}

function graphName(model, graph, node) {
  return graph.key[node] === ALL ? 'all' : model.nodeName(graph, node);
}
