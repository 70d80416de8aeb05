// The registry of views: each row is reached by its tab, its digit and its address; a view without data is not shown.

import assert from 'node:assert/strict';

import { VIEWS } from '../../src/views.js';
import { addressOf, inBrowser } from './browser.js';

const { test, open } = inBrowser();

/** Views that need data which a page does not have. */
const ABSENT = {
  server: ['compare', 'measures', 'switches', 'requests'],
  waits: ['compare', 'measures', 'source', 'requests'],
  requests: ['compare', 'measures', 'source'],
  compare: ['chart', 'source', 'switches', 'tracks', 'requests'],
};

/** The ids of the sections in view. */
const shown = (page) => page.locator('main > section[id^=view-]:visible').evaluateAll((all) => all.map(({ id }) => id));

/** Asserts that one view is in view, and in the address: the default may be left out there. */
async function assertShown(page, id, how) {
  assert.deepEqual(await shown(page), [`view-${id}`], `${how} of ${id}`);
  assert.equal(await page.locator(`[data-view=${id}]`).getAttribute('aria-selected'), 'true', `${how} of ${id}`);
  assert.match(await addressOf(page), new RegExp(`^[^#]*#?(.*&)?(view=${id}(&|$)|$)`), `${how} of ${id}`);
}

for (const [name, absent] of Object.entries(ABSENT)) {
  const present = VIEWS.filter(({ id }) => !absent.includes(id));

  test(`${name}: each view of the registry has a tab, a digit and an address`, () => open(name, '', async (page) => {
    const labels = await page.locator('#tabs button:visible').allInnerTexts();
    assert.deepEqual(labels, present.map(({ label }) => label));
    const last = present.at(-1).id;
    for (const [index, { id }] of present.entries()) {
      await page.click(`[data-view=${last}]`);
      await page.click(`[data-view=${id}]`);
      await assertShown(page, id, 'tab');
      await page.click(`[data-view=${id === last ? 'graph' : last}]`);
      await page.keyboard.press(String(index + 1));
      await assertShown(page, id, 'digit');
      await page.click(`[data-view=${last}]`);
      await page.evaluate((view) => { location.hash = `view=${view}`; }, id);
      await page.waitForSelector(`#view-${id}:visible`);
      await assertShown(page, id, 'address');
    }
    await page.keyboard.press(String((present.length + 1) % 10));
    await assertShown(page, last, 'a digit beyond the tabs');
  }));

  for (const id of absent) {
    test(`${name}: ${id} has no data, so it is not shown`, () => open(name, `#view=${id}`, async (page) => {
      assert.deepEqual(await shown(page), ['view-graph']);
      assert.ok(await page.locator(`[data-view=${id}]`).isHidden());
    }));
  }
}

test('each view of the registry is on one of these pages', () => {
  const seen = VIEWS.filter(({ id }) => Object.values(ABSENT).some((absent) => !absent.includes(id)));
  assert.deepEqual(seen, VIEWS);
  assert.equal(new Set(VIEWS.map(({ id }) => id)).size, VIEWS.length, 'ids differ');
});

test('views are tabs: a list of tabs with one panel each, which the arrow keys lead through', () => open('server', '', async (page) => {
  const tabs = page.getByRole('tablist', { name: 'Views' }).getByRole('tab');
  const labels = await tabs.allInnerTexts();
  assert.equal(labels[0], 'Flame graph');
  assert.equal(await page.locator('#tabs [tabindex="0"]').count(), 1, 'the list is one stop of the Tab key');
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  await page.focus('#tab-graph');
  for (const [key, at] of [['ArrowRight', 1], ['ArrowRight', 2], ['End', labels.length - 1], ['ArrowRight', 0], ['ArrowLeft', labels.length - 1], ['Home', 0]]) {
    await page.keyboard.press(key);
    assert.equal(await focused(), labels[at], key);
    assert.deepEqual(await page.getByRole('tab', { selected: true }).allInnerTexts(), [labels[at]]);
    assert.ok(await page.getByRole('tabpanel', { name: labels[at] }).isVisible(), `${labels[at]} names its panel`);
  }
}));

test('a link skips to the view, and arrow keys move in its graph', () => open('server', '#root=none', async (page) => {
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the view');
  const before = await addressOf(page);
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'flame');
  assert.equal(await addressOf(page), before, 'the address stays that of the view');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  await page.waitForFunction(() => /^__clone3: /.test(document.getElementById('status').textContent));
  await page.click('[data-view=recording]');
  await page.evaluate(() => document.getElementById('skip').click());
  assert.equal(await page.evaluate(() => document.activeElement.id), 'view-recording', 'a view without a graph takes the focus itself');
}));
