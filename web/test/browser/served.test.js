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
