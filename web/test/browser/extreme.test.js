// Recordings that are unusually large or poor, and hostile ones over loopback: every view opens and says something sensible.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { addressOf, inBrowser, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();

/** Opens each view that a page has, and checks that none is empty or wider than the window. */
async function walk(page) {
  const tabs = page.locator('[data-view]:visible');
  const count = await tabs.count();
  assert.ok(count >= 5, `${count} views`);
  for (let at = 0; at < count; at++) {
    await tabs.nth(at).click();
    const view = await tabs.nth(at).getAttribute('data-view');
    assert.ok(await page.locator(`#view-${view}`).isVisible(), view);
    const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(scroll <= inner, `${view}: ${scroll} in ${inner}`);
  }
}

for (const name of ['threads', 'samples', 'nameless', 'one', 'empty', 'hostile', 'hostile-waits', 'requests', 'compare']) {
  test(`${name}: each view opens, in either theme and width`, async () => {
    for (const [width, colorScheme] of [[1280, 'light'], [1920, 'dark']]) {
      await open(name, '', async (page) => {
        await page.setViewportSize({ width, height: 900 });
        await walk(page);
      }, { colorScheme });
    }
  });
}

test('5,000 threads: selectors, lanes and waits', () => open('threads', '#waits=longest', async (page) => {
  assert.match(await textOf(page, '#thread option:first-child'), /5,?000/);
  assert.match(await textOf(page, '#longest-count'), /^200 waits of 40,000: a page lists 200/);
  await page.selectOption('#thread', '5999');
  await untilText(page, '#longest-count', /^8 waits/);
  await page.click('[data-waits=tree]');
  const cells = await page.locator('#switch-table tbody tr').first().locator('td').allInnerTexts();
  assert.deepEqual(cells.slice(1, 3), ['400 ms', '8']);
  await page.selectOption('#thread', '');
  // The last lane is drawn where it is scrolled to.
  await page.locator('#timeline').evaluate((lanes) => lanes.scrollTo(0, lanes.scrollHeight));
  const box = await page.locator('#timeline canvas').boundingBox();
  await page.mouse.move(box.x + 200, box.y + box.height - 10);
  await untilText(page, '.tooltip:not([hidden])', /pool-499 5999/);
}));

test('10,000,000 samples: sums are whole, and the page says how exact a range is', () => open('samples', '', async (page) => {
  assert.match(await textOf(page, '#selected'), /^10,000,000 samples/);
  await page.click('#warnings summary');
  assert.match(await textOf(page, '#warnings'), /more samples than a page keeps one by one[^]*within 5\.00 s/);
  // CPUs are not in such a recording: an address that asks for them shows processes.
  await page.goto(`${(await addressOf(page)).replace(/#.*/, '')}#by=cpu`);
  assert.equal(await page.locator('#strip-by').inputValue(), 'process');
  await page.focus('#strip-plot');
  await page.keyboard.press('ArrowRight');
  // A tenth of the 200 pieces, and the one that the range ends in.
  await untilText(page, '#selected', /^1,0[05]0,000 samples/);
}));

test('without symbols, frames have addresses', () => open('nameless', '#view=functions', async (page) => {
  const names = await page.locator('#function-table .table-row[data-fn] .link').allInnerTexts();
  assert.ok(names.length > 5 && names.every((name) => /^0x7f[0-9a-f]+$/.test(name)), names.slice(0, 3).join());
}));

test('hostile names are text in a served page', async () => {
  const program = process.env.WHIT_TEST_SERVER;
  assert.ok(program, 'WHIT_TEST_SERVER names no program: run web/test/run.sh');
  const server = spawn(program, ['hostile'], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    let address;
    for await (const line of createInterface({ input: server.stdout })) {
      address = line;
      break;
    }
    await open('', '#range=0-500000', async (page) => {
      await untilText(page, '#selected', /^5 sample/);
      await walk(page);
      assert.match(await textOf(page, '#title'), /^<\/script><img src=x onerror="window\.pwned = 1">\\u\{202e\}\\x1b\[2J$/);
      assert.match(await textOf(page, '#process option:last-child'), /^<\/script><img/);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      assert.equal(await page.locator('img').count(), 0);
    }, { server: address });
  } finally {
    server.stdin.end();
  }
});
