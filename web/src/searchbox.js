// The search above the views: its text, its form, and its share of the total.

import { byId, onTyping, selectText } from './dom.js';
import { formatPercent } from './format.js';

/** @import { Page } from './page.d.ts' */

export class SearchBox {
  /** @param {Page} page
   *  @param {() => void} pick Enter in the box */
  constructor(page, pick) {
    this.page = page;
    onTyping(byId('search'), (search) => page.go({ search }));
    byId('search').addEventListener('keydown', (event) => event.key === 'Enter' && pick());
    byId('regex').addEventListener('click', () => page.go({ regex: !page.state.regex }));
    byId('search-clear').addEventListener('click', () => {
      byId('search').value = '';
      page.go({ search: '', regex: false });
    });
  }

  focus() {
    selectText(byId('search'));
  }

  /** Shows the search of the state, and returns its result. */
  show() {
    const { model, state } = this.page;
    const input = byId('search');
    if (document.activeElement !== input) {
      input.value = state.search;
    }
    const found = model.search(state.search, state.regex);
    const error = found?.error ?? '';
    input.setAttribute('aria-invalid', String(error !== ''));
    byId('regex').setAttribute('aria-pressed', String(state.regex));
    byId('search-clear').hidden = found === null;
    byId('matched').textContent = found === null ? ''
      : error !== '' ? 'no regular expression' : `matched ${formatPercent(found.share)} of total`;
    byId('matched').title = error;
    return found;
  }
}
