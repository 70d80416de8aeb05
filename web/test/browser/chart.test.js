// The stack chart in a browser.

import assert from 'node:assert/strict';

import { lossColour, themePaint } from '../../src/colors.js';
import { ACTIVITIES } from '../../src/switches.js';
import { addressOf, inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const ROW_PX = 19;
const TIP = '.tooltip:not([hidden])';

/** Where a share of the time in view is, in a row of the chart. */
async function at(page, share, row) {
  const box = await page.locator('#chart canvas').boundingBox();
  return [box.x + share * box.width, box.y + (row + 0.5) * ROW_PX];
}

async function dragChart(page, from, to, where = '#chart canvas') {
  const box = await page.locator(where).boundingBox();
  await page.mouse.move(box.x + from * box.width, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + ((from + to) / 2) * box.width, box.y + 10);
  assert.ok(await page.locator('.range-mark:not([hidden])').count() === 1, 'the range is marked while it is dragged');
  await page.mouse.move(box.x + to * box.width, box.y + 10);
  await page.mouse.up();
}

const laneText = (page) => page.locator('#chart-lane').evaluate((select) => select.selectedOptions[0].textContent);

test('the tab shows the heaviest thread; threads and CPUs are chosen, and the address keeps that', () => open('server', '', async (page) => {
  await page.click('[data-view=chart]');
  assert.ok(await page.locator('#view-chart').isVisible());
  assert.match(await laneText(page), /^kv-worker-2 \(4214\) · 24\.05 %$/);
  const first = await pixelsOf(page, '#chart canvas');
  await page.selectOption('#chart-lane', '4211.4213');
  assert.match(await addressOf(page), /lane=4211\.4213/);
  const second = await pixelsOf(page, '#chart canvas');
  assert.notDeepEqual(second, first);
  await page.reload();
  assert.deepEqual(await pixelsOf(page, '#chart canvas'), second, 'a link shows the same');
  await page.selectOption('#chart-lane', 'cpu1');
  assert.match(await laneText(page), /^CPU 1/);
  await page.goBack();
  assert.match(await laneText(page), /4213/);
  await page.selectOption('#process', '5120');
  await untilText(page, '#chart-note', /^4211\.4213 has no samples here: the heaviest thread is shown$/);
  assert.match(await laneText(page), /\(51\d\d\)/);
}));

test('dragging selects a range, in the chart and above it, and is no click', () => open('server', '#view=chart', async (page) => {
  await dragChart(page, 0.2, 0.4);
  await untilText(page, '#strip-range', /^(5\.9|6\.0)\d? s – (11\.9|12\.0) s/);
  assert.equal(await page.locator('.range-mark:not([hidden])').count(), 0);
  assert.doesNotMatch(await addressOf(page), /fn=/, 'no function is chosen');
  await dragChart(page, 0.5, 1, '#chart-axis canvas');
  await untilText(page, '#strip-range', /^(8\.9|9\.0)\d? s – (11\.9|12\.0) s/);
  const samples = await textOf(page, '#selected');
  assert.doesNotMatch(samples, /6,677/, 'the other views follow');
  await page.click('#strip-clear');
  assert.match(await textOf(page, '#selected'), /^6,677 samples/);
}));

test('the chart follows the strip, and the wheel in it moves both', () => open('server', '#view=chart', async (page) => {
  const whole = await pixelsOf(page, '#chart canvas');
  await page.focus('#strip-plot');
  await page.keyboard.press('ArrowRight');
  await untilText(page, '#strip-range', /^0 ns – 3\.00 s/);
  assert.notDeepEqual(await pixelsOf(page, '#chart canvas'), whole);
  // At nine tenths of 3 s.
  await page.mouse.move(...await at(page, 0.9, 1));
  await untilText(page, TIP, /^start_thread[^]* from [12]\.\d+ s\n/);
  for (const where of ['#chart canvas', '#chart-axis canvas']) {
    const before = await textOf(page, '#strip-range');
    const box = await page.locator(where).boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + 12);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -120);
    await page.keyboard.up('Control');
    await page.waitForFunction((text) => document.querySelector('#strip-range').textContent !== text, before);
  }
  await untilText(page, '#strip-range', /\(1\.[45]\d s\)/);
  await page.keyboard.down('Shift');
  await page.mouse.wheel(0, 120);
  await page.keyboard.up('Shift');
  await untilText(page, '#strip-range', /^(9\d\d ms|1\.\d+ s) – /);
}));

test('keys move between boxes and change the range', () => open('server', '#view=chart', async (page) => {
  await page.focus('#chart');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^start_thread: [\d.]+ m?s from /);
  await page.keyboard.press('ArrowRight');
  const second = await untilText(page, '#status', /^start_thread: [\d.]+ m?s from [1-9]/);
  await page.keyboard.press('ArrowUp');
  await untilText(page, '#status', /^__clone3: /);
  await page.keyboard.press('ArrowDown');
  assert.equal(await textOf(page, '#status'), second);
  await page.keyboard.press('Enter');
  const [, length] = second.match(/: ([\d.]+ m?s) from/);
  await untilText(page, '#strip-range', new RegExp(`\\(${length.replace('.', '\\.')}\\)`));
  const ranges = [await textOf(page, '#strip-range')];
  for (const key of ['Shift+ArrowRight', '-', '+', 'Shift+ArrowLeft', 'End', 'Home']) {
    await page.keyboard.press(key);
    ranges.push(await textOf(page, '#strip-range'));
    assert.notEqual(ranges.at(-1), ranges.at(-2), key);
  }
  assert.match(ranges.at(-1), /^0 ns – /);
  await page.keyboard.press('Escape');
  await untilText(page, '#strip-range', /^$/);
}));

test('a box tells its name, length and samples; a click chooses its function in all views', () => open('server', '#view=chart', async (page) => {
  await page.mouse.move(...await at(page, 0.4, 4));
  await untilText(page, TIP, /^kv::Worker::event_loop\(\)[^]*user .*kvstored[^]*13\.\d s from 4\.99 s[^]*[\d,]+ samples · .*; one stands for [\d.]+ ms/);
  await page.mouse.click(...await at(page, 0.4, 4));
  assert.match(await addressOf(page), /fn=\d+/);
  await page.click('[data-view=functions]');
  assert.match(await page.locator('#function-table [aria-current=true]').innerText(), /kv::Worker::event_loop/);
  await page.click('[data-view=tree]');
  assert.match(await page.locator('#call-tree [aria-current=true]').first().innerText(), /kv::Worker::event_loop/);
  await page.click('[data-view=sandwich]');
  assert.match(await textOf(page, '#center'), /^kv::Worker::event_loop/);
  await page.click('[data-view=graph]');
  const marked = await pixelsOf(page, '#flame canvas');
  await page.click('[data-view=chart]');
  await page.mouse.click(...await at(page, 0.4, 4));
  assert.doesNotMatch(await addressOf(page), /fn=\d+/, 'a second click chooses none');
  await page.click('[data-view=graph]');
  assert.notDeepEqual(await pixelsOf(page, '#flame canvas'), marked);
  await page.click('[data-view=chart]');
  await page.mouse.dblclick(...await at(page, 0.4, 4));
  assert.match(await textOf(page, '#center'), /^kv::Worker::event_loop/);
}));

test('search marks, the legend fades, colours change', () => open('server', '#view=chart', async (page) => {
  const match = await rgbOf(page, themePaint('light').match);
  assert.equal((await pixelsOf(page, '#chart canvas'))[match] ?? 0, 0);
  await page.fill('#search', 'event_loop');
  await untilText(page, '#matched', /^matched/);
  assert.ok((await pixelsOf(page, '#chart canvas'))[match] > 5000);
  await page.click('#search-clear');
  const faded = await rgbOf(page, themePaint('light').fadedFill);
  assert.equal((await pixelsOf(page, '#chart canvas'))[faded] ?? 0, 0);
  const entry = page.locator('#chart-legend .legend-entry:has-text("User") >> nth=0');
  await entry.focus();
  await page.keyboard.press('Space');
  assert.equal(await entry.getAttribute('aria-pressed'), 'false');
  assert.ok((await pixelsOf(page, '#chart canvas'))[faded] > 5000);
  assert.match(await page.evaluate(() => document.activeElement.textContent), /^User/);
  await page.click('#view-chart [data-colour=binary]');
  assert.match(await textOf(page, '#chart-legend'), /kvstored/);
  await page.click('#view-chart [data-colour=kind]');
}));

test('changes of the call tree hold in the chart, by key and menu', () => open('server', '#view=chart', async (page) => {
  await page.focus('#chart');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('F');
  await untilText(page, '#transforms', /focus: start_thread/);
  await page.mouse.move(...await at(page, 0.4, 0));
  await untilText(page, TIP, /^start_thread/);
  await page.mouse.click(...await at(page, 0.4, 3), { button: 'right' });
  await page.click('[role=menuitem]:has-text("Focus on this subtree")');
  await untilText(page, '#transforms', /subtree: kv::Worker::event_loop/);
  await page.keyboard.press('u');
  await page.mouse.click(...await at(page, 0.4, 3), { button: 'right' });
  await page.click('[role=menuitem]:has-text("Select its time")');
  await untilText(page, '#strip-range', /\(13\.\d s\)/);
  await page.focus('#chart');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('m');
  await page.click('[role=menuitem]:has-text("Show in the graph")');
  assert.deepEqual((await page.locator('#breadcrumb button').allInnerTexts()).at(-1), 'kv::Connection::on_readable');
}));

test('losses are marked in the chart', () => open('server', '#view=chart', async (page) => {
  const loss = await rgbOf(page, lossColour('light'));
  assert.ok((await pixelsOf(page, '#chart-axis canvas'))[loss] >= 12 * 4);
  await page.focus('#strip-plot');
  await page.keyboard.press('ArrowRight');
  assert.equal((await pixelsOf(page, '#chart-axis canvas'))[loss] ?? 0, 0, 'the first tenth has none');
}));

test('CPU time and waits are boxes of one chart, and a line has the states of the thread', () => open('waits', '#view=chart&event=1&lane=11.11', async (page) => {
  assert.match(await laneText(page), /^pingpong \(11\)/);
  const running = ACTIVITIES.find(({ id }) => id === 'running').light;
  assert.ok((await pixelsOf(page, '#chart-axis canvas'))[await rgbOf(page, running)] > 500);
  // A wait of 10 ms from 10 ms on; its stack ends with the frame of its class.
  const stack = [];
  for (let row = 0; row < 12; row++) {
    await page.mouse.move(...await at(page, 15 / 110, row));
    if (await page.locator(TIP).count() > 0) {
      stack.push((await textOf(page, TIP)).split('\n')[0]);
    }
  }
  assert.equal(stack[0], 'start_thread');
  assert.match(stack.at(-1), /^\[(lock|other) wait\]$/);
  await page.mouse.move(...await at(page, 15 / 110, stack.length - 1));
  await untilText(page, TIP, /^\[lock wait\][^]*10\.0 ms from 10\.0\d* ms$/);
  const axis = await page.locator('#chart-axis canvas').boundingBox();
  await page.mouse.move(axis.x + (15 / 110) * axis.width, axis.y + 26);
  await untilText(page, TIP, /^pingpong 11: waiting[^]*from 10\.0 ms for 10\.0 ms/);
}));

test('pages without times have no chart; others of all kinds have one', async () => {
  for (const name of ['one', 'empty', 'compare']) {
    await open(name, '#view=chart', async (page) => {
      assert.ok(await page.locator('[data-view=chart]').isHidden(), name);
      assert.ok(await page.locator('#view-chart').isHidden(), name);
    });
  }
  await open('nameless', '#view=chart', async (page) => {
    await page.mouse.move(...await at(page, 0.5, 0));
    await untilText(page, TIP, /^0x[0-9a-f]+|^\[/);
  });
  await open('samples', '#view=chart', async (page) => {
    await untilText(page, '#chart-note', /^samples are joined in steps of 5\.00 s: their order within is not known$/);
    assert.equal(await page.locator('#chart-lane optgroup').count(), 1, 'no CPUs are known');
  });
  await open('threads', '#view=chart&lane=none', async (page) => {
    const options = page.locator('#chart-lane optgroup:first-child option');
    assert.equal(await options.count(), 2001);
    assert.match(await options.last().innerText(), /^… 3,000 more with fewer samples$/);
    await page.selectOption('#event', '0');
    await page.selectOption('#process', { index: 1 });
    assert.equal(await options.count() <= 10, true);
  });
  await open('server', '#view=chart&event=1&comm=none', async (page) => {
    await untilText(page, '#chart-empty', /^No samples\s+No thread has samples of cpu-clock in this selection\.$/);
    await page.selectOption('#comm', '');
    assert.ok(await page.locator('#chart').isVisible());
  });
});

test('hostile names are text in the chart', () => open('hostile', '#view=chart', async (page) => {
  await page.focus('#chart');
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'm']) {
    await page.keyboard.press(key);
  }
  await page.keyboard.press('Escape');
  await page.mouse.move(...await at(page, 0.5, 3));
  const texts = await page.locator(`${TIP}, #status, #chart-lane`).allInnerTexts();
  assert.doesNotMatch(texts.join(''), /[\u0000-\u0009\u000b-\u001f\u200b\u202e]/u);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img, iframe, object, embed').count(), 0);
}));
