// Starts the page.

import { decodeProfile } from './decode.js';
import { App } from './app.js';
import { byId, el } from './dom.js';

function start() {
  try {
    return new App(decodeProfile(JSON.parse(byId('profile').textContent)));
  } catch (error) {
    // A page that was cut on its way says so instead of staying blank.
    document.querySelector('main').replaceChildren(
      el('div', { class: 'empty' }, el('h2', {}, 'This page cannot be shown'), el('p', {}, String(error))),
    );
    throw error;
  }
}

start();
