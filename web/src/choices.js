// The choices of the state that no view owns: selectors of samples, weights, and groups of buttons.

import { renderSelectors } from './controls.js';
import { buttons, byId, choiceButton, press } from './dom.js';
import { formatDuration, formatPeriod, isClockEvent, isWallEvent, plural } from './format.js';

/** @import { Page } from './page.d.ts' */
/** @import { Change, State } from './types.d.ts' */

/** Buttons that choose a value of the state (`data-shape=flame`), with further changes that a choice makes.
 *  @type {Record<string, Change>} */
const BUTTONS = {
  stacks: { order: 'weight', zoom: [] },
  order: { stacks: 'top-down', zoom: [] },
  strip: {},
  shape: {},
  colour: {},
  direction: {},
  waits: {},
};

/** @param {string} text */
const numberOf = (text) => (text === '' ? null : Number(text));

/** The flag of the state that a button turns.
 *  @param {HTMLElement} flag */
const flagOf = (flag) => /** @type {'hideIdle' | 'hideKernel'} */ (flag.dataset.flag);

export class Choices {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    for (const [name, change] of Object.entries({ ...BUTTONS, weight: {} })) {
      this.#listenToButtons(name, change);
    }
    for (const flag of buttons('[data-flag]')) {
      flag.addEventListener('click', () => page.go({ [flagOf(flag)]: !page.state[flagOf(flag)] }));
    }
    this.#listenTo('event', (value) => ({ event: Number(value) }));
    this.#listenTo('process', (value) => ({ pid: numberOf(value), tid: null, comm: null }));
    this.#listenTo('thread', (value) => ({ tid: numberOf(value), comm: null }));
    this.#listenTo('comm', (value) => ({ comm: value === '' ? null : value }));
  }

  /** @param {string} name
   *  @param {Change} change */
  #listenToButtons(name, change) {
    for (const choice of buttons(`[data-${name}]`)) {
      choice.addEventListener('click', () => {
        if (name === 'colour') {
          this.page.colouring.muted.clear();
        }
        this.page.go({ [name]: choice.dataset[name], ...change });
      });
    }
  }

  /** @param {'event' | 'process' | 'thread' | 'comm'} id
   *  @param {(value: string) => Change} change */
  #listenTo(id, change) {
    byId(id).addEventListener('change', () => this.page.go(change(byId(id).value)));
  }

  /** Fills the selectors with the choices of the selection. */
  fill() {
    const { model, state } = this.page;
    renderSelectors({ event: byId('event'), process: byId('process'), thread: byId('thread'), comm: byId('comm') }, model, state);
  }

  /** Shows the state; `canWeigh` is false where the view has weights of its own.
   *  @param {boolean} canWeigh */
  show(canWeigh) {
    const { state } = this.page;
    for (const name of /** @type {(keyof State)[]} */ (Object.keys(BUTTONS))) {
      for (const choice of buttons(`[data-${name}]`)) {
        choice.setAttribute('aria-pressed', String(choice.dataset[name] === state[name]));
      }
    }
    for (const flag of buttons('[data-flag]')) {
      flag.setAttribute('aria-pressed', String(state[flagOf(flag)]));
    }
    this.#showWeight(canWeigh);
    byId('selected').textContent = this.#selected();
    byId('chosen').textContent = this.#chosen();
  }

  /** @param {boolean} canWeigh */
  #showWeight(canWeigh) {
    const { model } = this.page;
    const [period, samples] = [choiceButton('weight=period'), choiceButton('weight=samples')];
    // Where samples have no period there is nothing to choose.
    period.disabled = model.weights.totalPeriod[0] === 0 || !canWeigh;
    samples.disabled = isWallEvent(model.event.name) || !canWeigh;
    press({ period, samples }, model.byPeriod ? 'period' : 'samples');
  }

  /** The selectors that choose a part, in words: they may be folded. */
  #chosen() {
    const { state: { pid, tid, comm }, model: { profile: { threads, comms } } } = this.page;
    const id = tid ?? pid;
    const named = threads.find((thread) => (tid === null ? thread.pid === pid && thread.tid === pid : thread.tid === tid))
      ?? threads.find((thread) => thread.pid === pid);
    const task = id === null ? '' : named === undefined ? String(id) : `${comms[named.comm]} (${id})`;
    return [task, comm ?? ''].filter((text) => text !== '').join(' · ');
  }

  /** The selection in numbers. */
  #selected() {
    const { weights, event } = this.page.model;
    const [samples, period] = [weights.totalSamples[0], weights.totalPeriod[0]];
    if (isWallEvent(event.name)) {
      return `${formatDuration(period)} of threads’ time`;
    }
    const word = isClockEvent(event.name) ? '' : ` ${event.name}`;
    const sum = period > 0 ? ` · ${formatPeriod(event.name, period)}${word}` : '';
    return samples > 0 ? `${plural(samples, 'sample')}${sum}` : 'no samples';
  }
}
