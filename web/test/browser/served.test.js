// A page over loopback, whose server knows the time of each sample.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before } from 'node:test';
import { createInterface } from 'node:readline';

import { inBrowser, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
let server;
let address;

before(async () => {
  const program = process.env.WHIT_TEST_SERVER;
  assert.ok(program, 'WHIT_TEST_SERVER names no program: run web/test/run.sh');
  server = spawn(program, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) {
    address = line;
    break;
  }
});
// The server ends with its standard input.
after(() => server?.stdin.end());

const served = (fragment, check, options) => open('', fragment, check, { server: address, ...options });

test('a range of a served page is exact, where buckets hold more samples', () => served('', async (page) => {
  await untilText(page, '#selected', /^101 sample/);
  await page.goto(`${address}#range=0-500000`);
  // Samples at 0, 100, …, 400 µs; the first bucket has 16.
  await untilText(page, '#selected', /^5 sample/);
  await page.click('[data-view=functions]');
  assert.match(await textOf(page, '#selected'), /^5 sample/);
  await page.goto(`${address}#range=100001-500001`);
  await untilText(page, '#selected', /^4 sample/);
}));

test('a served page says when its server gives no range, and shows buckets', () => served('', async (page) => {
  await page.route('**/range?*', (route) => route.abort());
  await page.goto(`${address}#range=0-500000`);
  await untilText(page, '#selected', /^16 sample/);
  await untilText(page, '.notice', /whole buckets/);
}, { allow: /ERR_FAILED/ }));

const TIP = '.tooltip:not([hidden])';

/**
 * Waits for the tooltip of the box at a share of the time in view. The chart is drawn anew when samples come, which hides
 * the tooltip until the pointer moves.
 */
async function boxAt(page, share, pattern) {
  const box = await page.locator('#chart canvas').boundingBox();
  for (let moves = 0; moves < 500; moves++) {
    await page.mouse.move(box.x + share * box.width + moves % 2, box.y + 10);
    const texts = await page.locator(TIP).allInnerTexts();
    if (texts.some((text) => pattern.test(text.trim()))) return;
    await page.waitForTimeout(20);
  }
  await untilText(page, TIP, pattern);
}

test('the stack chart of a served page has the times of single samples', () => served('', async (page) => {
  await page.goto(`${address}#view=chart&range=0-500000`);
  // 500 µs with a sample each 100 µs, of two functions in turn, where the first bucket has 16.
  for (let at = 0; at < 5; at++) {
    const name = at % 2 === 0 ? 'even' : 'odd';
    await page.waitForFunction(() => !document.querySelector('#chart').hidden);
    await boxAt(page, (at + 0.5) / 5, new RegExp(`^${name}\\n[^]*100 µs from ${at === 0 ? '0' : `${at}00\\.\\d µs`}\\n1 sample`));
  }
  assert.equal(await textOf(page, '#chart-note'), '');
}));

test('a served page says when its server gives no samples, and shows those of buckets', () => served('', async (page) => {
  await page.route('**/lane?*', (route) => route.abort());
  await page.goto(`${address}#view=chart&range=0-500000`);
  await untilText(page, '.notice', /times are those of buckets/);
  await boxAt(page, 0.5, /8 samples/);
}, { allow: /ERR_FAILED/ }));
