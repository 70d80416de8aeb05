// Code, comparisons and wake-ups: the parts that know nothing of the document.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { codeFor, hottestCode, instructionRows, lineRows, noCodeReason, shareOf } from '../../src/code.js';
import { changeText, isUndecided, relativeChange, sideShares, valueText, verdictShort } from '../../src/compare.js';
import { waitKind } from '../../src/colors.js';
import { hiddenClasses, longestWaits, wakeChain } from '../../src/switches.js';

test('inlined functions begin and end between instructions', () => {
  const outer = ['ns::outer', 'outer', 'a.c:1'];
  const inner = ['inner', 'inner', ''];
  const code = { name: 'f', offsets: [0, 1, 2, 3], chainOf: [0, 1, 2, 0], chains: [[], [outer], [outer, inner]] };
  const shown = instructionRows(code).map((row) => row.row ?? row.text);
  assert.deepEqual(shown, [0, '▸ outer, inlined at a.c:1', 1, '▸ inner, inlined', 2, '◂ f', 3]);
});

test('lines stand below their file, and gaps are counted', () => {
  const line = (file, number, text) => ({ file, line: number, text });
  const rows = lineRows({ files: ['a.c', 'gone.c'], lines: [line(0, 3, 'x'), line(0, 4, 'y'), line(0, 9, 'z'), line(1, 1, null)] });
  assert.deepEqual(rows, [
    { file: 'a.c', isMissing: false }, { line: 0 }, { line: 1 }, { gap: 4 }, { line: 2 }, { file: 'gone.c', isMissing: true }, { line: 3 },
  ]);
});

test('a function without code of its own is shown by the one around it', () => {
  const code = (fn, inlined, period) => ({ function: fn, chains: [[], [[inlined, inlined, '']]], weights: [{ event: 0, period }] });
  const block = { functions: [code(3, 'g', 1), code(5, 'find', 9)] };
  assert.equal(codeFor(block, 3, 'any'), 0);
  assert.equal(codeFor(block, 7, 'ns::find'), 1);
  assert.equal(codeFor(block, 7, 'refind'), -1);
  assert.deepEqual([hottestCode(block, 0), hottestCode(block, 1), hottestCode({ functions: [] }, 0)], [1, 0, -1]);
  const [cold, hot] = [block.functions[0], block.functions[1]];
  const withoutCode = { functions: [cold, { ...hot, problem: 'no image of the kernel' }] };
  assert.equal(hottestCode(withoutCode, 0), 0);
  assert.equal(hottestCode({ functions: [withoutCode.functions[1], cold] }, 0), 1);
  const bounds = { tooLarge: [[7, 1 << 20]], maxFunctions: 40, minPercent: 0.2, maxFunctionBytes: 131072, maxBytes: 4 << 20, leftOut: 2 };
  assert.match(noCodeReason(bounds, 7), /^Its code has 1\.00 MiB, and this page holds functions of 128 KiB at most/);
  assert.match(noCodeReason(bounds, 8), /the 40 hottest functions with at least 0\.2 % .*2 further functions did not fit 4\.00 MiB/);
  assert.equal(shareOf({ samples: 1, period: 0 }, { samples: 4, period: 0 }), 0.25);
  assert.equal(shareOf(null, { samples: 4, period: 0 }), 0);
});

test('sides have the same width whatever their lengths', () => {
  const tree = { count: 3, parent: Int32Array.of(-1, 0, 0), rowNode: Int32Array.of(1, 2, 1, 2) };
  const rows = { node: [0, 1, 0, 1], event: [0, 0, 1, 1], samples: [1, 1, 1, 1], period: [30, 10, 100, 300] };
  const shares = sideShares(tree, rows, [0, 1]);
  assert.deepEqual([...shares.before], [1, 0.75, 0.25]);
  assert.deepEqual([...shares.after], [1, 0.25, 0.75]);
  assert.deepEqual([...shares.weight], [1, 0.5, 0.5]);
  assert.deepEqual([...sideShares(tree, rows, [0, 9]).after], [0, 0, 0], 'a side without samples');
  assert.deepEqual([relativeChange(0, 2), relativeChange(3, 0), relativeChange(0, 0)], [1, -1, 0]);
});

test('what cannot be told says which change would have been found', () => {
  const judged = { verdict: 'cannot be told', smallest: 1.5, change: -0.5, low: -2, high: 1 };
  assert.equal(verdictShort(judged, 'share'), 'cannot be told (1.50 %)');
  assert.equal(verdictShort({ ...judged, verdict: 'slower' }, 'share'), 'slower');
  assert.equal(changeText(judged, 'share'), '−0.50 % ±1.5');
  assert.equal(valueText(2500, 100, 'units'), '2.50 k ±100');
  assert.equal(valueText(2500, null, 'units'), '2.50 k');
  const event = { byFunction: new Map([[1, { self: judged, total: { ...judged, verdict: 'faster' } }], [2, { self: judged, total: null }]]) };
  assert.deepEqual([2, 4, 6].map((key) => isUndecided(event, key)), [false, true, true]);
});

/** Two threads that wake each other every 10 ns; thread 0 waits first. */
function pingpong(turns) {
  const timeline = { first: [0], startNs: [], durationNs: [], activity: [], thread: [], waker: [], blockedNs: [], class: [], wakers: { lane: [0, 1] } };
  for (const thread of [0, 1]) {
    for (let turn = 0; turn < turns; turn++) {
      timeline.startNs.push(turn * 10);
      timeline.durationNs.push(10);
      timeline.activity.push((turn + thread) % 2 === 0 ? 2 : 0);
      timeline.thread.push(thread);
      timeline.waker.push(2 - thread);
      timeline.blockedNs.push(10);
      timeline.class.push(0);
    }
    timeline.first.push(timeline.thread.length);
  }
  return timeline;
}

test('wake-ups are followed back from thread to thread, up to a bound', () => {
  const timeline = pingpong(40);
  const last = 38;
  const chain = wakeChain(timeline, last);
  assert.deepEqual(chain[0], { ns: 390, from: 1, to: 0 });
  assert.deepEqual(chain[1], { ns: 380, from: 0, to: 1 });
  assert.equal(chain.length, 12);
  assert.equal(wakeChain(timeline, 0).length, 1, 'nobody had waited before');
  assert.deepEqual(wakeChain({ ...timeline, waker: timeline.waker.map(() => 0) }, last), []);
  assert.deepEqual(wakeChain({ ...timeline, wakers: { lane: [-1, -1] } }, last), [], 'a waker without a lane');
});

test('the longest waits are those of the range, and bounded', () => {
  const timeline = pingpong(40);
  timeline.durationNs[4] = 19;
  const all = longestWaits(timeline, null, [0, 400], { max: 3 });
  assert.deepEqual([all.waits[0], all.waits.length, all.count], [4, 3, 40]);
  const { waits } = longestWaits(timeline, [0, 1], [100, 120]);
  assert.ok(waits.every((span) => timeline.thread[span] === 1));
  assert.equal(waits.length, 1);
});

test('waits from beginning to end stand behind the others, and hidden kinds are left out', () => {
  const timeline = { ...pingpong(40), spanNs: 400 };
  timeline.startNs[4] = 0;
  timeline.durationNs[4] = 400;
  timeline.class = timeline.class.map((_, span) => span % 3);
  timeline.classes = ['lock', 'queue'];
  const all = longestWaits(timeline, null, [0, 400]).waits;
  assert.equal(all.at(-1), 4);
  const hidden = hiddenClasses(timeline, new Set([waitKind('queue').id]));
  assert.deepEqual([...hidden], [2]);
  const { waits } = longestWaits(timeline, null, [0, 400], { hidden });
  assert.ok(waits.length > 0 && waits.length < all.length && waits.every((span) => timeline.class[span] !== 2));
  assert.deepEqual([...hiddenClasses(timeline, new Set([waitKind('other').id]))], [0]);
});
