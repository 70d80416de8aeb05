// Actions on a function, from any view: open it, search it, change the call tree by it, copy its name; and the menu with
// all of them.

import { copyText } from './dom.js';
import { Menu } from './popups.js';
import { exactly } from './search.js';
import { transformItems } from './transformbar.js';

/** @import { Page } from './page.d.ts' */
/** @import { MenuItem, Transform } from './types.d.ts' */

export class Actions {
  /** @param {Page} page */
  constructor(page) {
    this.page = page;
    this.popup = new Menu();
    /** @type {((fn: number) => void) | null} Shows the code of a function; null on a page without code. */
    this.openCode = page.code === null ? null : (fn) => page.go({ view: 'source', fn });
  }

  /** Shows callers and callees of a function.
   *  @param {number} fn */
  open(fn) {
    this.page.go({ view: 'sandwich', fn, callers: [], callees: [] });
  }

  /** Searches for one function alone and shows the graph.
   *  @param {number} fn */
  find(fn) {
    this.page.go({ view: 'graph', search: exactly(this.page.model.functionName(fn)), regex: true });
  }

  /** Puts text on the clipboard, and says that it is `done`.
   *  @param {string} text
   *  @param {string} done */
  async copy(text, done) {
    this.page.notice.show(await copyText(text) ? done : 'The browser does not let this page copy');
  }

  /** @param {string} name */
  copyName(name) {
    return this.copy(name, 'Function name copied');
  }

  /** @param {Transform} transform */
  transform(transform) {
    this.#setTransforms([...this.page.state.transforms, transform]);
  }

  /** Keeps the first changes of the call tree alone.
   *  @param {number} count */
  keepTransforms(count) {
    this.#setTransforms(this.page.state.transforms.slice(0, count));
  }

  /** Takes the last change of the call tree back. */
  undo() {
    const { length } = this.page.state.transforms;
    if (length > 0) {
      this.keepTransforms(length - 1);
    }
  }

  /** @param {readonly Transform[]} transforms */
  #setTransforms(transforms) {
    this.page.go({ transforms, zoom: [], callers: [], callees: [] });
  }

  /** Menu entries that change the call tree by a key; `path` leads to its node in the whole tree, or is null.
   *  @param {number} key
   *  @param {number[] | null} path */
  transformItems(key, path) {
    return transformItems(this.page.model, key, path, (transform) => this.transform(transform));
  }

  /** Opens the menu of a function, with entries of its view in front.
   *  @param {number} fn
   *  @param {MenuItem[]} more
   *  @param {number} x
   *  @param {number} y */
  menu(fn, more, x, y) {
    const { model } = this.page;
    const name = model.functionName(fn);
    if (model.isGroup(fn * 2)) {
      this.popup.open(name, more, x, y);
      return;
    }
    this.popup.open(name, [
      ...(more.length > 0 ? more : this.transformItems(fn * 2, null)),
      ['Copy function name', () => this.copyName(name), 'c'],
      ['Search for this function', () => this.find(fn)],
      ...this.#codeItems(fn),
      ['Callers and callees', () => this.open(fn), 's'],
    ], x, y);
  }

  /** @param {number} fn
   *  @returns {MenuItem[]} */
  #codeItems(fn) {
    const { openCode } = this;
    return openCode === null ? [] : [['Source and assembly', () => openCode(fn), 'a']];
  }
}
