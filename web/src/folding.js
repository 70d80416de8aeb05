// The choices above the views and the further ones in them: folded, so that the view has the window, or shown.

import { byId } from './dom.js';

const FOLD_KEY = 'whit-choices';

/** @returns {boolean} */
function storedFold() {
  try {
    return localStorage.getItem(FOLD_KEY) !== 'shown';
  } catch {
    // Storage may be closed to local files.
    return true;
  }
}

export class Folding {
  /** `changed` is called after each change.
   *  @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.isFolded = storedFold();
    this.#show();
    byId('unfold').addEventListener('click', () => this.toggle());
  }

  #show() {
    document.body.classList.toggle('folded', this.isFolded);
    byId('unfold').setAttribute('aria-expanded', String(!this.isFolded));
  }

  toggle() {
    this.isFolded = !this.isFolded;
    this.#show();
    try {
      localStorage.setItem(FOLD_KEY, this.isFolded ? 'folded' : 'shown');
    } catch {
      // It holds until the page is closed.
    }
    this.changed();
  }
}
