// The room that the page leaves to its views.

import assert from 'node:assert/strict';

import { inBrowser, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const heightOf = async (page, selector) => (await page.locator(selector).boundingBox()).height;

test('at 1280×800 the picture of a view has 600 pixels at least, and nothing needs scrolling', async () => {
  const pictures = [['server', '#view=graph', '#flame'], ['waits', '#view=graph', '#flame'], ['server', '#view=tree', '#call-tree'],
    ['server', '#view=functions', '#function-table'], ['server', '#view=chart', '#view-chart'], ['waits', '#view=switches', '#view-switches'], ['server', '#view=tracks', '#tracks']];
  for (const [name, fragment, picture] of pictures) {
    await open(name, fragment, async (page) => {
      const height = await heightOf(page, picture);
      assert.ok(height >= 600, `${name} ${picture}: ${height}`);
      const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollHeight, innerHeight]);
      assert.ok(scroll <= inner, `${name} ${picture}: ${scroll} in ${inner}`);
    }, { folded: true });
  }
});

test('choices are folded, come by a click or a key, and stay for the next page', () => open('server', '#root=none', async (page) => {
  assert.ok(await page.locator('#event').isHidden() && await page.locator('[data-shape=icicle]').isHidden());
  assert.ok(await page.locator('#losses').isVisible() && await page.locator('#root').isVisible());
  const before = await heightOf(page, '#flame');
  await page.click('#unfold');
  assert.equal(await page.locator('#unfold').getAttribute('aria-expanded'), 'true');
  assert.ok(await page.locator('#event').isVisible() && await page.locator('[data-shape=icicle]').isVisible());
  assert.ok(await heightOf(page, '#flame') < before);
  assert.equal(await page.evaluate(() => localStorage.getItem('whit-choices')), 'shown');
  await page.selectOption('#process', '5120');
  await page.click('#flame');
  await page.keyboard.press('x');
  assert.ok(await page.locator('#event').isHidden());
  assert.equal(await textOf(page, '#chosen'), 'node (5120)', 'a folded choice has its name in view');
  await page.keyboard.press('x');
  await page.selectOption('#thread', '5120');
  await page.selectOption('#process', '');
  await untilText(page, '#chosen', /^$/);
}, { folded: true }));

test('a loss is in view whether choices are folded or not', () => open('server', '', async (page) => {
  for (const figure of ['57 lost records', '12 lost samples', '0.009 % data loss']) {
    assert.ok((await textOf(page, '#losses')).replace(/\s+/g, ' ').includes(figure), figure);
  }
  assert.match(await textOf(page, '#warnings'), /2 warnings/);
  await page.click('#warnings summary');
  assert.match(await textOf(page, '#warnings'), /12 samples stand behind later ones/);
}, { folded: true }));

test('the notes on waits are one line, which opens', () => open('waits', '#view=switches', async (page) => {
  const line = await heightOf(page, '#switch-facts');
  assert.ok(line < 24, `${line}`);
  assert.ok(await page.locator('#switch-facts p').first().isHidden());
  await page.click('#switch-facts summary');
  assert.ok(await page.locator('#switch-facts p').first().isVisible());
}, { folded: true }));

test('the table of waits shows 15 rows at least', () => open('threads', '#view=switches&waits=longest', async (page) => {
  const bottom = await page.locator('#longest-waits').evaluate((table) => table.getBoundingClientRect().bottom);
  const rows = await page.locator('#longest-waits .list-row').evaluateAll((all, end) => all.filter((row) => row.getBoundingClientRect().bottom <= end).length, bottom);
  assert.ok(rows >= 15, `${rows} rows`);
  assert.ok(await heightOf(page, '#timeline') > 150, 'lanes have room, too');
}, { folded: true }));
