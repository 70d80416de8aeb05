// Elements over the page: tooltip, menu, short notices.

import { button, el } from './dom.js';

/** @import { MenuItem } from './types.d.ts' */

const MARGIN_PX = 8;
const NOTICE_MS = 2200;

/** Moves an element next to a point, inside of the window.
 *  @param {HTMLElement} element
 *  @param {number} x
 *  @param {number} y
 *  @param {number} distance */
function placeNear(element, x, y, distance) {
  const { width, height } = element.getBoundingClientRect();
  /** @param {number} at
   *  @param {number} size
   *  @param {number} limit */
  const fits = (at, size, limit) => at + distance + size + MARGIN_PX <= limit;
  const left = fits(x, width, window.innerWidth) ? x + distance : x - distance - width;
  const top = fits(y, height, window.innerHeight) ? y + distance : y - distance - height;
  /** @param {number} at
   *  @param {number} size
   *  @param {number} limit */
  const inside = (at, size, limit) => Math.max(MARGIN_PX, Math.min(at, limit - size - MARGIN_PX));
  element.style.left = `${inside(left, width, window.innerWidth)}px`;
  element.style.top = `${inside(top, height, window.innerHeight)}px`;
}

/** The tooltip. `content(what)` gives the elements for the item under the pointer.
 *  @template T */
export class Tooltip {
  /** @type {unknown} */
  what = null;

  /** @param {(describe: T) => HTMLElement[]} content */
  constructor(content) {
    this.content = content;
    this.element = el('div', { class: 'tooltip', role: 'tooltip', hidden: true });
    document.body.append(this.element);
  }

  /** Shows `what` (any value that names it) at the pointer.
   *  @param {unknown} what
   *  @param {T} describe
   *  @param {number} x
   *  @param {number} y */
  show(what, describe, x, y) {
    if (this.what !== what) {
      this.what = what;
      this.element.replaceChildren(...this.content(describe));
      this.element.hidden = false;
    }
    placeNear(this.element, x, y, 14);
  }

  /** Shows the item under a pointer; hides where there is none (`describe` is null), and for a finger.
   *  @param {PointerEvent | null} event
   *  @param {unknown} what
   *  @param {T | null} describe */
  follow(event, what, describe) {
    if (describe === null || event === null || event.pointerType === 'touch') {
      this.hide();
    } else {
      this.show(what, describe, event.clientX, event.clientY);
    }
  }

  hide() {
    this.what = null;
    this.element.hidden = true;
  }
}

/** A menu at a point; one at a time. */
export class Menu {
  constructor() {
    this.element = el('div', { class: 'menu', role: 'menu', hidden: true, onkeydown: (e) => this.#key(e) });
    document.body.append(this.element);
    document.addEventListener('pointerdown', (event) => {
      if (!(event.target instanceof Node && this.element.contains(event.target))) {
        this.close();
      }
    });
    window.addEventListener('blur', () => this.close());
  }

  /** Opens with `items` of [label, action, key]; `title` names their subject.
   *  @param {string} title
   *  @param {MenuItem[]} items
   *  @param {number} x
   *  @param {number} y */
  open(title, items, x, y) {
    this.opener = document.activeElement;
    const entries = items.map(([label, action, key]) => el(
      'button',
      { type: 'button', role: 'menuitem', onclick: () => this.#choose(action) },
      el('span', {}, label),
      key ? el('kbd', {}, key) : null,
    ));
    this.element.replaceChildren(el('div', { class: 'menu-title' }, title), ...entries);
    this.element.hidden = false;
    placeNear(this.element, x, y, 2);
    entries[0].focus();
  }

  /** @param {() => void} action */
  #choose(action) {
    this.close();
    action();
  }

  close() {
    if (!this.element.hidden) {
      this.element.hidden = true;
      if (this.opener instanceof HTMLElement) {
        this.opener.focus({ preventScroll: true });
      }
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    /** @type {HTMLElement[]} */
    const entries = [...this.element.querySelectorAll('button')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const at = entries.findIndex((entry) => entry === document.activeElement);
      entries[(at + step + entries.length) % entries.length].focus();
    } else if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      this.close();
    }
    event.stopPropagation();
  }
}

/** A short notice at the foot of the page, read out by screen readers. */
export class Notice {
  constructor() {
    this.element = el('div', { class: 'notice', role: 'status', hidden: true });
    document.body.append(this.element);
  }

  /** Shows a text, with a button where there is an action.
   *  @param {string} text
   *  @param {[string, () => void] | null} action */
  show(text, action = null) {
    clearTimeout(this.timer);
    this.element.replaceChildren(text, ...(action ? [button(...action)] : []));
    this.element.hidden = false;
    this.timer = setTimeout(() => {
      this.element.hidden = true;
    }, NOTICE_MS);
  }
}
