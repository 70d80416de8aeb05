// A comparison of two sides in a browser.

import assert from 'node:assert/strict';

import { changeColour } from '../../src/compare.js';
import { cssColour } from '../../src/colors.js';
import { inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const rows = (page) => page.locator('#compare-table .list-row').evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));

/** A frame of the row of leaves, at a share of the width. */
async function leaf(page, share) {
  const box = await page.locator('#compare-flame canvas').boundingBox();
  return [box.x + share * box.width, box.y + box.height - 3.5 * 19];
}

test('a comparison opens with the functions that differ, each with its verdict', () => open('compare', '', async (page) => {
  assert.ok(await page.locator('#view-compare').isVisible());
  assert.equal(await textOf(page, '#title'), 'before.data → after.data');
  assert.match(await textOf(page, '#compare-notes'), /^Before: before\.data\. After: after\.data\. Values are shares/);
  const table = await rows(page);
  assert.deepEqual(table.slice(0, 3).map(([name, , , , , verdict]) => [name, verdict]), [
    ['shop::find_product(int)', 'slower'], ['shop::render(Page&)', 'faster'], ['shop::gone()', 'faster'],
  ]);
  assert.match(table[0].slice(2, 5).join('|'), /^28\.57 % ±\d\.\d\|54\.01 % ±\d\.\d\|\+25\.43 % ±\d\.\d$/);
  const log = table.find(([name]) => name.startsWith('shop::log'));
  assert.match(log[5], /^cannot be told \(\d\.\d\d %\)$/);
  assert.ok(table.some(([name]) => name === 'sort<int, 2>(int*) → sort<int>(int*)'), 'a renamed function is one');
}));

test('frames have the colour of their change, and hatches where it cannot be told', () => open('compare', '', async (page) => {
  const pixels = await pixelsOf(page, '#compare-flame canvas');
  const colour = (change) => rgbOf(page, cssColour(changeColour(change, 'light')));
  assert.ok(pixels[await colour(-1)] > 100, 'a function that is gone');
  const [x, y] = await leaf(page, 0.2);
  await page.mouse.move(x, y);
  await untilText(page, '.tooltip:not([hidden])', /shop::find_product[^]*this stack: 28\.57 % before, 54\.01 % after[^]*with its callees[^]*before 28\.57 % ±\d\.\d · after 54\.01 % ±\d\.\d[^]*\+25\.43 % ±\d\.\d: slower/);
  await page.mouse.move(...await leaf(page, 0.75));
  await untilText(page, '.tooltip:not([hidden])', /shop::log[^]*cannot be told \(a change of \d\.\d\d % would be found\)/);
  const hatched = async (share) => {
    const [left, top] = await leaf(page, share);
    const shot = await page.screenshot({ clip: { x: left - 40, y: top - 8, width: 20, height: 14 } });
    return page.evaluate(async (bytes) => {
      const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
      const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      return new Set(Array.from({ length: data.length / 4 }, (_, i) => `${data[4 * i]},${data[4 * i + 1]}`)).size;
    }, [...shot]);
  };
  await page.mouse.move(5, 5);
  assert.equal(await hatched(0.3), 1, 'one plain colour');
  assert.ok(await hatched(0.868) > 1, 'hatched');
}));

test('the table chooses frames, filters, and changes its value', () => open('compare', '', async (page) => {
  await page.focus('#compare-table .list-scroller');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^shop::find_product\(int\): \+25\.43 % .*slower$/);
  assert.equal(await page.locator('#compare-table .list-row.current.marked').count(), 1);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#compare-table .list-row.marked').count(), 0);
  await page.click('[data-compare=total]');
  const main = (await rows(page)).find(([name]) => name === 'main');
  assert.match(main[2], /^100 %/);
  await page.fill('#compare-filter', 'shop::');
  await untilText(page, '#compare-count', /^4 functions/);
  await page.focus('#compare-table .list-scroller');
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  assert.ok(await page.locator('#view-graph').isVisible());
  assert.equal(await page.inputValue('#search'), '^shop::find_product\\(int\\)$');
}));

test('the graph zooms by click and key, and the address holds it', () => open('compare', '', async (page) => {
  await page.mouse.click(...await leaf(page, 0.2));
  await page.waitForURL(/zoom=/);
  await page.focus('#compare-flame');
  await page.keyboard.press('Escape');
  await page.waitForURL((url) => !url.href.includes('zoom='));
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^main: 100 % before, 100 % after; the function: cannot be told/);
  await page.keyboard.press('Enter');
  await page.waitForURL(/zoom=/);
  await page.keyboard.press('Backspace');
  await page.selectOption('#event', '1');
  assert.equal((await rows(page)).length, 8, 'either side leads to the comparison');
}));

test('hostile names are text in a comparison', () => open('compare', '', async (page) => {
  const [name] = (await rows(page)).find(([text]) => text.startsWith('</script>'));
  assert.ok(name.length > 3000 && name.includes('\\u{202e}evil\\x1b[2J'));
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  for (const width of [400, 1280, 1920]) {
    await page.setViewportSize({ width, height: 800 });
    const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(scroll <= inner, `${width}: ${scroll}`);
  }
}));

test('pages of one recording have no comparison', () => open('server', '#view=compare', async (page) => {
  assert.ok(await page.locator('#view-graph').isVisible());
  assert.ok(await page.locator('[data-view=compare]').isHidden());
}));

test('graph and table follow the selectors; a part has no verdicts', () => open('compare', '', async (page) => {
  await page.selectOption('#comm', 'logger');
  assert.match(await textOf(page, '#compare-notes'), /shares of the selected part[^]*no verdicts: whit diff --comms NAME/);
  let table = await rows(page);
  assert.deepEqual(table.map(([name]) => name), ['shop::log(char const*)', '_start', 'main']);
  assert.deepEqual(table[0].slice(2), ['100 %', '100 %', '0 %', 'not judged']);
  await page.mouse.move(...await leaf(page, 0.9));
  await untilText(page, '.tooltip:not([hidden])', /shop::log[^]*this stack: 100 % before, 100 % after[^]*a part of the samples has no verdicts/);
  assert.doesNotMatch(await textOf(page, '#compare-legend'), /cannot be told/);
  await page.selectOption('#comm', '');
  await page.selectOption('#process', '7');
  table = await rows(page);
  // 3,000 of 8,500 before; 6,000 of 9,120 after.
  assert.deepEqual(table[0].slice(0, 5), ['shop::find_product(int)', 'kvstored', '35.29 %', '65.79 %', '+30.50 %']);
  await page.click('[data-compare=total]');
  assert.equal((await rows(page)).find(([name]) => name === 'main')[2], '100 %');
  await page.selectOption('#process', '');
  await untilText(page, '#compare-notes', /Values are shares of all samples/);
  assert.ok((await rows(page)).some((row) => row[5] === 'slower'));
}));

test('a comparison of some commands has their samples alone, as shares of all', () => open('compare-shop', '', async (page) => {
  assert.match(await textOf(page, '#compare-notes'), /Only samples of shop are on this page; shares are of all samples\./);
  const table = await rows(page);
  assert.match(table[0].slice(2, 4).join('|'), /^28\.57 % ±\d\.\d\|54\.01 % ±\d\.\d$/);
  assert.ok(!table.some(([name]) => name.startsWith('shop::log')));
  await page.mouse.move(...await leaf(page, 0.2));
  await untilText(page, '.tooltip:not([hidden])', /shop::find_product[^]*this stack: 28\.57 % before, 54\.01 % after/);
  assert.deepEqual(await page.locator('#comm option').allInnerTexts(), ['All commands', 'shop · 100 %']);
}));

test('waits that differ have a table of their own, the difference first', () => open('compare', '#view=measures', async (page) => {
  assert.equal(await textOf(page, '#view-measures h2'), 'Locks: 1 row of 3 with a difference, 16 tests judged together');
  const lines = await page.locator('#view-measures .measure-row').evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  const own = lines.filter(([name]) => name === 'shop::reserve').map(([, value, before, after, change, verdict]) => [value, before, after, change.replace(/ ± .*/, ''), verdict]);
  assert.deepEqual(own[0], ['waiting per second', '99.9 ms', '180 ms', '+79.9 ms', 'waits more, waits more often, spins more']);
  assert.deepEqual(lines.map(([name]) => name).indexOf('shop::reserve') < lines.map(([name]) => name).indexOf('shop::log'), true);
  assert.match(lines.find(([name]) => name === 'shop::log')[5], /^cannot be told \(/);
  // Names are text.
  assert.equal(await page.locator('#view-measures img, #view-measures script').count(), 0);
}));
