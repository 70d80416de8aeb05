// The view of callers and callees of one function.

import { button, byId, el } from './dom.js';
import { formatHalf, formatPercent } from './format.js';
import { FrameGraph } from './frames.js';
import { findPath } from './tree.js';

/** @import { Page, Render } from './page.d.ts' */
/** @import { Intervals, Keys } from './types.d.ts' */

export class SandwichView {
  isOfFunction = true;
  /** @type {number | null} The function in the middle. */
  centerFn = null;

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.callers = new FrameGraph(page, 'callers', 'callers');
    this.callees = new FrameGraph(page, 'callees', 'callees');
  }

  /** @param {Render} render */
  show({ animate }) {
    const { model, state } = this.page;
    const fn = state.fn !== null && state.fn < model.realNames.length ? state.fn : this.#hottest();
    byId('sandwich').hidden = fn === null;
    byId('sandwich-empty').hidden = fn !== null;
    this.centerFn = fn;
    if (fn === null) {
      return;
    }
    this.#renderCenter(fn);
    const [callers, callees] = [model.callers(fn, state.callers), model.callees(fn)];
    this.callers.show(callers, {
      zoom: findPath(callers.graph, state.callers), up: true, base: 1, nothing: 'no callers: it is the outermost frame',
    }, animate);
    this.callees.show(callees, {
      zoom: findPath(callees.graph, state.callees), up: false, base: 1, nothing: 'no callees: all of its samples are its own',
    }, animate);
  }

  /** @param {number} fn */
  #renderCenter(fn) {
    const { page, page: { model, state } } = this;
    const sums = model.functionSums();
    const [self, total] = [model.selfOf(sums)[fn], model.weightsOf(sums)[fn]];
    /** @param {number} weight */
    const share = (weight) => `${formatPercent(model.total > 0 ? weight / model.total : 0)} (${model.formatWeight(weight)})`;
    const reset = () => page.go({ callers: [], callees: [] }, { animate: true });
    byId('center').replaceChildren(
      el('span', { class: 'center-name', title: model.functionName(fn) }, model.functionName(fn)),
      el(
        'span',
        { class: 'center-facts' },
        `${model.functionDso(fn).name} · self ${share(self)}`,
        el('span', { class: 'half-self' }),
        ` · with callees ${share(total)}`,
        el('span', { class: 'half-total' }),
      ),
      ...(state.callers.length + state.callees.length > 0 ? [button('reset zoom', reset)] : []),
    );
  }

  /** @returns {Keys} */
  keys() {
    const { page, centerFn } = this;
    return page.code === null ? {} : { a: () => page.go({ view: 'source', fn: centerFn }) };
  }

  intervals() {
    return { steps: this.page.model.intervalSteps(), show: this.#showIntervals.bind(this) };
  }

  /** @param {Intervals | null} intervals */
  #showIntervals(intervals) {
    const { centerFn } = this;
    for (const id of /** @type {const} */ (['self', 'total'])) {
      const place = byId('center').querySelector(`.half-${id}`);
      if (place !== null && centerFn !== null) {
        place.textContent = intervals === null ? '' : ` ${formatHalf(intervals[id].half(centerFn))}`;
      }
    }
  }

  /** The heaviest function that the search finds becomes the one in the middle. */
  pick() {
    const { page, page: { found, model } } = this;
    if (found === null) {
      return;
    }
    const fn = this.#heaviest(model.weightsOf(model.functionSums()), (of) => found.functions[of] === 1);
    if (fn === null) {
      page.notice.show('No function of this selection matches');
    } else {
      byId('search').value = '';
      page.go({ fn, callers: [], callees: [], search: '', regex: false });
    }
  }

  /** The function with the most samples of its own, where none is chosen. */
  #hottest() {
    const { model } = this.page;
    return this.#heaviest(model.selfOf(model.functionSums()), () => true);
  }

  /** @param {Float64Array} weights
   *  @param {(fn: number) => boolean} test
   *  @returns {number | null} */
  #heaviest(weights, test) {
    /** @type {number | null} */
    let best = null;
    weights.subarray(0, this.page.model.realNames.length).forEach((weight, fn) => {
      best = test(fn) && weight > (best === null ? 0 : weights[best]) ? fn : best;
    });
    return best;
  }
}
