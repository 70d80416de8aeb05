// The page in a browser: what a person sees and does.

import assert from 'node:assert/strict';

import { themePaint } from '../../src/colors.js';
import { addressOf, inBrowser, pixelsOf, rgbOf, textOf, untilText } from './browser.js';

const { test, open } = inBrowser();
const FLAME = '#flame';

async function keys(page, ...names) {
  await page.focus(FLAME);
  for (const name of names) {
    await page.keyboard.press(name);
  }
}

/** Whole names of the frames in the line above the graph. */
const crumbs = (page) => page.locator('#breadcrumb button').evaluateAll((buttons) => buttons.map(({ title }) => title));

test('losses, cost and warnings are in view, whatever the view', () => open('server', '', async (page) => {
  for (const view of ['graph', 'tree', 'functions', 'sandwich', 'recording']) {
    await page.click(`[data-view=${view}]`);
    assert.ok(await page.locator(`#view-${view}`).isVisible());
    const losses = await textOf(page, '#losses');
    for (const figure of ['57 lost records', '12 lost samples', '0.009 % data loss', '0 B truncated']) {
      assert.ok(losses.replace(/\s+/g, ' ').includes(figure), `${figure} in ${losses}`);
    }
    assert.match(await textOf(page, '#cost'), /545 ms \(1\.80 % of one CPU\).*recorder CPU[^]*46.0 MiB[^]*1,932 wake-ups/);
    assert.match(await textOf(page, '#warnings'), /2 warnings/);
    assert.ok(await page.locator('#losses').isVisible() && await page.locator('#warnings').isVisible());
  }
  await page.click('#warnings summary');
  assert.equal(await page.locator('#warnings li').count(), 2);
  assert.match(await textOf(page, '#warnings'), /12 samples stand behind later ones/);
}));

test('one line above all views says what is busy, hot, waited for and lost', async () => {
  await open('server', '', async (page) => {
    assert.match(await textOf(page, '#headline summary'), /^hottest: \S*operator\[\] const 15\.69 %, \S[^]* 10\.53 %, ip_finish_output2 8\.98 %\s*·\s*lost: 57 records in 3 chunks, 12 samples/);
    assert.ok(await page.locator('#headline ul').isHidden());
    await page.click('#headline summary');
    assert.match(await textOf(page, '#headline ul'), /^hottest: /);
    const { height } = await page.locator('#headline summary').boundingBox();
    assert.ok(height < 24, `one line: ${height}`);
  });
  await open('waits', '', async (page) => {
    assert.match(await textOf(page, '#headline summary'), /^0\.82 CPUs busy\s*·\s*hottest: compute 100 %\s*·\s*waits: lock 91\.0 ms in await_turn\s*·\s*nothing lost$/);
    await page.click('#headline summary');
    assert.match(await textOf(page, '#headline ul'), /waits: lock 91\.0 ms, 9 waits of pingpong in await_turn\s/);
  }, { folded: true });
  await open('compare', '', async (page) => assert.ok(await page.locator('#headline').isHidden()));
});

test('the recording describes itself', () => open('server', '#view=recording', async (page) => {
  const text = await textOf(page, '#view-recording');
  for (const fact of ['db-17.example', '6.18.0', 'sleep 30', 'AMD EPYC', 'cycles:P', 'sched:sched_switch', 'MMAP2', '62.8 GiB', '2026-11-21 14:20:12 UTC']) {
    assert.ok(text.includes(fact), fact);
  }
}));

test('search marks frames and sums what matches', () => open('server', '', async (page) => {
  const match = await rgbOf(page, themePaint('light').match);
  assert.equal((await pixelsOf(page, '#flame canvas'))[match] ?? 0, 0);
  await page.keyboard.press('/');
  await page.keyboard.type('kv::Store');
  await untilText(page, '#matched', /^matched 44\.02 % of total$/);
  assert.ok((await pixelsOf(page, '#flame canvas'))[match] > 1000, 'matches stand out');
  await page.click('#regex');
  await page.fill('#search', 'Store::(get|put)\\(');
  await untilText(page, '#matched', /^matched 44\.02 % of total$/);
  await page.fill('#search', 'Store::(');
  await untilText(page, '#matched', /no regular expression/);
  await page.click('#search-clear');
  await untilText(page, '#matched', /^$/);
  assert.equal((await pixelsOf(page, '#flame canvas'))[match] ?? 0, 0);
}));

test('zoom by key; the address holds it; back leads back', () => open('server', '#root=none', async (page) => {
  await keys(page, 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp');
  await untilText(page, '#status', /execute_native_thread_routine.*\d+\.\d\d %, [\d,]+ samples/);
  await page.keyboard.press('Enter');
  const path = ['all', '__clone3', 'start_thread', 'std::execute_native_thread_routine(void*)'];
  assert.deepEqual(await crumbs(page), path);
  const link = await addressOf(page);
  assert.match(link, /zoom=/);
  await page.goto('about:blank');
  await page.goto(link);
  assert.deepEqual(await crumbs(page), path, 'a link shows the same');
  await page.click('#breadcrumb li:nth-child(2) button');
  assert.deepEqual(await crumbs(page), path.slice(0, 2));
  await page.click('#back');
  await page.waitForFunction(() => document.querySelectorAll('#breadcrumb li').length === 4);
  await keys(page, 'Backspace');
  assert.deepEqual(await crumbs(page), path.slice(0, 3));
  await page.click('#reset');
  assert.deepEqual(await crumbs(page), ['all']);
}));

test('zoom by click; a frame tells what it is', () => open('server', '#root=none&shape=icicle', async (page) => {
  const box = await page.locator('#flame canvas').boundingBox();
  // Row 7 of the icicle begins with kv::Store::get.
  const [x, y] = [box.x + 40, box.y + 7.5 * 19];
  await page.mouse.move(x, y);
  const tip = await untilText(page, '.tooltip:not([hidden])', /kv::Store::get/);
  for (const fact of ['user', '/opt/kvstore/bin/kvstored', 'src/store.cc:151', 'of all', 'self', 'total', 'samples', 'period']) {
    assert.ok(tip.includes(fact), `${fact} in ${tip}`);
  }
  await page.mouse.move(x, y + 19);
  await untilText(page, '.tooltip:not([hidden])', /find\(unsigned long\) const\s+inlined/);
  await page.mouse.click(x, y);
  assert.equal((await crumbs(page)).at(-1), 'kv::Store::get(std::string_view) const');
  await page.mouse.move(5, 5);
  assert.ok(!await page.locator('.tooltip:not([hidden])').isVisible());
}));

test('bottom-up begins with the functions that run', () => open('server', '', async (page) => {
  await page.click('[data-view=functions]');
  const hottest = (await page.locator('#function-table .table-row[aria-rowindex="2"] .link').getAttribute('title')).split('\n')[0];
  const share = await textOf(page, '#function-table .table-row[aria-rowindex="2"] .self .percent');
  await page.click('[data-view=graph]');
  await page.click('#view-graph [data-stacks=bottom-up]');
  await keys(page, 'ArrowUp', 'ArrowUp');
  const status = await textOf(page, '#status');
  assert.ok(status.startsWith(`${hottest}: ${share}`), `${status} for ${hottest} ${share}`);
  await keys(page, 'ArrowUp', 'Enter');
  assert.deepEqual((await crumbs(page)).slice(0, 2), ['all', hottest]);
  assert.match(await addressOf(page), /stacks=bottom-up/);
  await page.keyboard.press('i');
  assert.deepEqual(await crumbs(page), ['all']);
}));

test('events, processes, threads and comms select', () => open('server', '#root=none', async (page) => {
  assert.match(await textOf(page, '#selected'), /^6,677 samples · 20\.4 G cycles:P$/);
  await page.selectOption('#process', '5120');
  assert.match(await textOf(page, '#process option:checked'), /^node \(5120\) · 3\.\d\d %$/);
  assert.match(await textOf(page, '#legend'), /JIT/);
  const node = await textOf(page, '#selected');
  await page.selectOption('#thread', '5120');
  assert.equal(await textOf(page, '#selected'), node, 'it has one thread');
  await keys(page, 'ArrowUp', 'ArrowUp');
  await untilText(page, '#status', /^_start: 100 %/);
  await page.selectOption('#process', '');
  await page.selectOption('#comm', 'kv-compactor');
  await keys(page, 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp');
  await untilText(page, '#status', /^kv::Compactor::run\(\): 100 %/);
  await page.selectOption('#comm', '');
  await page.selectOption('#event', '2');
  assert.match(await textOf(page, '#selected'), /^1,640 samples/);
  await page.selectOption('#process', { index: 2 });
  await untilText(page, '#empty', /No sample of sched:sched_switch in this selection/);
  await page.click('#empty button');
  assert.ok(await page.locator(FLAME).isVisible());
  await page.selectOption('#event', '1');
  assert.match(await textOf(page, '#selected'), /^2,209 samples · 2\.21 s$/);
  await page.click('[data-weight=samples]');
  assert.match(await addressOf(page), /event=1&weight=samples/);
}));

test('the table sorts, filters and leads to the graph', () => open('server', '#view=functions', async (page) => {
  const first = () => textOf(page, '#function-table .table-row[aria-rowindex="2"] .link');
  await page.click('#function-table .table-head .total button');
  assert.equal(await page.locator('#function-table .table-head .total').getAttribute('aria-sort'), 'descending');
  assert.equal(await first(), '__clone3');
  await page.click('#function-table .table-head .name button');
  assert.equal(await page.locator('#function-table .table-head .name').getAttribute('aria-sort'), 'ascending');
  await page.fill('#filter', 'libzstd');
  await untilText(page, '#function-count', /^2 of 1,006 functions$/);
  assert.equal(await first(), 'ZSTD_compressBlock_doubleFast');
  await page.click('#function-table .table-row[aria-rowindex="2"] .link');
  assert.ok(await page.locator(FLAME).isVisible());
  assert.equal(await page.inputValue('#search'), '^ZSTD_compressBlock_doubleFast$');
  await untilText(page, '#matched', /^matched 5\.56 % of total$/);
}));

test('only the rows in view are elements, and keys move among all', () => open('server', '#view=functions', async (page) => {
  const rows = await page.locator('#function-table .table-row').count();
  assert.ok(rows > 10 && rows < 80, `${rows} rows`);
  await page.focus('#function-table .table-scroller');
  await page.keyboard.press('End');
  await page.waitForSelector('#function-table .table-row.current[aria-rowindex="1007"]');
  await page.keyboard.press('s');
  assert.ok(await page.locator('#view-sandwich').isVisible());
}));

test('callers and callees of a function', () => open('server', '#view=functions&filter=Store::put', async (page) => {
  await page.click('#function-table .table-row[aria-rowindex="2"] .act button');
  assert.match(await textOf(page, '#center'), /kv::Store::put[^]*kvstored · self 0 % \(0\) · with callees 11\.93 % \(2\.43 G\)/);
  await page.focus('#callers');
  await page.keyboard.press('ArrowUp');
  await untilText(page, '#status', /^kv::Connection::on_readable.*: 11\.93 %/);
  await page.focus('#callees');
  await page.keyboard.press('ArrowDown');
  await untilText(page, '#status', /^kv::Wal::append.*: 5\.56 %/);
  await page.keyboard.press('Enter');
  assert.match(await addressOf(page), /callees=/);
  await page.keyboard.press('s');
  await untilText(page, '#center', /kv::Wal::append/);
  await page.keyboard.press('/');
  await page.keyboard.type('malloc');
  await untilText(page, '#matched', /matched/);
  await page.keyboard.press('Enter');
  await untilText(page, '#center', /^malloc\s+libc\.so\.6/);
}));

test('colours by kind and by binary; the legend fades them', () => open('server', '', async (page) => {
  assert.match(await textOf(page, '#legend'), /User[^]*User, inlined[^]*Kernel[^]*vDSO[^]*JIT[^]*Unknown/);
  const faded = await rgbOf(page, themePaint('light').fadedFill);
  assert.equal((await pixelsOf(page, '#flame canvas'))[faded] ?? 0, 0);
  await page.click('.legend-entry:has-text("Kernel") >> nth=0');
  assert.ok((await pixelsOf(page, '#flame canvas'))[faded] > 1000);
  await page.click('[data-colour=binary]');
  assert.match(await textOf(page, '#legend'), /kvstored[^]*\[kernel\.kallsyms\][^]*libc\.so\.6/);
  assert.equal((await pixelsOf(page, '#flame canvas'))[faded] ?? 0, 0, 'another colouring begins afresh');
}));

test('the legend keeps the keyboard where it is', () => open('server', '', async (page) => {
  const entry = page.locator('#legend .legend-entry:has-text("Kernel") >> nth=0');
  await entry.focus();
  for (const pressed of ['false', 'true']) {
    await page.keyboard.press('Space');
    assert.equal(await entry.getAttribute('aria-pressed'), pressed);
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^Kernel/);
  }
  await page.keyboard.press('Tab');
  assert.ok(await page.evaluate(() => document.activeElement.matches('#legend .legend-entry')), 'the next entry follows');
}));

test('light and dark: the system\'s, or chosen and kept', () => open('server', '', async (page) => {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await page.click('#theme');
  assert.equal(await theme(), 'light');
  assert.equal(await page.evaluate(() => localStorage.getItem('whit-theme')), 'light');
  // Chromium stores a value in another process, and may lose it where a page is loaded sooner: the test stores it anew.
  await page.addInitScript(() => localStorage.setItem('whit-theme', 'light'));
  await page.reload();
  assert.equal(await theme(), 'light');
  await page.click('#theme');
  assert.equal(await theme(), 'dark');
  await page.click('#theme');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'light');
}, { colorScheme: 'dark' }));

test('a function\'s name goes to the clipboard', () => open('server', '#root=none', async (page) => {
  await keys(page, 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'c');
  await untilText(page, '.notice', /^Function name copied$/);
  await page.keyboard.press('m');
  await page.click('[role=menuitem]:has-text("Copy stack")');
  await untilText(page, '.notice', /^Stack copied$/);
  await page.click('#search');
  await page.keyboard.press('Control+V');
  assert.equal(await page.inputValue('#search'), '__clone3;start_thread;std::execute_native_thread_routine(void*)');
}));

test('a frame has a menu', () => open('server', '#root=none&shape=icicle', async (page) => {
  const box = await page.locator('#flame canvas').boundingBox();
  await page.mouse.click(box.x + 40, box.y + 7.5 * 19, { button: 'right' });
  await untilText(page, '.menu', /kv::Store::get[^]*Zoom[^]*Copy stack[^]*Copy function name[^]*Search[^]*Callers and callees/);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await untilText(page, '#center', /^kv::Store::get/);
  await page.keyboard.press('?');
  assert.ok(await page.locator('#help-dialog').isVisible());
}));

test('hostile names are text, everywhere', () => open('hostile', '', async (page) => {
  for (const view of ['graph', 'tree', 'functions', 'sandwich', 'source', 'recording']) {
    await page.click(`[data-view=${view}]`);
  }
  await page.click('[data-view=graph]');
  await page.click('#warnings summary');
  await page.locator('#flame').scrollIntoViewIfNeeded();
  const box = await page.locator('#flame canvas').boundingBox();
  for (let row = 1; row < 10; row++) {
    await page.mouse.move(box.x + 20, box.y + box.height - 19 * row - 8);
    await page.waitForTimeout(10);
  }
  await page.mouse.click(box.x + 20, box.y + box.height - 19 - 8);
  assert.deepEqual(await crumbs(page), ['all', '</script><img src=x onerror="window.pwned = 1">']);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.locator('img, iframe, object, embed').count(), 0);
  assert.equal(await page.locator('script').count(), 3);
  assert.match(await page.title(), /^<\/script><img src=x/);
  await page.click('[data-view=functions]');
  const names = await page.locator('#function-table .table-row .link').allInnerTexts();
  assert.ok(names.includes('std::vector<int>::operator<<(std::vector<int> const&)'));
  assert.ok(names.includes('{{script}} ${window.pwned = 6} &lt;b&gt;'));
  assert.ok(names.includes('\\u{202e}gnp.exe\\x00\\x07'), 'a name cannot reorder the text around it');
}));

test('the policy stops a script that is not the page\'s own', () => open('server', '', async (page) => {
  const ran = await page.evaluate(() => {
    const attempts = [
      () => document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.pwned = 1' })),
      () => {
        document.body.innerHTML += '<img src="x" onerror="window.pwned = 2">';
      },
      () => document.body.setAttribute('onclick', 'window.pwned = 3'),
    ];
    const stopped = attempts.filter((attempt) => {
      try {
        attempt();
        return false;
      } catch {
        return true;
      }
    });
    document.body.click();
    return { pwned: window.pwned, stopped: stopped.length };
  });
  assert.equal(ran.pwned, undefined);
}, { allow: /Content Security Policy|TrustedScript|TrustedHTML|Trusted Type/i }));

test('a page of one sample', () => open('one', '', async (page) => {
  await keys(page, 'ArrowUp', 'ArrowUp');
  await untilText(page, '#status', /^_start: 100 %, 1 sample$/);
  assert.equal(await textOf(page, '#selected'), '1 sample');
  assert.equal(await page.locator('[data-weight=samples]').getAttribute('aria-pressed'), 'true');
  assert.match(await textOf(page, '#losses'), /none known[^]*data loss unknown/);
  assert.match(await textOf(page, '#cost'), /not in the recording/);
  await page.click('[data-view=sandwich]');
  assert.match(await textOf(page, '#center'), /^main[^]*100 % \(1 sample\)/);
}));

test('an empty page says so in each view', () => open('empty', '', async (page) => {
  assert.match(await textOf(page, '#empty'), /No samples[^]*holds no samples/);
  await page.click('[data-view=functions]');
  assert.equal(await textOf(page, '#function-count'), '0 functions');
  await page.click('[data-view=sandwich]');
  assert.match(await textOf(page, '#sandwich-empty'), /No function/);
  await page.click('[data-view=recording]');
  assert.match(await textOf(page, '#view-recording'), /cycles/);
  await page.keyboard.press('i');
  await page.fill('#search', 'x');
  await untilText(page, '#matched', /^matched 0 % of total$/);
}));

test('a page with more than it holds says what was folded', () => open('large', '', async (page) => {
  await page.click('#warnings summary');
  await untilText(page, '#warnings', /This page holds 158,198 of 313,289 call tree nodes: subtrees below 0\.006 % of every event are folded/);
  await page.click('#warnings summary');
  await page.click('#view-graph [data-stacks=bottom-up]');
  await keys(page, 'ArrowUp', 'ArrowUp', 'ArrowRight', 'Enter');
  assert.equal((await crumbs(page)).length, 2);
  await page.selectOption('#thread', { index: 3 });
  await page.fill('#search', 'function_12');
  await untilText(page, '#matched', /^matched \d/);
}));

test('a fragment out of another recording does no harm', () => open(
  'server',
  '#event=99&pid=1&tid=2&comm=nobody&zoom=zzz.1&fn=99999&view=sandwich&callers=z',
  async (page) => {
    await untilText(page, '#sandwich-empty', /No function/);
    await page.click('[data-view=graph]');
    await untilText(page, '#empty', /No samples/);
    assert.match(await textOf(page, '#process option:checked'), /1 \(not in this recording\)/);
    await page.click('#empty button');
    await page.selectOption('#event', '0');
    assert.ok(await page.locator(FLAME).isVisible());
  },
));

test('a narrow window needs no scrolling sideways', () => open('server', '', async (page) => {
  await page.setViewportSize({ width: 400, height: 800 });
  for (const view of ['graph', 'tree', 'functions', 'sandwich', 'source', 'recording']) {
    await page.click(`[data-view=${view}]`);
    const [scroll, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(scroll <= inner, `${view}: ${scroll} > ${inner}`);
  }
}));
