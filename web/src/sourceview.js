// The view of source and assembly: the choice of the function, facts and notes about its code.

import { codeEvent, codeFor, hottestCode, noCodeReason } from './code.js';
import { CodeView, codeFacts } from './codeview.js';
import { fillChoice } from './controls.js';
import { byId } from './dom.js';
import { isWallEvent } from './format.js';
import { shortenName } from './names.js';

/** @import { Page } from './page.d.ts' */
/** @import { Code, FunctionCode, Keys } from './types.d.ts' */

export class SourceView {
  /** @param {Page} page
   *  @param {Code} code */
  constructor(page, code) {
    this.page = page;
    this.code = code;
    const { model } = page;
    code.functions.forEach((entry) => {
      entry.name = model.functionName(entry.function);
    });
    this.lists = new CodeView({ lines: byId('code-lines'), instructions: byId('code-instructions') });
    fillChoice(byId('code-function'), code.functions.map(({ name, function: fn }, index) => (
      { value: String(index), text: `${shortenName(name, 60)} · ${shortenName(model.functionDso(fn).name, 24)}` })));
    byId('code-function').addEventListener('change', () => page.go({ fn: code.functions[Number(byId('code-function').value)].function }));
    byId('code-hottest').addEventListener('click', () => this.lists.toHottest());
  }

  show() {
    const { code, page: { model, state } } = this;
    const fn = state.fn !== null && state.fn < model.realNames.length ? state.fn : null;
    const index = fn === null ? hottestCode(code, state.event) : codeFor(code, fn, model.functionName(fn));
    /** @type {FunctionCode | undefined} */
    const entry = code.functions[index];
    byId('code-panes').hidden = entry === undefined;
    byId('code-hottest').disabled = entry === undefined;
    byId('code-function').value = entry === undefined ? '' : String(index);
    byId('code-facts').textContent = '';
    if (entry !== undefined) {
      this.#showEntry(entry);
    }
    const notes = entry === undefined ? this.#missing(fn) : this.#notes(entry, fn);
    byId('code-problem').textContent = notes;
    byId('code-problem').hidden = notes === '';
  }

  /** @param {FunctionCode} entry */
  #showEntry(entry) {
    const { model, state } = this.page;
    const event = codeEvent(entry, state.event, isWallEvent(model.event.name));
    const { name: eventName, period } = model.profile.events[event] ?? { name: '', period: 0 };
    const whole = entry.weights.find((weight) => weight.event === event) ?? null;
    const isPart = [state.pid, state.tid, state.comm, state.range].some((choice) => choice !== null);
    const binary = model.functionDso(entry.function).path;
    byId('code-facts').textContent = codeFacts(entry, { binary, eventName, whole, eventTotal: period, isPart }).join(' · ');
    byId('code-source').hidden = entry.lines.length === 0;
    this.lists.show(entry, event, whole);
  }

  /** Why a function has no code on the page.
   *  @param {number | null} fn */
  #missing(fn) {
    const name = fn === null ? '' : `${this.#shortName(fn)} is not on this page. `;
    return `${name}${noCodeReason(this.code, fn)}`;
  }

  /** Notes on an entry that shows a function.
   *  @param {FunctionCode} entry
   *  @param {number | null} fn */
  #notes(entry, fn) {
    const notes = [];
    if (fn !== null && entry.function !== fn) {
      notes.push(`${this.#shortName(fn)} is inlined; this is the function that it is a part of.`);
    }
    if (entry.problem !== null) {
      notes.push(`The instructions are not at hand: ${entry.problem}. Addresses of samples stand below.`);
    } else if (entry.lines.length === 0) {
      notes.push('No debug information says which source lines these instructions come from.');
    }
    return notes.join(' ');
  }

  /** @param {number} fn */
  #shortName(fn) {
    return shortenName(this.page.model.functionName(fn), 80);
  }

  /** @returns {Keys} */
  keys() {
    return { a: undefined, h: () => this.lists.toHottest() };
  }
}
