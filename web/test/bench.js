// Measures a page of 10^6 samples of 64 CPUs in Chromium: its size, the time to its first picture, and that of a
// brush. Prints medians with minimum and maximum. `web/test/bench.sh` makes the page and starts this.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ARGUMENTS, findChromium } from './browser/browser.js';

const ROUNDS = 7;
const BRUSHES = 40;
const LEFT_PX = 58;

const [path] = process.argv.slice(2);
const executablePath = findChromium();
if (path === undefined || executablePath === undefined) {
  throw new Error(path === undefined ? 'usage: bench.js PAGE' : 'no Chromium: set CHROMIUM, or install the package chromium');
}
const { chromium } = await import('playwright-core');

/** CPU time that the main thread has had for tasks, in milliseconds. On a busy machine it says more than the clock. */
async function taskTime(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
}

/** From the start of the navigation to the end of the frame that shows the graph. */
async function firstPaint(page) {
  await page.goto('about:blank');
  await page.goto(pathToFileURL(path).href);
  await page.waitForSelector('html[data-state=ready]');
  return page.evaluate(() => new Promise((done) => {
    requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  }));
}

/** Times from a move of the pointer to the end of the frame that shows its range. */
async function brushes(page, session, view) {
  await page.click(`[data-view=${view}]`);
  const box = await page.locator('#strip-plot canvas').boundingBox();
  const at = (share) => box.x + LEFT_PX + share * (box.width - LEFT_PX);
  await page.mouse.move(at(0.1), box.y + 30);
  await page.mouse.down();
  const before = await taskTime(session);
  const times = await page.evaluate(async ({ count, from, to, y }) => {
    const canvas = document.querySelector('#strip-plot canvas');
    const measured = [];
    for (let i = 1; i <= count; i++) {
      const start = performance.now();
      const clientX = from + ((to - from) * i) / count;
      canvas.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY: y, pointerId: 1, bubbles: true }));
      // Two frames: the change is made in the first, and the graph is painted by the end of the second.
      await new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
      });
      measured.push(performance.now() - start);
    }
    return measured;
  }, { count: BRUSHES, from: at(0.12), to: at(0.9), y: box.y + 30 });
  const tasks = (await taskTime(session) - before) / BRUSHES;
  if (!/ – /.test(await page.locator('#strip-range').innerText())) {
    throw new Error('the brush chose no range');
  }
  await page.mouse.up();
  await page.click('#strip-clear');
  return { times, tasks };
}

/** Times from the choice of a thread for the stack chart to the end of the frame that shows it. */
async function firstCharts(page, count) {
  await page.click('[data-view=chart]');
  return page.evaluate(async (rounds) => {
    const select = document.querySelector('#chart-lane');
    const measured = [];
    for (let i = 1; i <= rounds; i++) {
      const start = performance.now();
      select.value = select.options[i].value;
      select.dispatchEvent(new Event('change'));
      await new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
      });
      measured.push(performance.now() - start);
    }
    return measured;
  }, count);
}

function row(name, values, unit, goal, tasks = null) {
  const sorted = [...values].sort((a, b) => a - b);
  const [median, low, high] = [sorted[sorted.length >> 1], sorted[0], sorted.at(-1)].map((value) => value.toFixed(value < 10 ? 1 : 0));
  console.log(`| ${name} | ${median} (${low}–${high}) ${unit} | ${tasks === null ? '' : `${tasks.toFixed(0)} ms`} | ${goal} |`);
}

const folder = mkdtempSync(join(tmpdir(), 'whit-bench-page-'));
const context = await chromium.launchPersistentContext(folder, {
  executablePath, headless: true, args: ARGUMENTS, viewport: { width: 1920, height: 1000 },
});
try {
  const page = await context.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const [paints, paintTasks] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    const before = await taskTime(session);
    paints.push(await firstPaint(page));
    paintTasks.push(await taskTime(session) - before);
  }
  const samples = await page.locator('#selected').innerText();
  const facts = await page.evaluate(() => JSON.parse(document.getElementById('profile').textContent).moments);
  console.log(`${await context.browser()?.version() ?? 'Chromium'}, ${samples}, ${facts.count} entries in buckets of ${facts.bucketNs} ns\n`);
  console.log('| | median (min–max) | main thread, on its CPU | goal |\n|---|--:|--:|--:|');
  row('size', [statSync(path).size / 2 ** 20], 'MiB', '30 MB');
  row('first picture', paints, 'ms', '1,000 ms', paintTasks.sort((a, b) => a - b)[ROUNDS >> 1]);
  const charts = await firstCharts(page, ROUNDS);
  row('stack chart of another thread', charts, 'ms', '');
  for (const view of ['graph', 'tracks', 'chart', 'functions', 'sandwich']) {
    const { times, tasks } = await brushes(page, session, view);
    row(`brush, ${view}`, times, 'ms', '100 ms', tasks);
  }
  if (errors.length > 0) {
    throw new Error(errors.join('\n'));
  }
} finally {
  await context.close();
  rmSync(folder, { recursive: true, force: true });
}
