// The view of waits in a browser.

import assert from 'node:assert/strict';

import { cssColour, waitKind } from '../../src/colors.js';
import { ACTIVITIES } from '../../src/switches.js';
import { addressOf, inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const stacks = async (page) => (await page.locator('#switch-table td.stack').allInnerTexts()).map((text) => text.replace(/[▸▾]/, '').trim());

/** Width of the labels in front of the lanes, and height of a lane. */
const [LABEL_PX, LANE_PX, AXIS_PX] = [170, 20, 20];

/** Lanes of the three threads: the one that ran most stands first. */
const LANE_OF = [1, 2, 0];

/** Where a thread's lane is at a share of the time line. */
async function point(page, thread, share) {
  const box = await page.locator('#timeline canvas').boundingBox();
  return [box.x + LABEL_PX + share * (box.width - LABEL_PX), box.y + AXIS_PX + LANE_PX * LANE_OF[thread] + LANE_PX / 2];
}

test('the tree opens from either end', () => open('waits', '#waits=tree', async (page) => {
  assert.ok(await page.locator('#view-switches').isVisible());
  assert.match(await textOf(page, '#switch-facts'), /18 \(9 sync, 9 preemption\)/);
  assert.deepEqual(await stacks(page), ['schedule', 'futex_wait', 'irqentry_exit', 'compute']);
  const cells = await page.locator('#switch-table tbody tr').first().locator('td').allInnerTexts();
  assert.deepEqual(cells.slice(0, 5), ['0 ns', '100 ms', '9', '9', '1']);
  await page.click('#switch-table tr:has-text("futex_wait") button');
  assert.deepEqual((await stacks(page)).slice(1, 7), ['futex_wait', 'do_syscall_64', 'syscall', 'await_turn', 'start_thread', 'irqentry_exit']);
  await page.click('#switch-table tr:has-text("schedule") button');
  assert.deepEqual(await stacks(page), ['schedule', 'compute']);
  await page.click('[data-direction=caller]');
  assert.equal((await stacks(page))[0], 'start_thread');
  assert.match(await addressOf(page), /direction=caller/);
}));

test('digits open the tabs from left to right', async () => {
  for (const [name, views] of [['waits', 8], ['server', 8], ['large', 7]]) {
    await open(name, '', async (page) => {
      const tabs = page.locator('[data-view]:visible');
      assert.equal(await tabs.count(), views);
      for (let number = 1; number <= views; number += 1) {
        await page.keyboard.press(String(number));
        const view = await tabs.nth(number - 1).getAttribute('data-view');
        assert.ok(await page.locator(`#view-${view}`).isVisible(), `${name} ${number}: ${view}`);
      }
    });
  }
});

test('the time line tells what is under the pointer', () => open('waits', '#waits=longest', async (page) => {
  const colours = await pixelsOf(page, '#timeline canvas');
  const drawn = [...ACTIVITIES.filter(({ id }) => id !== 'waiting').map(({ light }) => light), cssColour(waitKind('lock').light)];
  for (const colour of drawn) {
    assert.ok(colours[await rgbOf(page, colour)] > 100, colour);
  }
  assert.match(await textOf(page, '#switch-legend'), /^running\s+waits for a CPU\s+several, too short to tell apart\s+wait: lock$/);
  await page.mouse.move(...await point(page, 0, 15 / 110));
  await untilText(page, '.tooltip:not([hidden])', /pingpong 11: waiting[^]*from 10.0 ms for 10.0 ms[^]*CPU 0[^]*await_turn ← start_thread[^]*innermost: schedule ← futex_wait/);
  await untilText(page, '.tooltip:not([hidden])', /woken after 9.00 ms by pingpong 12, then runnable for 1.00 ms\s+try_to_wake_up ← futex_wake/);
  await page.mouse.move(...await point(page, 0, 35 / 110));
  await untilText(page, '.tooltip:not([hidden])', /woken after 9.00 ms by an interrupt of pingpong 13, then runnable for 1.00 ms$/);
  await page.mouse.move(...await point(page, 0, 95 / 110));
  assert.doesNotMatch(await untilText(page, '.tooltip:not([hidden])', /from 90.0 ms/), /woken/);
  await page.mouse.move(...await point(page, 2, 60 / 110));
  await untilText(page, '.tooltip:not([hidden])', /pingpong 13: preempted[^]*from 50.0 ms for 20.0 ms[^]*CPU 2[^]*irqentry_exit[^]*lossy/);
  await page.mouse.move(...await point(page, 2, 80 / 110));
  await untilText(page, '.tooltip:not([hidden])', /1,234 intervals: running 25.0 ms, preempted 4.00 ms, waiting 1.00 ms/);
  assert.match(await textOf(page, '#timeline-range'), /0 ns to 110 ms; intervals shorter than 64.0 µs are joined: a page holds 23/);
}));

test('the legend of waits keeps the keyboard where it is', () => open('waits', '#waits=longest', async (page) => {
  const entry = page.locator('#switch-legend .legend-entry');
  await entry.focus();
  for (const pressed of ['false', 'true']) {
    await page.keyboard.press('Enter');
    assert.equal(await entry.getAttribute('aria-pressed'), pressed);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'wait: lock');
  }
}));

test('a part of the time is drawn larger', () => open('waits', '#waits=longest', async (page) => {
  await page.mouse.move(...await point(page, 1, 0.5));
  await page.mouse.down();
  await page.mouse.move(...await point(page, 1, 1));
  await page.mouse.up();
  await untilText(page, '#timeline-range', /^55.\d ms to 110 ms/);
  await page.click('#timeline-whole');
  await untilText(page, '#timeline-range', /^0 ns to 110 ms/);
}));

test('the lanes follow selectors and the range of time, and choose it', () => open('waits', '#waits=longest', async (page) => {
  await page.mouse.move(...await point(page, 1, 0.5));
  await page.mouse.down();
  await page.mouse.move(...await point(page, 1, 1));
  await page.mouse.up();
  await untilText(page, '#strip-range', /^55\.\d ms – 110 ms/);
  await page.click('#strip-clear');
  await untilText(page, '#timeline-range', /^0 ns to 110 ms/);
  await page.selectOption('#thread', '13');
  await page.mouse.move(...await point(page, 2, 60 / 110));
  await untilText(page, '.tooltip:not([hidden])', /pingpong 13: preempted/);
  await page.mouse.move(...await point(page, 1, 60 / 110));
  assert.equal(await page.locator('.tooltip:not([hidden])').count(), 0, 'no other lane is left');
}));

test('CPU time and waits stand in one graph, which a range of time filters', () => open('waits', '#view=graph&root=none&shape=icicle', async (page) => {
  await page.selectOption('#event', '1');
  // 90 ms on a CPU, 91 ms waiting, 9 ms preempted, and 1 ms that a loss touches.
  await untilText(page, '#selected', /^191 ms of threads’ time$/);
  assert.match(await textOf(page, '#legend'), /Wait: lock|Wait: queue|Wait: other/);
  assert.ok(await page.locator('[data-weight=samples]').isDisabled());
  await page.click('[data-view=functions]');
  const rows = (await page.locator('#function-table .table-row').allInnerTexts()).join('\n');
  assert.match(rows, /\[preempted\]/);
  assert.match(rows, /\[(lock|queue|other) wait\]/);
  await page.click('[data-view=graph]');
  const whole = await textOf(page, '#selected');
  await page.focus('#strip-plot');
  await page.keyboard.press('ArrowRight');
  await untilText(page, '#selected', /^(?!191 ms)[\d.]+ (ms|µs) of threads’ time$/);
  await page.keyboard.press('Escape');
  await untilText(page, '#selected', new RegExp(`^${whole}$`));
}));

test('the address holds the view; pages without waits have no such view', async () => {
  await open('waits', '#waits=longest', async (page) => {
    await page.click('[data-view=graph]');
    assert.match(await addressOf(page), /view=graph/);
    await page.reload();
    assert.ok(await page.locator('#view-graph').isVisible());
  });
  await open('server', '#view=switches', async (page) => {
    assert.ok(await page.locator('#view-graph').isVisible());
    assert.ok(await page.locator('[data-view=switches]').isHidden());
  });
});

const WAIT_ROW = '#longest-waits .list-row';
const waits = (page) => page.locator(WAIT_ROW).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));

test('the longest waits follow the range of time and the selectors', () => open('waits', '#waits=longest', async (page) => {
  const all = await waits(page);
  assert.deepEqual(all[0], ['10.0 ms', '10.0 ms', 'pingpong 11', 'lock', 'await_turn ← start_thread', 'pingpong 12']);
  assert.equal(all.length, 10);
  assert.match(await textOf(page, '#longest-count'), /^10 waits; those within joined intervals, shorter than 64\.0 µs, are not listed$/);
  await page.mouse.move(...await point(page, 1, 0.5));
  await page.mouse.down();
  await page.mouse.move(...await point(page, 1, 1));
  await page.mouse.up();
  await untilText(page, '#longest-count', /^[4-6] waits/);
  assert.ok((await waits(page)).every(([began]) => Number.parseFloat(began) >= 50));
  await page.selectOption('#thread', '12');
  assert.ok((await waits(page)).every(([, , thread]) => thread === 'pingpong 12'));
  await page.selectOption('#thread', '13');
  await untilText(page, '#longest-count', /^0 waits/);
  await page.click('[data-waits=tree]');
  assert.ok(await page.locator('#switch-table').isVisible() && await page.locator('#longest-waits').isHidden());
}));

test('kinds of waits are left out of the longest ones, also by a link', () => open('waits', '#waits=longest', async (page) => {
  const lock = page.getByRole('button', { name: 'wait: lock' });
  await lock.click();
  await untilText(page, '#longest-count', /^0 waits/);
  assert.equal(await lock.getAttribute('aria-pressed'), 'false');
  assert.match(await addressOf(page), /without=lock/);
  await page.reload();
  await untilText(page, '#longest-count', /^0 waits/);
  await lock.click();
  await untilText(page, '#longest-count', /^10 waits/);
}));

/** Cells of the first row of the call tree of waits. */
const firstRow = async (page) => page.locator('#switch-table tbody tr').first().locator('td').allInnerTexts();

test('the call tree of waits follows selectors and the range of time', () => open('waits', '#waits=tree', async (page) => {
  assert.deepEqual((await firstRow(page)).slice(0, 5), ['0 ns', '100 ms', '9', '9', '1']);
  assert.equal(await textOf(page, '#tree-note'), '');
  await page.selectOption('#thread', '12');
  assert.deepEqual((await firstRow(page)).slice(0, 4), ['0 ns', '41.0 ms', '4', '0']);
  await page.selectOption('#thread', '13');
  assert.deepEqual((await firstRow(page)).slice(0, 5), ['0 ns', '9.00 ms', '0', '9', '1']);
  await page.selectOption('#thread', '');
  await page.click('#switch-table tr:has-text("futex_wait") button');
  assert.ok((await stacks(page)).includes('await_turn'));
  await page.goto(`${(await addressOf(page)).replace(/#.*/, '')}#waits=tree&range=0-50000000`);
  await untilText(page, '#tree-note', /^a wait counts where a part of it lies in the range; its time is that part; waits within joined intervals, shorter than 64\.0 µs, are left out$/);
  assert.deepEqual((await firstRow(page)).slice(0, 4), ['0 ns', '36.0 ms', '4', '0']);
  assert.ok((await stacks(page)).includes('await_turn'), 'open rows stay open');
  assert.ok(!(await stacks(page)).includes('irqentry_exit'), 'that was later');
  await page.click('[data-direction=caller]');
  assert.equal((await stacks(page))[0], 'start_thread');
  // CPU time is that of samples in the range.
  assert.match((await firstRow(page))[0], /^[1-9]\d?\.\d ms$/);
  await page.focus('#strip-plot');
  await page.keyboard.press('Escape');
  await untilText(page, '#tree-note', /^$/);
  assert.deepEqual((await firstRow(page)).slice(2, 4), ['9', '9']);
}));

test('hostile names are text in lanes, table and tree of waits', () => open('hostile-waits', '', async (page) => {
  for (const table of ['sites', 'longest', 'tree']) {
    await page.click(`[data-waits=${table}]`);
    const text = await textOf(page, '#view-switches');
    assert.ok(text.includes('</script><img src=x') || text.includes('window.pwned'), text);
    assert.doesNotMatch(text, /[\u202a-\u202e\u2066-\u2069\u0007]/);
    await page.mouse.move(...await point(page, 0, 15 / 110));
    await untilText(page, '.tooltip:not([hidden])', /waiting/);
    await page.mouse.move(5, 5);
  }
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img').count(), 0);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'a long name makes nothing wider');
}));

test('a wait of the table stands out in its lane, with the wake-up as an arrow', () => open('waits', '#waits=longest', async (page) => {
  const dark = async () => {
    const pixels = await pixelsOf(page, '#timeline canvas');
    return pixels[await rgbOf(page, '#1d1a16')] ?? 0;
  };
  const before = await dark();
  await page.click(`${WAIT_ROW} >> nth=0`);
  const chosen = await dark();
  assert.ok(chosen > before + 150, `outline: ${before} ${chosen}`);
  await untilText(page, '#status', /^pingpong 11: waiting; from 10\.0 ms for 10\.0 ms/);
  // A wait without a waker has an outline alone.
  await page.click(`${WAIT_ROW} >> nth=4`);
  const alone = await dark();
  assert.ok(alone < chosen - 20, `an arrow less: ${chosen} ${alone}`);
  await page.focus('#longest-waits .list-scroller');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /from 30\.0 ms/);
  await page.keyboard.press('Enter');
  await untilText(page, '#strip-range', /^27\.\d ms – 42\.\d ms/);
  await page.keyboard.press('Escape');
  await untilText(page, '#status', /^$/);
}));

test('a click on a span chooses its row, and hovering shows its arrow', () => open('waits', '#waits=longest', async (page) => {
  await page.mouse.click(...await point(page, 1, 85 / 110));
  assert.match(await textOf(page, `${WAIT_ROW}.current`), /^80\.0 ms\s+10\.0 ms\s+pingpong 12/);
  const plain = JSON.stringify(await pixelsOf(page, '#timeline canvas'));
  await page.mouse.move(...await point(page, 0, 55 / 110));
  assert.notEqual(JSON.stringify(await pixelsOf(page, '#timeline canvas')), plain);
}));

const SITE_ROW = '#wait-sites .list-row';

test('waits open by call site; a row outlines its longest wait, and kinds and selectors choose', () => open('waits', '', async (page) => {
  const rows = () => page.locator(SITE_ROW).evaluateAll((all) => all.map((row) => [...row.children].map(({ textContent }) => textContent)));
  const all = await rows();
  assert.deepEqual(all[0].slice(3), ['lock', 'pingpong ×2', 'await_turn ← start_thread'], JSON.stringify(all));
  assert.equal(all[0][2], '10.0 ms');
  assert.match(await textOf(page, '#site-note'), /^\d call sites? held work up for \d/);
  await page.click(`${SITE_ROW} >> nth=0`);
  await untilText(page, '#status', /^pingpong 1[12]: waiting; from .* for 10\.0 ms/);
  await page.focus('#wait-sites .list-scroller');
  await page.keyboard.press('Escape');
  await untilText(page, '#status', /^$/);
  await page.getByRole('button', { name: 'wait: lock' }).click();
  assert.ok((await rows()).every(([, , , kind]) => kind !== 'lock'));
  await page.getByRole('button', { name: 'wait: lock' }).click();
  await page.selectOption('#thread', '13');
  assert.ok((await rows()).every(([, , , kind]) => kind !== 'lock'), 'that thread has no lock');
}));

test('idle loops and threads of the kernel are hidden by a click, also by a link', () => open('waits', '', async (page) => {
  for (const [id, word] of [['hideIdle', /hideIdle=1/], ['hideKernel', /hideKernel=1/]]) {
    await page.click(`#view-switches [data-flag=${id}]`);
    assert.equal(await page.locator(`#view-switches [data-flag=${id}]`).getAttribute('aria-pressed'), 'true');
    assert.match(await addressOf(page), word);
    await page.reload();
    assert.equal(await page.locator(`#view-switches [data-flag=${id}]`).getAttribute('aria-pressed'), 'true');
  }
}));
