// The comparison of two sides: a flame graph of both, and the table of functions with verdicts.

import { byId, choiceButton, el, press, setStatus, swatch } from './dom.js';
import { formatPercent, plural } from './format.js';
import { cssColour, themePaint } from './colors.js';
import { FlameGraph } from './flame.js';
import { layoutGraph } from './layout.js';
import { ALL, findPath, functionOf, pathTo } from './tree.js';
import { Tooltip } from './popups.js';
import { RowList } from './rowlist.js';
import {
  changeColour, changeText, comparedEvent, comparedRows, isUndecided, judgedOf, partRows, relativeChange, sideShares, valueText, verdictShort, verdictText,
} from './compare.js';

/** @import { Page, Render } from './page.d.ts' */
/** @import { Comparison, ComparisonEvent, ComparisonRow, Difference, LaidOut, SampleChoice } from './types.d.ts' */

const TABLE_HEAD = [['Function', 'name'], ['Binary', 'binary'], ['Before', 'value'], ['After', 'value'], ['Change', 'value'], ['Verdict', 'verdict']];

const PART_NOTE = 'Values are shares of the selected part. A part has no ± and no verdicts: whit diff --comms NAME judges a command.';

/** A picture of one event and selection, by the key of both.
 *  @typedef {LaidOut & { key: string, event: ComparisonEvent, selection: SampleChoice, shares: ReturnType<typeof sideShares> }} Drawn */

export class CompareView {
  /** @type {Drawn | null} */
  drawn = null;
  /** @type {ComparisonRow[]} Rows of the table. */
  rows = [];
  /** @type {{ self?: ComparisonRow[], total?: ComparisonRow[] }} Those of a part, by value. */
  partRows = {};
  /** @type {'self' | 'total'} The value of the table. */
  what = 'self';
  chosen = -1;

  hasOwnWeights = true;

  /** @param {Page} page
   *  @param {Comparison} compare */
  constructor(page, compare) {
    this.page = page;
    this.compare = compare;
    this.model = page.model;
    this.filter = '';
    this.isPart = false;
    this.tooltip = new Tooltip((/** @type {number} */ node) => this.#tip(node));
    this.graph = new FlameGraph(byId('compare-flame'), {
      zoom: (node) => this.#zoomTo(node),
      open: () => {},
      hover: (node, event) => this.tooltip.follow(event, `${node} ${page.state.event}`, node < 0 ? null : node),
      menu: () => {},
      current: (node) => setStatus(this.#summary(node)),
      key: (event) => this.#graphKey(event),
    });
    const head = TABLE_HEAD.map(([label, kind]) => el('span', { role: 'columnheader', class: `compare-${kind}` }, label));
    this.table = new RowList(byId('compare-table'), 'Functions by difference', {
      current: (index) => this.#choose(this.rows[index]),
      key: (event, index) => this.#tableKey(event, index),
    }, head);
    this.buttons = { self: choiceButton('compare=self'), total: choiceButton('compare=total') };
    for (const what of /** @type {const} */ (['self', 'total'])) {
      this.buttons[what].addEventListener('click', () => {
        this.what = what;
        this.#showTable();
      });
    }
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

  /** Draws both for the event and the selected threads and commands.
   *  @param {Render} render */
  show({ animate }) {
    const { event, pid, tid, comm } = this.page.state;
    this.tooltip.hide();
    const known = comparedEvent(this.compare, event);
    const key = JSON.stringify([this.compare.events.indexOf(known), pid, tid, comm]);
    if (this.drawn?.key !== key) {
      this.#renew(key, known);
    }
    this.#showGraph(animate);
    this.#showTable();
    this.#showLegend();
  }

  /** Computes the picture of an event and the selection.
   *  @param {string} key
   *  @param {ComparisonEvent} event */
  #renew(key, event) {
    const { base, foldedKey, profile, selection } = this.model;
    this.isPart = selection.threads !== null || selection.comms !== null;
    this.partRows = {};
    this.chosen = -1;
    this.table.current = -1;
    const wholes = this.isPart ? null : event.sides.map((side) => profile.events[side] ?? null);
    const shares = sideShares(base, profile.rows, event.sides, selection, wholes);
    const { weight } = shares;
    const graph = { ...base, totalSamples: weight, totalPeriod: weight, selfSamples: null, selfPeriod: null };
    this.drawn = { key, event, selection, shares, graph, weight, layout: layoutGraph(graph, weight, foldedKey) };
    byId('compare-notes').replaceChildren(...this.#notes().map((note) => el('p', {}, note)));
  }

  /** The drawn picture; there is none before the first `show`. */
  get #shown() {
    if (this.drawn === null) {
      throw new Error('no comparison is shown');
    }
    return this.drawn;
  }

  #showLegend() {
    const { theme } = this.page;
    /** @param {number} change
     *  @param {string} text */
    const entry = (change, text) => el('span', {}, swatch(cssColour(changeColour(change, theme.name))), text);
    const hatch = el('span', {}, el('span', { class: 'swatch hatch', 'aria-hidden': 'true' }), 'cannot be told');
    byId('compare-legend').replaceChildren(
      entry(-0.5, 'less after'),
      entry(0, 'same'),
      entry(0.5, 'more after'),
      ...(this.isPart ? [] : [hatch]),
    );
  }

  /** Rows of the table: those of the comparison, or of a part of the samples. */
  #allRows() {
    if (!this.isPart) {
      return this.#shown.event.rows;
    }
    const { model, what } = this;
    /** @param {number} fn */
    const describe = (fn) => ({ name: model.functionName(fn), binary: model.functionDso(fn).name });
    const { event, selection } = this.#shown;
    this.partRows[what] ??= partRows(model.base, model.profile.rows, event.sides, selection, what, model.functionCount, describe);
    return this.partRows[what];
  }

  #showGraph(animate = false) {
    const { graph, layout, weight, shares } = this.#shown;
    const { state, theme: { name: theme }, colouring } = this.page;
    const paint = themePaint(theme);
    const chosen = this.chosen >= 0 ? (/** @type {number} */ key) => functionOf(key) === this.chosen : colouring.match();
    this.graph.show({
      graph,
      layout,
      weight,
      zoom: findPath(graph, state.zoom),
      up: state.shape === 'flame',
      base: 0,
      nothing: 'no samples',
      paint,
      fill: () => paint.root,
      fillNode: (node) => cssColour(changeColour(relativeChange(shares.before[node], shares.after[node]), theme)),
      hatched: (node) => !this.isPart && isUndecided(this.#shown.event, graph.key[node]),
      name: (node) => this.#name(node),
      match: null,
      outlined: chosen,
      muted: () => false,
    }, { animate });
  }

  /** @param {number} node */
  #name(node) {
    return this.model.nodeName(this.#shown.graph, node);
  }

  /** @param {number} node */
  #summary(node) {
    const { before, after } = this.#shown.shares;
    const judged = judgedOf(this.#statistics(this.#shown.graph.key[node]));
    const verdict = judged === null ? '' : `; the function: ${verdictText(judged, this.compare.per)}`;
    return `${this.#name(node)}: ${formatPercent(before[node])} before, ${formatPercent(after[node])} after${verdict}`;
  }

  /** The statistics of a frame's function; a part of the samples has none.
   *  @param {number} key */
  #statistics(key) {
    return key === ALL || this.isPart ? undefined : this.#shown.event.byFunction.get(functionOf(key));
  }

  /** Elements of the tooltip of a frame.
   *  @param {number} node */
  #tip(node) {
    const { graph, shares } = this.#shown;
    const key = graph.key[node];
    const row = this.#statistics(key);
    /** @param {string} text */
    const line = (text) => el('div', {}, text);
    /** @param {string} label
     *  @param {Difference | null | undefined} judged */
    const part = (label, judged) => (judged === null || judged === undefined ? [] : [
      el('div', { class: 'tip-part' }, label),
      line(`before ${valueText(judged.before, judged.before_plus_minus, this.compare.per)} · after ${valueText(judged.after, judged.after_plus_minus, this.compare.per)}`),
      line(`${changeText(judged, this.compare.per)}: ${verdictText(judged, this.compare.per)}`),
    ]);
    return [
      el('div', { class: 'tip-name' }, this.#name(node)),
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
    const { tests, leftOff } = this.#shown.event;
    const left = leftOff > 0 ? `; ${plural(leftOff, 'further function')} left off: a page compares ${this.compare.maxRows}` : '';
    byId('compare-count').textContent = this.isPart ? plural(this.rows.length, 'function')
      : `${plural(this.rows.length, 'function')}, ${plural(tests, 'test')} judged together${left}`;
  }

  /** @param {ComparisonRow} row */
  #row(row) {
    const per = this.#per();
    const judged = this.what === 'total' ? row.total ?? row.self : row.self;
    /** @param {string} kind
     *  @param {string} text */
    const cell = (kind, text, title = text) => el('span', { role: 'gridcell', class: `compare-${kind}`, title }, text);
    /** @param {'name' | 'binary'} part */
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

  /** Outlines the frames of a row's function.
   *  @param {ComparisonRow} row */
  #choose(row) {
    this.chosen = row.fn;
    this.#showGraph();
    this.table.render();
    const judged = this.what === 'total' ? row.total ?? row.self : row.self;
    setStatus(`${row.name}: ${changeText(judged, this.#per())}, ${verdictText(judged, this.#per())}`);
  }

  /** @param {KeyboardEvent} event
   *  @param {number} index */
  #tableKey(event, index) {
    if (event.key === 'Enter' && index >= 0 && this.rows[index].fn >= 0) {
      event.preventDefault();
      this.page.actions.find(this.rows[index].fn);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      this.chosen = -1;
      this.#showGraph();
      this.table.render();
    }
  }

  /** @param {number} node */
  #zoomTo(node) {
    this.page.go({ zoom: pathTo(this.#shown.graph, node) }, { animate: true });
  }

  /** @param {KeyboardEvent} event */
  #graphKey(event) {
    const { graph } = this.#shown;
    const zoom = findPath(graph, this.page.state.zoom);
    const to = { Escape: 0, Home: 0, Backspace: Math.max(0, graph.parent[zoom]) }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.#zoomTo(to);
    }
  }
}
