// The view of tracks in a browser.

import assert from 'node:assert/strict';

import { addressOf, inBrowser, pixelsOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
// 16 CPUs are drawn low.
const [LABEL_PX, TIMES_PX, CPU_PX, EVENT_PX, STATE_PX, ROW_PX, GAP_PX] = [190, 20, 10, 34, 7, 13, 5];

/** Where a share of the time is on the canvas, `down` pixels below its edge. */
async function point(page, share, down) {
  const box = await page.locator('#tracks canvas').boundingBox();
  return [box.x + LABEL_PX + share * (box.width - LABEL_PX), box.y + down];
}

/** Numbers of CPUs, other events and threads. */
const counts = async (page) => (await textOf(page, '#tracks-note')).match(/\d+/g).map(Number);

test('each CPU, each other event and each thread has a track', () => open('server', '#view=tracks', async (page) => {
  const [cpus, events, threads] = await counts(page);
  assert.ok(cpus >= 2 && events >= 2 && threads >= 2, `${cpus} ${events} ${threads}`);
  assert.ok(Object.keys(await pixelsOf(page, '#tracks canvas')).length > 20, 'they are drawn');
  await page.focus('#tracks');
  const names = [];
  for (let track = 0; track < cpus + events; track++) {
    names.push(await textOf(page, '#status'));
    await page.keyboard.press('ArrowDown');
  }
  assert.match(names[1], /^CPU 1/);
  assert.ok(names.some((name) => /^cpu-clock: up to \S/.test(name)) && names.some((name) => /^sched:sched_switch: up to \S/.test(name)), names.join('; '));
}));

test('the pointer names what ran on a CPU, how many events there were, and a frame of a thread', () => open('server', '#view=tracks', async (page) => {
  const [cpus, events] = await counts(page);
  await page.mouse.move(...await point(page, 0.5, TIMES_PX + CPU_PX / 2));
  await untilText(page, '.tooltip:not([hidden])', /^CPU 0\s+(\S+ \d+ ran at .*, by a sample|.*: nothing recorded)/);
  await page.mouse.move(...await point(page, 0.5, TIMES_PX + cpus * (CPU_PX + GAP_PX) + EVENT_PX / 2));
  await untilText(page, '.tooltip:not([hidden])', / in \S+ \S+ at [\d.]+ m?s/);
  const top = TIMES_PX + cpus * (CPU_PX + GAP_PX) + events * (EVENT_PX + GAP_PX) + STATE_PX + ROW_PX / 2;
  // Some moment of the heaviest thread has a sample.
  for (let share = 0.1; share < 0.9; share += 0.01) {
    await page.mouse.move(...await point(page, share, top));
    if (await page.locator('.tooltip .badge').isVisible()) {
      break;
    }
  }
  await untilText(page, '.tooltip:not([hidden])', /\/kvstored[^]*from [\d.]+/);
}));

test('exact runs come from switches', () => open('waits', '#view=tracks', async (page) => {
  assert.equal((await counts(page))[0], 3);
  await page.mouse.move(...await point(page, 5 / 110, TIMES_PX + CPU_PX / 2));
  await untilText(page, '.tooltip:not([hidden])', /^CPU 0\s+pingpong 11 ran\s+from 0 ns for 10\.0 ms, by switches/);
}));

test('stacks of waits fill the time of threads', () => open('waits', '#view=tracks', async (page) => {
  const before = JSON.stringify(await pixelsOf(page, '#tracks canvas'));
  await page.click('#tracks-waits');
  await untilText(page, '#selected', /of threads’ time$/);
  assert.equal(await page.locator('#tracks-waits').getAttribute('aria-pressed'), 'true');
  assert.notEqual(JSON.stringify(await pixelsOf(page, '#tracks canvas')), before);
  assert.match(await textOf(page, '#tracks-legend'), /Wait: lock/);
  await page.click('#tracks-cpu');
  await untilText(page, '#selected', /sample/);
  await open('server', '#view=tracks', async (other) => assert.ok(await other.locator('#tracks-stacks').isHidden(), 'there are no waits'));
}));

test('dragging selects a range for all views; keys change it, Enter opens the track', () => open('server', '#view=tracks', async (page) => {
  await page.mouse.move(...await point(page, 0.25, 60));
  await page.mouse.down();
  await page.mouse.move(...await point(page, 0.75, 60));
  await page.mouse.up();
  await untilText(page, '#strip-range', /^7\.\d+ s – 22\.\d+ s/);
  await page.focus('#tracks');
  await page.keyboard.press('Escape');
  await untilText(page, '#strip-range', /^$/);
  const [cpus, events] = await counts(page);
  for (let track = 0; track < cpus + events; track++) {
    await page.keyboard.press('ArrowDown');
  }
  await page.keyboard.press('Enter');
  assert.ok(await page.locator('#view-chart').isVisible());
  assert.match(await addressOf(page), /lane=\d+\.\d+/);
}));

test('a double click on an event shows its flame graph', () => open('server', '#view=tracks', async (page) => {
  const [cpus] = await counts(page);
  await page.mouse.dblclick(...await point(page, 0.5, TIMES_PX + cpus * (CPU_PX + GAP_PX) + EVENT_PX / 2));
  assert.ok(await page.locator('#view-graph').isVisible());
  assert.match(await addressOf(page), /event=1/);
}));

test('hostile names are text in tracks', () => open('hostile-waits', '#view=tracks', async (page) => {
  for (let down = 5; down < 300; down += 11) {
    await page.mouse.move(...await point(page, 0.1, down));
  }
  await page.focus('#tracks');
  for (let track = 0; track < 8; track++) {
    await page.keyboard.press('ArrowDown');
  }
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img').count(), 0);
}));
