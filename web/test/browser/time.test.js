// The strip of time, groups at the root and changes of the call tree, in a browser.

import assert from 'node:assert/strict';

import { addressOf, inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
/** Width of the labels in front of the plot. */
const LEFT_PX = 58;

/** Where a share of the recorded time is in the strip. */
async function at(page, share, down = 0.5) {
  const box = await page.locator('#strip-plot canvas').boundingBox();
  return [box.x + LEFT_PX + share * (box.width - LEFT_PX), box.y + down * 74];
}

async function drag(page, from, to, [downFrom, downTo] = [0.5, 0.5]) {
  await page.mouse.move(...await at(page, from, downFrom));
  await page.mouse.down();
  await page.mouse.move(...await at(page, (from + to) / 2, downTo));
  await page.mouse.move(...await at(page, to, downTo));
  await page.mouse.up();
}

const samples = async (page) => Number((await textOf(page, '#selected')).match(/^([\d,]+) sample/)[1].replace(/,/g, ''));
const roots = (page) => page.locator('#breadcrumb button').evaluateAll((buttons) => buttons.map(({ title }) => title));

test('dragging chooses a range that every view follows', () => open('server', '', async (page) => {
  assert.equal(await samples(page), 6677);
  await drag(page, 0.1, 0.2);
  await untilText(page, '#strip-range', /^(2\.9|3\.0).* s – (5\.9|6\.0).* s/);
  const inRange = await samples(page);
  assert.ok(inRange > 300 && inRange < 1000, `${inRange}`);
  // The scripts run in the second half, the compactor from three tenths on.
  assert.match(await textOf(page, '#process option[value="5120"]'), / · 0 %$/);
  await page.click('[data-view=functions]');
  assert.equal(await page.locator('#function-table .table-row[data-fn]:has-text("renderRow")').count(), 0);
  await page.fill('#filter', 'Compactor');
  await untilText(page, '#function-count', /^0 of/);
  await page.fill('#filter', '');
  await untilText(page, '.table-row[aria-rowindex="2"] .self .half-width', /^±\d+\.\d/);
  const half = Number((await textOf(page, '.table-row[aria-rowindex="2"] .self .half-width')).slice(1));
  await page.click('[data-view=sandwich]');
  const inCenter = await textOf(page, '#center');
  await untilText(page, '#center', /±\d/);
  await page.click('#strip-clear');
  await page.click('[data-view=functions]');
  await untilText(page, '.table-row[aria-rowindex="2"] .self .half-width', /^±\d+\.\d/);
  const wholeHalf = Number((await textOf(page, '.table-row[aria-rowindex="2"] .self .half-width')).slice(1));
  assert.ok(wholeHalf < half, `all of the time tells more: ${wholeHalf} ${half}`);
  await page.click('[data-view=sandwich]');
  assert.notEqual(await textOf(page, '#center'), inCenter);
  assert.equal(await samples(page), 6677);
}));

test('the address holds the range; a click beside clears it; edges move', () => open('server', '#range=3000000000-6000000000', async (page) => {
  const inRange = await samples(page);
  assert.ok(inRange < 1000);
  await page.mouse.move(...await at(page, 0.2));
  await page.mouse.down();
  await page.mouse.move(...await at(page, 0.4));
  await page.mouse.up();
  await untilText(page, '#strip-range', /^3\.00 s – 1[12]\.\d s/);
  assert.match(await addressOf(page), /range=3000000000-1[12]\d+/);
  assert.ok(await samples(page) > inRange);
  await page.click('#back');
  await untilText(page, '#strip-range', /^3\.00 s – 6\.00 s/);
  assert.equal(await samples(page), inRange);
  await page.mouse.click(...await at(page, 0.7));
  await untilText(page, '#strip-range', /^$/);
  assert.equal(await samples(page), 6677);
}));

test('keys move, stretch and clear the range', () => open('server', '', async (page) => {
  await page.focus('#strip-plot');
  await page.keyboard.press('ArrowRight');
  await untilText(page, '#strip-range', /^0 ns – 3\.00 s/);
  await page.keyboard.press('ArrowRight');
  await untilText(page, '#strip-range', /^300 ms – 3\.30 s \(3\.00 s\)/);
  await page.keyboard.press('Shift+ArrowRight');
  await untilText(page, '#strip-range', /\(3\.30 s\)/);
  await page.keyboard.press('+');
  await untilText(page, '#strip-range', /\(1\.65 s\)/);
  await page.keyboard.press('-');
  await untilText(page, '#strip-range', /\(3\.30 s\)/);
  await page.keyboard.press('End');
  await untilText(page, '#strip-range', /– 30\.0 s/);
  assert.ok(await samples(page) < 1200);
  await page.keyboard.press('Escape');
  assert.equal(await samples(page), 6677);
  assert.ok(await page.locator('#strip-clear').isHidden());
}));

test('the strip stacks by what is asked, marks losses, and tells what is under the pointer', () => open('server', '', async (page) => {
  assert.match(await textOf(page, '#strip-legend'), /kvstored \(4211\)\s*node \(5120\)/);
  assert.ok((await pixelsOf(page, '#strip-plot canvas'))[await rgbOf(page, '#a81c1c')] > 20, 'the loss is marked');
  await page.mouse.move(...await at(page, 0.75));
  await untilText(page, '#strip-hover', /^22\.\d s: .*\/s · kvstored \(4211\) .*\/s/);
  await page.selectOption('#strip-by', 'thread');
  await untilText(page, '#strip-legend', /kv-worker-0 \(4212\)/);
  await page.selectOption('#strip-by', 'cgroup');
  await untilText(page, '#strip-legend', /kvstored\.service/);
  await page.selectOption('#event', '1');
  await page.selectOption('#strip-by', 'cpu');
  await untilText(page, '#strip-legend', /CPU \d+.*others/s);
  await page.mouse.move(...await at(page, 0.25));
  await untilText(page, '#strip-hover', /s: [\d.]+ CPUs/);
  assert.match(await addressOf(page), /by=cpu/);
}));

test('the heat map chooses a range from cell to cell', () => open('server', '', async (page) => {
  const areas = await pixelsOf(page, '#strip-plot canvas');
  await page.click('[data-strip=heat]');
  assert.notDeepEqual(await pixelsOf(page, '#strip-plot canvas'), areas);
  await page.mouse.move(...await at(page, 0.5, 0.5));
  await untilText(page, '#strip-hover', /^1[45]\.\d+ s to 1[45]\.\d+ s$/);
  await drag(page, 0.2, 0.4, [0.1, 0.9]);
  await untilText(page, '#strip-range', /^(5\.[89]|6\.0)\d* s – 1[12]\.\d+ s/);
  assert.match(await addressOf(page), /strip=heat/);
  assert.ok(await samples(page) < 2500);
}));

test('programs are not merged at their first function', () => open('server', '#shape=icicle', async (page) => {
  await page.focus('#flame');
  for (const [root, name] of [['process', 'kvstored (4211)'], ['thread', /kv-worker-\d \(42\d+\)/], ['command', /kv-worker-\d/],
    ['cgroup', '/system.slice/kvstored.service'], ['cpu', /CPU \d+/]]) {
    await page.selectOption('#root', root);
    await page.focus('#flame');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const [, first] = await roots(page);
    assert.ok(name instanceof RegExp ? name.test(first) : first === name, `${root}: ${first}`);
    await page.keyboard.press('Escape');
  }
  assert.match(await addressOf(page), /root=cpu/);
}));

test('in order of time, a frame is there again and again', () => open('server', '#root=thread&shape=icicle', async (page) => {
  const before = await pixelsOf(page, '#flame canvas');
  await page.click('[data-order=time]');
  assert.notDeepEqual(await pixelsOf(page, '#flame canvas'), before);
  await page.focus('#flame');
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight', 'Enter']) {
    await page.keyboard.press(key);
  }
  const path = await roots(page);
  assert.equal(path.length, 3);
  await page.reload();
  assert.deepEqual(await roots(page), path);
  await page.click('#view-graph [data-stacks=bottom-up]');
  assert.doesNotMatch(await addressOf(page), /order=time/);
}));

const changes = (page) => page.locator('#transforms button').evaluateAll((buttons) => buttons.map(({ innerText }) => innerText));

/** Presses a key on the frame of a function, which search and the menu of the table find. */
async function onFrame(page, steps, key) {
  await page.focus('#flame');
  await page.keyboard.press('Escape');
  for (let i = 0; i < steps; i++) {
    await page.keyboard.press('ArrowUp');
  }
  await page.keyboard.press(key);
}

test('changes of the call tree apply, are listed, and are taken back', () => open('server', '#root=none', async (page) => {
  // all, __clone3, start_thread, execute_native_thread_routine, _M_run, event_loop
  await onFrame(page, 6, 'F');
  assert.deepEqual((await changes(page)).map((text) => text.split(':')[0]), ['complete', 'focus']);
  const focused = await samples(page);
  assert.ok(focused < 6677);
  await onFrame(page, 2, 'M');
  assert.match((await changes(page))[2], /^merged: kv::Worker::event_loop/);
  assert.equal(await samples(page), focused, 'merging drops no sample');
  await onFrame(page, 3, 'D');
  assert.ok(await samples(page) < focused);
  assert.match(await addressOf(page), /t=f\w+-m\w+-d\w+/);
  const link = await addressOf(page);
  const shown = [await changes(page), await samples(page)];
  await page.goto('about:blank');
  await page.goto(link);
  assert.deepEqual([await changes(page), await samples(page)], shown, 'a link shows the same');
  await page.keyboard.press('u');
  assert.equal(await samples(page), focused);
  await page.goBack();
  assert.equal((await changes(page)).length, 4, 'the browser’s back undoes the undo');
  await page.click('#undo');
  await page.click('#transforms li:nth-child(2) button');
  assert.equal((await changes(page)).length, 2);
  await page.click('#transforms li:nth-child(1) button');
  assert.equal(await samples(page), 6677);
  assert.ok(await page.locator('#transform-bar').isHidden());
}));

test('subtree, recursion and library have their keys and menu entries', () => open('server', '#root=none', async (page) => {
  await onFrame(page, 3, 'S');
  assert.match((await changes(page))[1], /^subtree: start_thread/);
  await onFrame(page, 2, 'C');
  assert.match((await changes(page))[2], /^library: libc\.so\.6/);
  await page.keyboard.press('u');
  await page.keyboard.press('u');
  await page.click('[data-view=functions]');
  await page.fill('#filter', 'Compactor::merge');
  await untilText(page, '#function-count', /^1 of/);
  const row = page.locator('.table-row[aria-rowindex="2"]');
  await row.click({ button: 'right' });
  await page.click('[role=menuitem]:has-text("Collapse recursion")');
  assert.match((await changes(page))[1], /^recursion: kv::Compactor::merge/);
  await page.click('[data-view=graph]');
  await page.click('#transforms button:has-text("complete")');
  assert.ok(await page.locator('#transform-bar').isHidden());
}));

const treeRow = (page, text) => page.locator(`#call-tree .table-row:has-text("${text}")`).first();

test('the call tree opens, filters by time, and changes', () => open('server', '#view=tree&root=none', async (page) => {
  // It opens along the child that has most of each row.
  // The interval comes from a worker.
  await untilText(page, '#call-tree .table-row:has-text("kv::Connection::on_readable") >> nth=0', /^92\.00 %\s+±\d\.\d\s+18\.7 G/);
  await page.focus('#call-tree .table-scroller');
  const names = async () => (await page.locator('#call-tree .table-row .name').allInnerTexts()).map((text) => text.replace(/[▸▾\s]+/, ''));
  const opened = await names();
  await page.keyboard.press('ArrowLeft');
  assert.equal((await names())[0], '__clone3');
  assert.ok((await names()).length < opened.length);
  await page.keyboard.press('ArrowRight');
  assert.deepEqual(await names(), opened, 'what was open below is open again');
  await page.keyboard.press('ArrowRight');
  await untilText(page, '#status', /^start_thread: /);
  await page.keyboard.press('F');
  assert.equal((await names())[0], 'start_thread');
  await page.keyboard.press('u');
  await drag(page, 0.1, 0.2);
  assert.doesNotMatch(await treeRow(page, 'kv::Connection::on_readable').innerText(), /^92\.00 %/);
  await treeRow(page, 'kv::Connection::on_readable').click({ button: 'right' });
  await page.click('[role=menuitem]:has-text("Show in the graph")');
  assert.match((await roots(page)).at(-1), /^kv::Connection::on_readable/);
  await page.click('[data-view=tree]');
  await page.click('#view-tree [data-stacks=bottom-up]');
  assert.match((await names())[0], /operator\[\]/);
}));

test('a page without times has no strip, and order of time is off', () => open('one', '', async (page) => {
  assert.ok(await page.locator('#strip').isHidden());
  assert.ok(await page.locator('[data-order=time]').isDisabled());
}));

test('hostile names are harmless in strip, root and changes', () => open('hostile', '#root=cgroup&by=cgroup', async (page) => {
  assert.equal(await page.locator('#strip').isVisible(), true);
  await page.click('[data-view=tree]');
  await page.click('[data-view=graph]');
  for (const root of ['cgroup', 'cpu', 'none']) {
    if (await page.locator(`#root option[value=${root}]`).count() > 0) {
      await page.selectOption('#root', root);
      await onFrame(page, 3, 'F');
      await onFrame(page, 2, 'C');
    }
  }
  const texts = await page.locator('#transforms, #strip-legend').allInnerTexts();
  assert.ok(texts.join('').includes('<'), 'names are shown as they are');
  assert.doesNotMatch(texts.join(''), /[\u0000-\u0009\u000b-\u001f\u200b\u202e]/u);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img, iframe, object, embed').count(), 0);
}));

test('shares of the call tree and of frames have intervals', () => open('server', '#view=tree&root=none', async (page) => {
  const halves = page.locator('#call-tree .half-width');
  await page.waitForFunction(() => [...document.querySelectorAll('#call-tree .cell.total .half-width')].some(({ textContent }) => /^±\d/.test(textContent)));
  const first = page.locator('#call-tree .table-row').first();
  const [name, total] = [await first.locator('.name').getAttribute('title'), await first.locator('.total .half-width').innerText()];
  assert.equal(name, '__clone3');
  // The table of functions computes them in another way.
  await page.click('[data-view=functions]');
  await page.fill('#filter', '__clone3');
  await page.waitForFunction(() => /^±\d/.test(document.querySelector('#function-table .total .half-width')?.textContent ?? ''));
  assert.equal(await page.locator('#function-table .table-row .total .half-width').first().innerText(), total);
  await page.click('[data-view=tree]');
  await page.waitForFunction(() => /^±\d/.test(document.querySelector('#call-tree .half-width')?.textContent ?? ''));
  assert.ok(await halves.count() > 2);
  await page.click('[data-view=graph]');
  const box = await page.locator('#flame canvas').boundingBox();
  await page.mouse.move(box.x + 40, box.y + box.height - 1.5 * 19);
  await untilText(page, '.tooltip:not([hidden])', new RegExp(`^__clone3[^]* % ${total.replace('.', '\\.')} of all`));
}));

test('the wheel chooses a range in the strip, one step of the history for all of its turns', () => open('server', '', async (page) => {
  const whole = await samples(page);
  const [clientX, clientY] = await at(page, 0.5);
  await page.mouse.move(clientX, clientY);
  // At once: turns that a busy machine holds back are several steps.
  await page.evaluate((place) => {
    const turn = { ...place, deltaY: -120, ctrlKey: true, bubbles: true, cancelable: true };
    const strip = document.querySelector('#strip-plot canvas');
    [1, 2, 3].forEach(() => strip?.dispatchEvent(new WheelEvent('wheel', turn)));
  }, { clientX, clientY });
  await page.waitForURL(/range=/);
  const zoomed = await samples(page);
  assert.ok(zoomed < whole / 2 && zoomed > 0, `${zoomed} of ${whole}`);
  const range = await textOf(page, '#strip-range');
  await page.keyboard.down('Shift');
  await page.mouse.wheel(0, 120);
  await page.keyboard.up('Shift');
  await untilText(page, '#strip-range', new RegExp(`^(?!${range.split(' (')[0]})`));
  await page.waitForTimeout(300);
  await page.goBack();
  await untilText(page, '#strip-range', new RegExp(`^${range.split(' (')[0]}`));
  await page.goBack();
  await untilText(page, '#strip-range', /^$/);
}));
