// Starts the page.

import { decodeProfile } from './decode.js';
import { decodeMoments, inflateText } from './moments.js';
import { App } from './app.js';
import { byId, el } from './dom.js';

async function start() {
  try {
    const columns = byId('moments').textContent ?? '';
    // The browser inflates these while the profile is decoded here.
    const inflated = columns === '' ? null : inflateText(columns);
    // The failure comes with the bytes, below.
    inflated?.catch(() => {});
    const profile = decodeProfile(JSON.parse(byId('profile').textContent ?? ''));
    const { moments } = profile;
    const app = new App({ ...profile, moments: moments === null ? null : decodeMoments(moments, await (inflated ?? new Uint8Array())) });
    // Tests and benchmarks wait for this.
    document.documentElement.dataset.state = 'ready';
    return app;
  } catch (error) {
    // A page that was cut on its way says so instead of staying blank.
    document.querySelector('main')?.replaceChildren(
      el('div', { class: 'empty' }, el('h2', {}, 'This page cannot be shown'), el('p', {}, String(error))),
    );
    throw error;
  }
}

start();
