// The selectors and the legend.

import { button, el, replaceKeepingFocus, swatch } from './dom.js';
import { formatCount, formatPercent, plural } from './format.js';
import { shortenName } from './names.js';
import { KINDS, MAX_COLOURED_BINARIES, binaryColour, cssColour, kindColour } from './colors.js';

/** @import { Model } from './model.js' */
/** @import { Choice, Colour, PageEvent, SelectOption, State, Theme } from './types.d.ts' */

/** Entries that a selector lists at most; the chosen one is always listed. */
const MAX_OPTIONS = 2000;

/** @param {HTMLSelectElement} select
 *  @param {string | null} all
 *  @param {SelectOption[]} options
 *  @param {string} chosen */
function fillSelect(select, all, options, chosen) {
  const listed = options.slice(0, MAX_OPTIONS);
  const beyond = options.slice(MAX_OPTIONS).filter(({ value }) => value === chosen);
  const known = [...listed, ...beyond];
  const left = options.length - known.length;
  select.replaceChildren(
    ...(all === null ? [] : [el('option', { value: '' }, all)]),
    ...known.map(({ value, text }) => el('option', { value }, text)),
    ...(left > 0 ? [el('option', { disabled: true }, `… ${formatCount(left)} more with fewer samples`)] : []),
  );
  // Reports a choice of the link that this page does not have.
  if (chosen !== '' && !known.some(({ value }) => value === chosen)) {
    select.append(el('option', { value: chosen }, `${chosen} (not in this recording)`));
  }
  select.value = chosen;
  select.disabled = known.length === 0 || (all === null && known.length < 2);
}

/** Fills a selector with groups of choices, each up to a bound; the chosen one is always listed.
 *  @param {HTMLSelectElement} select
 *  @param {{ label: string, options: SelectOption[] }[]} groups
 *  @param {string} chosen */
export function fillGroups(select, groups, chosen) {
  /** @param {SelectOption} option */
  const option = ({ value, text }) => el('option', { value }, text);
  const filled = groups.filter(({ options }) => options.length > 0).map(({ label, options }) => {
    const listed = options.filter(({ value }, index) => index < MAX_OPTIONS || value === chosen);
    const left = options.length - listed.length;
    const more = left > 0 ? el('option', { disabled: true }, `… ${formatCount(left)} more with fewer samples`) : null;
    return el('optgroup', { label }, ...listed.map(option), more);
  });
  select.replaceChildren(...filled);
  select.value = chosen;
  select.disabled = groups.reduce((sum, { options }) => sum + options.length, 0) < 2;
}

/** Fills a selector whose choices never change.
 *  @param {HTMLSelectElement} select
 *  @param {SelectOption[]} options */
export function fillChoice(select, options) {
  select.replaceChildren(...options.map(({ value, text }) => el('option', { value }, text)));
  select.disabled = options.length < 2;
}

/** Fills the legend of the strip of time.
 *  @param {HTMLElement} container
 *  @param {{ label: string, colour: string }[]} series */
export function renderSeries(container, series) {
  container.replaceChildren(...series.filter(({ label }) => label !== '').map(({ label, colour }) => (
    el('span', { title: label }, swatch(colour), shortenName(label, 26)))));
}

/** @param {Choice} choice */
const idText = ({ id, name }) => (Number(id) < 0 ? name : `${name} (${id})`);

/** Choices of events. Some that only the recorder needs never have a sample: dummies, and others of whit.
 *  @param {PageEvent[]} events
 *  @param {number} chosen */
export function eventChoices(events, chosen) {
  /** @param {PageEvent} event
   *  @param {number} i */
  const choice = ({ name, samples }, i) => ({ value: String(i), text: `${name} · ${plural(samples, 'sample')}` });
  /** @param {unknown} _
   *  @param {number} i */
  const isShown = (_, i) => i === chosen || events[i].samples > 0 || !/^(dummy(:|$)|whit-)/.test(events[i].name);
  return events.map(choice).filter(isShown);
}

/** Fills the selectors of event, process, thread and comm for a state.
 *  @param {Record<'event' | 'process' | 'thread' | 'comm', HTMLSelectElement>} selects
 *  @param {Model} model
 *  @param {State} state */
export function renderSelectors(selects, model, state) {
  const { events } = model.profile;
  fillSelect(selects.event, null, eventChoices(events, state.event), events.length > 0 ? String(state.event) : '');
  const choices = model.choices(state);
  const total = choices.processes.reduce((sum, { weight }) => sum + weight, 0);
  /** @param {Choice} choice */
  const share = ({ weight }) => (total > 0 ? ` · ${formatPercent(weight / total)}` : '');
  /** @param {(choice: Choice) => string} text
   *  @returns {(choice: Choice) => SelectOption} */
  const option = (text) => (choice) => ({ value: String(choice.id), text: `${text(choice)}${share(choice)}` });
  /** @param {string | number | null} value */
  const chosen = (value) => (value === null ? '' : String(value));
  fillSelect(selects.process, `All processes (${choices.processes.length})`, choices.processes.map(option(idText)), chosen(state.pid));
  fillSelect(selects.thread, `All threads (${choices.threads.length})`, choices.threads.map(option(idText)), chosen(state.tid));
  fillSelect(selects.comm, 'All commands', choices.comms.map(option(({ name }) => name)), chosen(state.comm));
}

/** Weight of each category that appears, as [category, weight].
 *  @param {Model} model
 *  @param {State['colour']} colour */
function categoryWeights(model, colour) {
  /** @type {Map<number, number>} */
  const sums = new Map();
  const byKey = model.selfByKey();
  const weights = model.weightsOf(model.weights);
  const used = new Set(model.tree.key.filter((key, node) => node > 0 && weights[node] > 0 && !model.isGroup(key)));
  for (const key of used) {
    const category = model.category(key, colour);
    sums.set(category, (sums.get(category) ?? 0) + byKey[key]);
  }
  return [...sums].sort((a, b) => a[0] - b[0]);
}

/** @param {Model} model
 *  @param {number} category
 *  @param {State['colour']} colour */
function categoryLabel(model, category, colour) {
  if (colour === 'kind') {
    return [KINDS[category].label, ''];
  }
  if (category >= MAX_COLOURED_BINARIES) {
    return ['Other binaries', ''];
  }
  const dso = model.profile.dsos[model.binaryOrder[category]];
  return [dso.name, dso.path];
}

/** Base colour of a category.
 *  @param {number} category
 *  @param {string} colour
 *  @param {Theme} theme
 *  @returns {Colour} */
export function categoryColour(category, colour, theme) {
  return colour === 'kind' ? kindColour(category, theme) : binaryColour(category, theme);
}

/** Fills the legend; a click on an entry mutes its frames.
 *  @param {HTMLElement} container
 *  @param {Model} model
 *  @param {{ colour: State['colour'], theme: Theme, muted: Set<number>, toggle: (category: number) => void }} options */
export function renderLegend(container, model, { colour, theme, muted, toggle }) {
  const entries = categoryWeights(model, colour).map(([category, weight]) => {
    const [label, title] = categoryLabel(model, category, colour);
    const share = model.total > 0 ? formatPercent(weight / model.total) : '';
    const entry = button('', () => toggle(category), {
      class: 'legend-entry',
      'data-key': String(category),
      'aria-pressed': String(!muted.has(category)),
      title: `${title === '' ? label : title}: ${share} of the samples are in this code itself. Click to fade it in or out.`,
    });
    entry.append(swatch(cssColour(categoryColour(category, colour, theme))), label, el('small', {}, share));
    return entry;
  });
  replaceKeepingFocus(container, entries);
}
