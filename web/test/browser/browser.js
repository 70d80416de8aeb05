// Starts Chromium and opens generated pages; a page with an error, or that asks for anything but
// itself, fails its test.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test as nodeTest } from 'node:test';
import { pathToFileURL } from 'node:url';

// Other programs may leave the browser a small part of the CPUs.
const PATIENCE_MS = 30_000;
const CANDIDATES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
export const ARGUMENTS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

/** Path of Chromium ($CHROMIUM, else the usual ones), or undefined where there is none. */
export function findChromium() {
  const { CHROMIUM } = process.env;
  return (CHROMIUM ? [CHROMIUM] : CANDIDATES).find((path) => existsSync(path));
}

/** `test` and `open` of a file of tests, which share a browser; without one, its tests are skipped aloud. */
export function inBrowser() {
  const chromium = findChromium();
  const skip = chromium === undefined
    ? 'SKIPPED: no Chromium (set CHROMIUM, or install the package chromium)' : false;
  let browser;
  before(async () => {
    browser = skip ? undefined : await Browser.start(chromium);
  });
  after(() => browser?.close());
  return {
    test: (name, run) => nodeTest(name, { skip }, run),
    open: (name, fragment, check, options) => browser.with(name, fragment, check, options),
  };
}

/** Waits until the page has read its data. */
export async function ready(page) {
  await page.waitForSelector('html[data-state=ready]');
}

/** Lets each way to another address end when the page has read its data and followed the address: the browser reports
 *  a new document before that. */
function navigateUntilReady(page) {
  for (const way of ['goto', 'reload', 'goBack']) {
    const navigate = page[way].bind(page);
    page[way] = async (...args) => {
      const response = await navigate(...args);
      if (page.url() !== 'about:blank') {
        await ready(page);
        await page.evaluate(() => new Promise((done) => setTimeout(done)));
      }
      return response;
    };
  }
}

export class Browser {
  static async start(executablePath) {
    assert.ok(process.env.WHIT_TEST_PAGES, 'WHIT_TEST_PAGES names no folder of generated pages: run web/test/run.sh');
    // Only here, so that the tests can say what they skip where nothing is installed.
    const { chromium } = await import('playwright-core');
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), 'whit-browser-'));
    browser.context = await chromium.launchPersistentContext(browser.folder, {
      executablePath, headless: true, args: ARGUMENTS, viewport: { width: 1280, height: 800 },
    });
    return browser;
  }

  async close() {
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs `check` with a new page that has opened the generated page `name`, or that of `server`, at `fragment`; with all
   *  choices in view, unless `folded`. */
  async with(name, fragment, check, { allow = null, server = null, folded = false, ...options } = {}) {
    const address = server ?? pathToFileURL(join(process.env.WHIT_TEST_PAGES, `${name}.html`)).href;
    const page = await this.context.newPage();
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) {
        complaints.push(`console: ${message.text()}`);
      }
    });
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on('request', (request) => {
      const isOwn = /^(file|data):/.test(request.url()) || (server !== null && request.url().startsWith(server));
      if (!isOwn) {
        complaints.push(`request: ${request.url()}`);
      }
    });
    await page.addInitScript((fold) => {
      try {
        localStorage.setItem('whit-choices', fold);
      } catch {
        // about:blank has no storage.
      }
    }, folded ? 'folded' : 'shown');
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce', ...options });
    navigateUntilReady(page);
    try {
      await page.goto(`${address}${fragment}`);
      await check(page);
      const left = complaints.filter((complaint) => allow === null || !allow.test(complaint));
      assert.deepEqual(left, [], 'the page complains of nothing');
    } finally {
      await page.close();
    }
  }
}

/** The address that the page has. `page.url()` learns of a change some time after it. */
export function addressOf(page) {
  return page.evaluate(() => location.href);
}

/** Text of an element. */
export async function textOf(page, selector) {
  return (await page.locator(selector).innerText()).trim();
}

/** Waits until an element's text passes `test`; fails with the text that it had. */
export async function untilText(page, selector, pattern) {
  const deadline = Date.now() + PATIENCE_MS;
  let text = await textOf(page, selector);
  while (!pattern.test(text) && Date.now() < deadline) {
    await page.waitForTimeout(20);
    text = await textOf(page, selector);
  }
  assert.match(text, pattern, selector);
  return text;
}

/** Counts the pixels of a canvas by colour; colours as `r,g,b`. */
export async function pixelsOf(page, selector) {
  return page.evaluate(async (canvasSelector) => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const canvas = document.querySelector(canvasSelector);
    // Read from a copy: reading back makes a canvas slow, and the browser says so.
    const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    const counts = {};
    for (let i = 0; i < data.length; i += 4) {
      const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      counts[colour] = (counts[colour] ?? 0) + 1;
    }
    return counts;
  }, selector);
}

/** What CSS makes of a colour, as `r,g,b`. */
export async function rgbOf(page, colour) {
  return page.evaluate((css) => {
    const context = document.createElement('canvas').getContext('2d');
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
  }, colour);
}
