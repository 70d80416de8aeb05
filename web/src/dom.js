// Elements without markup: text goes in as text nodes alone, so no name can become an element.

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

/** The element of the template with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** A button with a text. */
export function button(text, onclick, attributes = {}) {
  return el('button', { type: 'button', onclick, ...attributes }, text);
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
