// Elements without markup: text goes in as text nodes alone, so no name can become an element.

/** @import { PageElements } from './types.d.ts' */

/** A new element with attributes (`class`, `data-…`, `aria-…`; `onclick` and the like as
 *  listeners) and children (elements or text). */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
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
  return /** @type {any} */ (element);
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

/** A button with a text. */
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

/** Marks one of several buttons as the chosen one. */
export function press(buttons, chosen) {
  for (const [id, pressed] of Object.entries(buttons)) {
    pressed.setAttribute('aria-pressed', String(id === chosen));
  }
}

/** Puts text on the clipboard; where the browser forbids that to a local file, by a selection. */
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
