// The view of requests in a browser.

import assert from 'node:assert/strict';

import { addressOf, inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const VIEW = '#view=requests';
const CALL_ROW = '#request-calls .list-row';

/** Texts of the cells of a row.
 *  @param {number} index */
const cellsOf = (page, rows, index) => page.locator(`${rows} >> nth=${index}`).locator('[role=gridcell]').allInnerTexts();

test('quantiles, the slowest, and the path of the slowest', () => open('requests', VIEW, async (page) => {
  assert.equal(await page.locator('#request-quantiles tr').count(), 5);
  assert.match(await textOf(page, '#request-quantiles'), /^p50\s+202 µs[^]*max\s+21\.7 ms/);
  assert.match(await textOf(page, '#request-count'), /^120 requests$/);
  assert.match(await textOf(page, '#request-remarks'), /^15 calls within others/);
  assert.match(await textOf(page, '#request-tail'), /^20\.1 ms\s+0 ns\s+\+20\.1 ms\s+waits: sleep in handle for 20ms/);
  const row = await cellsOf(page, CALL_ROW, 0);
  assert.deepEqual([row[0], row[2], row[5]], ['1', '21.7 ms', '23']);
  assert.match((await cellsOf(page, '#request-rows .list-row', 1)).at(-1), /^holder \(\d+\) waits: sleep in hold for 1ms — while server \(\d+\) waits: lock/);
}));

test('rows choose requests, and the address keeps the choice', () => open('requests', VIEW, async (page) => {
  await page.click(`${CALL_ROW} >> nth=3`);
  await untilText(page, '#request-path-note', /number 4/);
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#request-path-note', /number 5/);
  assert.match(await addressOf(page), /call=5/);
  await page.reload();
  assert.equal(await page.locator(`${CALL_ROW}.current`).locator('[role=gridcell]').first().innerText(), '5');
  await page.goBack();
  await untilText(page, '#request-path-note', /number 4/);
  await page.locator('#request-calls .list-scroller').focus();
  await page.keyboard.press('End');
  await untilText(page, '#request-path-note', /slowest ones alone: whit why --request call:120$/);
  assert.ok(await page.locator('#request-path').isHidden());
}));

test('a request and a piece of its path select time and thread in all views', () => open('requests', VIEW, async (page) => {
  await page.locator('#request-calls .list-scroller').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await untilText(page, '#strip-range', /21\.7 ms/);
  const canvas = await page.locator('#request-path canvas').boundingBox();
  // The holder of the lock: the second lane, from some 0.5 ms to 1.6 ms of 21.7 ms.
  const [x, y] = [canvas.x + 170 + (canvas.width - 170) * (1.1 / 21.7), canvas.y + 20 + 20 + 8];
  await page.mouse.move(x, y);
  await untilText(page, '.tooltip:not([hidden])', /^holder \(\d+\): waits: sleep in hold for 1ms[^]*while server/);
  await page.mouse.click(x, y);
  await untilText(page, '#strip-range', /1\.05 ms/);
  assert.match(await page.locator('#thread option:checked').innerText(), /holder/);
  // The path shows the selected time, and Escape all of it.
  await page.focus('#request-path');
  await page.keyboard.press('Escape');
  await untilText(page, '#strip-range', /^$/);
}));

test('the path has the colours of what its threads do', () => open('requests', VIEW, async (page) => {
  const pixels = await pixelsOf(page, '#request-path canvas');
  // Running is at the beginning of the first lane, for 0.48 of 21.7 ms.
  assert.ok(pixels[await rgbOf(page, 'hsl(130 42% 62%)')] > 100, JSON.stringify(pixels));
}));

test('the names of requests are a choice', () => open('requests', VIEW, async (page) => {
  const names = await page.locator('#request-name option').allInnerTexts();
  assert.ok(names.length >= 2, names.join());
  await page.selectOption('#request-name', { index: 1 });
  assert.match(await addressOf(page), new RegExp(`request=${names[1].split(' ')[0]}`));
  assert.match(await textOf(page, '#request-count'), new RegExp(`^${/\((.*)\)/.exec(names[1])[1]} request`));
}));

test('hostile texts of requests are text', () => open('hostile-waits', VIEW, async (page) => {
  const text = await textOf(page, '#view-requests');
  assert.ok(text.includes('</script><img src=x') || text.includes('window.pwned'), text);
  assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069\u0007]/);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img').count(), 0);
}));
