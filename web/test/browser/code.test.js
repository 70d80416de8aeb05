// Source and assembly in a browser.

import assert from 'node:assert/strict';

import { addressOf, inBrowser, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const currentText = (page, pane) => textOf(page, `#code-${pane} .list-row.current`);

test('the hottest function is shown at its hottest instruction, with its source', () => open('server', '#view=source', async (page) => {
  assert.match(await textOf(page, '#code-function option:checked'), /^kv::Store::get.* · kvstored$/);
  assert.match(await textOf(page, '#code-facts'), /kvstored · 26\.22 % ±0\.\d+ of cycles:P, 1,733 samples · 96 bytes at 1090$/);
  assert.match(await currentText(page, 'instructions'), /^59\.83 %\s*±\d\.\d\s+1090\s+┌─>\s*add {4}%rcx,%rax/);
  assert.match(await currentText(page, 'lines'), /^59\.83 %\s*±\d\.\d\s+151\s+line 151 of FastHash::operator/);
  const rows = (await page.locator('#code-instructions .list-row').allInnerTexts()).join('\n');
  assert.match(rows, /▸ FastHash::operator.*, inlined at store\.cc:151/);
  assert.match(rows, /◂ kv::Store::get/);
}));

test('a line marks its instructions; keys move, follow a jump, and come back', () => open('server', '#view=source', async (page) => {
  await page.click('#code-lines .list-row:has-text("line 149 of")');
  assert.match(await currentText(page, 'instructions'), /^40\.17 %.*10c0/s);
  await untilText(page, '#status', /^src\/store\.cc:149: 40\.17 % ±/);
  await page.focus('#code-instructions .list-scroller');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^▸ FastHash::operator.*, inlined/);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^10c6 jne.*: no samples$/);
  await page.keyboard.press('Enter');
  await untilText(page, '#status', /^10c0 add .*: 40\.17 %/);
  await page.keyboard.press('End');
  await untilText(page, '#status', /^10e8 nopl/);
  await page.keyboard.press('h');
  await untilText(page, '#status', /^1090 add/);
  await page.keyboard.press('End');
  await page.click('#code-hottest');
  await untilText(page, '#status', /^1090 add/);
}));

test('key, menu, and table of functions lead to the code', async () => {
  await open('server', '#root=none&shape=icicle', async (page) => {
    const box = await page.locator('#flame canvas').boundingBox();
    // Row 7 of the icicle begins with kv::Store::get.
    await page.mouse.click(box.x + 40, box.y + 7.5 * 19, { button: 'right' });
    await page.click('[role=menuitem]:has-text("Source and assembly")');
    assert.ok(await page.locator('#view-source').isVisible());
    assert.match(await textOf(page, '#code-function option:checked'), /^kv::Store::get/);
    assert.match(await addressOf(page), /fn=\d+&view=source/);
    await page.click('[data-view=graph]');
    await page.focus('#flame');
    await page.keyboard.press('ArrowDown');
    await untilText(page, '#status', /^kv::HashIndex.*find/);
    await page.keyboard.press('a');
    assert.match(await textOf(page, '#code-function option:checked'), /^kv::Store::get/, 'an inlined frame leads to the function around it');
    await page.click('[data-view=graph]');
    await page.focus('#flame');
    for (let i = 0; i < 7; i++) {
      await page.keyboard.press('ArrowUp');
    }
    await page.keyboard.press('a');
    await untilText(page, '#code-problem', /^__clone3.* is not on this page\. .*40 hottest functions with at least 0\.2 %/);
    assert.ok(await page.locator('#code-panes').isHidden());
    await page.selectOption('#code-function', { index: 0 });
    assert.ok(await page.locator('#code-panes').isVisible());
  });
  await open('server', '#view=functions&filter=Store::get', async (page) => {
    await page.click('#function-table .table-row[aria-rowindex="2"] [aria-label^="Source and assembly"]');
    assert.match(await textOf(page, '#code-function option:checked'), /^kv::Store::get/);
    await page.click('[data-view=functions]');
    await page.focus('#function-table .table-scroller');
    await page.keyboard.press('a');
    assert.ok(await page.locator('#view-source').isVisible());
  });
  await open('server', '#view=tree', async (page) => {
    await page.focus('#call-tree .table-scroller');
    await page.keyboard.press('End');
    await page.keyboard.press('a');
    assert.ok(await page.locator('#view-source').isVisible());
  });
});

test('an inlined function leads to the one that it is a part of', () => open('server', '#view=functions&filter=FastHash::operator', async (page) => {
  await page.focus('#function-table .table-scroller');
  await page.keyboard.press('a');
  await untilText(page, '#code-problem', /^kv::FastHash::operator.* is inlined; this is the function that it is a part of\.$/);
  assert.ok(await page.locator('#code-panes').isVisible());
  await page.click('[data-view=sandwich]');
  await untilText(page, '#center', /^kv::FastHash/);
  await page.keyboard.press('a');
  assert.ok(await page.locator('#view-source').isVisible());
}));

test('what is not at hand says why', () => open('server', '#view=source', async (page) => {
  await page.selectOption('#code-function', { label: '_int_malloc · libc.so.6' });
  await untilText(page, '#code-problem', /^The instructions are not at hand: the file has no code at this address.*Addresses of samples stand below/);
  assert.match(await currentText(page, 'instructions'), /^100 %.*\(code not at hand\)/s);
  assert.ok(await page.locator('#code-source').isHidden());
  await page.selectOption('#code-function', { label: 'ip_finish_output2 · [kernel.kallsyms]' });
  assert.match((await page.locator('#code-lines .list-row').allInnerTexts()).join('\n'), /net\/ipv4\/ip_output\.c: not at hand when the page was made/);
  assert.ok(await page.locator('#code-problem').isHidden());
}));

test('weights are those of the chosen event, and of the whole recording', () => open('server', '#view=source', async (page) => {
  await page.selectOption('#event', '2');
  await page.selectOption('#code-function', { label: 'kv::Store::get(std::string_view) const · kvstored' });
  await untilText(page, '#code-facts', /no sample of sched:sched_switch is in its own code/);
  await page.selectOption('#event', '0');
  assert.doesNotMatch(await textOf(page, '#code-facts'), /whatever is selected/);
  await page.selectOption('#process', '4211');
  await untilText(page, '#code-facts', /of all threads and all of the time, whatever is selected above/);
}));

test('hostile names and texts are text in both lists', () => open('hostile', '#view=source', async (page) => {
  const [lines, instructions] = await Promise.all(['lines', 'instructions'].map((pane) => page.locator(`#code-${pane} .list-row`).allInnerTexts()));
  assert.match(lines.join('\n'), /<\/script><img src=x[^]*\\u\{202e\}evil\\x1b\[2J/);
  assert.match(instructions.join('\n'), /▸ .*\\u\{202e\}evil/);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img, iframe, object, embed').count(), 0);
  const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(scroll <= inner, 'long names do not widen the page');
}));

test('pages without code have no such view', () => open('large', '#view=source', async (page) => {
  assert.ok(await page.locator('#view-graph').isVisible());
  assert.ok(await page.locator('[data-view=source]').isHidden());
  await page.focus('#flame');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('a');
  assert.ok(await page.locator('#view-graph').isVisible());
}));
