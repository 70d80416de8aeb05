// Requests: their sums, the paths of the slowest, and what a range of time chooses of one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { barOf, decodeRequests, durationBars, pieceAt, windowOfCall } from '../../src/requests.js';

const blockOf = (name) => {
  const html = readFileSync(join(process.env.WHIT_TEST_PAGES, `${name}.html`), 'utf8');
  const [, json] = /<script type="application\/json" id="profile">([^<]*)<\/script>/.exec(html);
  return JSON.parse(json).requests;
};
const { names, noPaths } = decodeRequests(blockOf('requests'));
const call = names.find(({ name }) => name === 'call');

test('a page without requests has no block of them', () => {
  assert.equal(blockOf('waits'), null);
});

test('splits add up to the durations, and calls stand by these', () => {
  assert.equal(noPaths, '');
  assert.equal(call.count, 120);
  assert.equal(call.calls.length, 120);
  call.calls.forEach(({ durationNs, split }, index) => {
    assert.equal(split.reduce((sum, ns) => sum + ns), durationNs);
    assert.ok(index === 0 || durationNs <= call.calls[index - 1].durationNs);
  });
  const [name, ns, split] = call.quantiles.at(-1);
  assert.deepEqual([name, ns, split], ['max', call.calls[0].durationNs, call.calls[0].split]);
});

test('the pieces of a path fill its call, and its rows have all of them', () => {
  const withPaths = call.calls.filter(({ path }) => path !== null);
  assert.equal(withPaths.length, 20);
  assert.equal(withPaths.at(-1), call.calls[19], 'they are the slowest');
  for (const { durationNs, path } of withPaths) {
    const last = path.fromNs.length - 1;
    assert.equal(path.fromNs[last] + path.durationNs[last], durationNs);
    assert.equal(path.rows.reduce((sum, row) => sum + row.durationNs, 0), durationNs);
    assert.equal(path.rows.reduce((sum, row) => sum + row.pieces, 0), path.piecesCount);
    assert.equal(path.lane[last], 0, 'a request ends in its own thread');
  }
});

test('the slowest call waits for the holder of a lock, and sleeps', () => {
  const [{ path, key }] = call.calls;
  assert.equal(key, '23');
  assert.match(path.rows[0].what, /^server \(\d+\) waits: sleep in handle for 20ms$/);
  const ofHolder = [...path.lane.keys()].filter((piece) => path.lane[piece] === 1);
  assert.match(path.lanes[1].name, /^holder/);
  assert.ok(ofHolder.length > 0);
  ofHolder.forEach((piece) => assert.match(path.explainsOf(piece), /^while server \(\d+\) waits: lock in handle for futex lock in server$/));
});

test('the piece at a time', () => {
  const path = { fromNs: Float64Array.of(0, 10, 10, 30), durationNs: Float64Array.of(10, 0, 20, 5) };
  assert.deepEqual([-1, 0, 9, 10, 29, 30, 34, 35].map((ns) => pieceAt(path, ns)), [-1, 0, 0, 2, 2, 3, 3, -1]);
});

test('each call is in the bar of its duration', () => {
  const bars = durationBars(call.histogram);
  assert.equal(bars.reduce((sum, { count }) => sum + count, 0), call.count);
  const counts = bars.map(() => 0);
  for (const { durationNs } of call.calls) {
    const bar = barOf(call.histogram, durationNs);
    assert.ok(bars[bar].fromNs <= durationNs && durationNs < bars[bar].toNs, `${durationNs} in ${bar}`);
    counts[bar] += 1;
  }
  assert.deepEqual(counts, bars.map(({ count }) => count));
  assert.deepEqual([barOf(call.histogram, 1), barOf(call.histogram, 1e12)], [-1, -1]);
});

test('a range chooses its part of a call', () => {
  const at = { fromNs: 100, durationNs: 50 };
  assert.deepEqual(windowOfCall(at, null), [0, 50]);
  assert.deepEqual(windowOfCall(at, [110, 130]), [10, 30]);
  assert.deepEqual(windowOfCall(at, [0, 120]), [0, 20]);
  assert.deepEqual(windowOfCall(at, [0, 1000]), [0, 50]);
  assert.deepEqual(windowOfCall(at, [200, 300]), [0, 50], 'nothing in common');
});

test('hostile: texts have no invisible characters left', () => {
  const hostile = decodeRequests(blockOf('hostile-waits'));
  const [named] = hostile.names;
  const [{ key, thread, path }] = named.calls;
  const texts = [
    hostile.noPaths, named.name, key, thread, ...named.remarks, ...named.tail.map(({ what }) => what), path.textOf(0), path.explainsOf(0),
    ...path.lanes.map(({ name }) => name), ...path.rows.flatMap(({ what, explains }) => [what, explains]),
  ];
  assert.ok(texts.every((text) => text !== ''));
  assert.deepEqual(texts.filter((text) => /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(text)), []);
});
