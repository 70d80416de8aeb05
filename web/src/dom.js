// Elements without markup: text goes in as text nodes alone, so no name can become an element.

/** @import { Attributes, Child, PageElements } from './types.d.ts' */

const TYPING_MS = 120;

/** A new element with attributes (`class`, `data-…`, `aria-…`; `onclick` and the like as
 *  listeners) and children (elements or text).
 *  @template {keyof HTMLElementTagNameMap} K
 *  @param {K} tag
 *  @param {Attributes} attributes
 *  @param {...Child} children */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flatMap((child) => child ?? []));
  return element;
}

/** The element of the template with this id.
 *  @template {string} K
 *  @param {K} id
 *  @returns {PageElements[K]} */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) {
    throw new Error(`the page has no element ${id}`);
  }
  return /** @type {PageElements[K]} */ (element);
}

/** All elements that a selector finds, in their order.
 *  @param {string} selector
 *  @returns {HTMLButtonElement[]} */
export function buttons(selector) {
  return [...document.querySelectorAll(selector)].map((found) => /** @type {HTMLButtonElement} */ (found));
}

/** The button that chooses a value: `data-view=graph`.
 *  @param {string} choice */
export function choiceButton(choice) {
  return buttons(`[data-${choice}]`)[0];
}

/** A button with a text.
 *  @param {string} text
 *  @param {(event: MouseEvent) => void} onclick
 *  @param {Attributes} attributes */
export function button(text, onclick, attributes = {}) {
  return el('button', { type: 'button', onclick, ...attributes }, text);
}

/** The context of a canvas without transparency.
 *  @param {HTMLCanvasElement} canvas
 *  @returns {CanvasRenderingContext2D} */
export function context2d(canvas) {
  const context = canvas.getContext('2d', { alpha: false });
  if (context === null) {
    throw new Error('this browser draws on no canvas');
  }
  return context;
}

/** Replaces all children. The keyboard's focus goes over to the new child with the same `data-key`.
 *  @param {HTMLElement} container
 *  @param {HTMLElement[]} children */
export function replaceKeepingFocus(container, children) {
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && container.contains(focused) ? focused.dataset.key : undefined;
  container.replaceChildren(...children);
  const next = [...container.children].find((child) => (
    key !== undefined && child instanceof HTMLElement && child.dataset.key === key));
  if (next instanceof HTMLElement) {
    next.focus({ preventScroll: true });
  }
}

/** A square of a colour in front of a label.
 *  @param {string} colour */
export function swatch(colour) {
  const element = el('span', { class: 'swatch', 'aria-hidden': 'true' });
  element.style.background = colour;
  return element;
}

/** A text that screen readers say.
 *  @param {string} text */
export function setStatus(text) {
  byId('status').textContent = text;
}

/** Calls `change` with the text of an input when its reader pauses or ends; Escape empties it.
 *  @param {HTMLInputElement} input
 *  @param {(text: string) => void} change */
export function onTyping(input, change) {
  let timer = 0;
  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => change(input.value), TYPING_MS);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      input.value = '';
      change('');
      input.blur();
    } else if (event.key === 'Enter') {
      clearTimeout(timer);
      change(input.value);
    }
  });
}

/** Puts the keyboard's focus on an input, with all of its text selected.
 *  @param {HTMLInputElement} input */
export function selectText(input) {
  input.focus();
  input.select();
}

/** Marks one of several buttons as the chosen one.
 *  @param {Record<string, HTMLElement>} buttons
 *  @param {string} chosen */
export function press(buttons, chosen) {
  for (const [id, pressed] of Object.entries(buttons)) {
    pressed.setAttribute('aria-pressed', String(id === chosen));
  }
}

/** Puts text on the clipboard; where the browser forbids that to a local file, by a selection.
 *  @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = el('textarea', { class: 'offscreen', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}
