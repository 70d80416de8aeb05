// The view of functions: rows of the table, and its filter.

import { cssColour } from './colors.js';
import { categoryColour } from './controls.js';
import { byId, onTyping, selectText } from './dom.js';
import { formatCount, plural } from './format.js';
import { FunctionTable } from './table.js';

/** @import { Page } from './page.d.ts' */
/** @import { FunctionRow, Keys, State, Tree } from './types.d.ts' */

export class FunctionsView {
  /** @type {{ tree: Tree, keys: Set<number> } | null} Keys of a tree. */
  called = null;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    const { actions } = page;
    this.withCode = new Set((page.code?.functions ?? []).map((entry) => entry.function));
    this.table = new FunctionTable(byId('function-table'), {
      sort: (id) => this.#sortBy(id),
      find: (fn) => actions.find(fn),
      open: (fn) => actions.open(fn),
      code: actions.openCode,
      menu: (fn, x, y) => actions.menu(fn, [], x, y),
    });
    onTyping(byId('filter'), (filter) => page.go({ filter }));
  }

  show() {
    const { model, state } = this.page;
    const sums = model.functionSums();
    const [self, total] = [model.selfOf(sums), model.weightsOf(sums)];
    const rows = [];
    for (let fn = 0; fn < model.realNames.length; fn++) {
      if (total[fn] > 0) {
        rows.push(this.#row(fn, self[fn], total[fn]));
      }
    }
    if (document.activeElement !== byId('filter')) {
      byId('filter').value = state.filter;
    }
    const { sort, ascending, filter, fn } = state;
    const shown = this.table.show(rows, { sort, ascending, filter, format: (weight) => model.formatWeight(weight), chosen: fn });
    byId('function-count').textContent = shown === rows.length
      ? plural(rows.length, 'function') : `${formatCount(shown)} of ${plural(rows.length, 'function')}`;
  }

  /** @returns {Keys} */
  keys() {
    return { '/': () => selectText(byId('filter')) };
  }

  intervals() {
    return { steps: this.page.model.intervalSteps(), show: this.table.showIntervals.bind(this.table) };
  }

  /** @param {State['sort']} id */
  #sortBy(id) {
    const { state } = this.page;
    const isText = id === 'name' || id === 'binary';
    this.page.go({ sort: id, ascending: state.sort === id ? !state.ascending : isText });
  }

  /** @param {number} fn
   *  @param {number} self
   *  @param {number} total
   *  @returns {FunctionRow} */
  #row(fn, self, total) {
    const { model, state, theme } = this.page;
    const dso = model.functionDso(fn);
    return {
      fn,
      name: model.functionName(fn),
      binary: dso.name,
      binaryPath: dso.path,
      hasCode: this.withCode.has(fn),
      known: fn >= model.functionCount || model.profile.functions.known[fn] === 1,
      self,
      total,
      selfShare: self / model.total,
      totalShare: total / model.total,
      colour: cssColour(categoryColour(this.#categoryOf(fn), state.colour, theme.name)),
    };
  }

  /** Category of a function: as called where it is, else as inlined.
   *  @param {number} fn */
  #categoryOf(fn) {
    const { model, state } = this.page;
    if (this.called?.tree !== model.tree) {
      this.called = { tree: model.tree, keys: new Set(model.tree.key) };
    }
    return model.category(this.called.keys.has(fn * 2) ? fn * 2 : fn * 2 + 1, state.colour);
  }
}
