// Takes a picture of a page: `node picture.js URL FILE WIDTH HEIGHT SCHEME [SELECTOR]`. An element is clicked first where a
// selector names one. `scripts/pictures.sh` makes the pictures of the README with this.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ARGUMENTS, findChromium, ready } from './browser/browser.js';

const [url, path, width, height, colorScheme, selector] = process.argv.slice(2);
const executablePath = findChromium();
if (colorScheme === undefined || executablePath === undefined) {
  throw new Error(colorScheme === undefined ? 'usage: picture.js URL FILE WIDTH HEIGHT light|dark [SELECTOR]'
    : 'no Chromium: set CHROMIUM, or install the package chromium');
}
const { chromium } = await import('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'whit-picture-'));
const context = await chromium.launchPersistentContext(folder, {
  executablePath, headless: true, args: ARGUMENTS, viewport: { width: Number(width), height: Number(height) }, colorScheme,
});
try {
  const page = await context.newPage();
  await page.goto(url);
  await ready(page);
  if (selector !== undefined) {
    await page.click(selector);
  }
  // Pictures on canvases follow in the next frame.
  await page.waitForTimeout(500);
  await page.screenshot({ path });
} finally {
  await context.close();
  rmSync(folder, { recursive: true, force: true });
}
