// Where the sums of a range come from.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EmbeddedSource, ServerSource, decodeLane, decodeSums, sourceOf } from '../../src/source.js';

/** Two rows: 3 with 5 samples and a period of 300, 1 with 1 and 7, as the server writes them. */
const BYTES = Uint8Array.from([2, 2, 4, 1, 5, 7, 0xac, 0x02]);
const MOMENTS = { first: [0, 1, 2], row: [0, 1], samples: [4, 6], period: [40, 60] };

const answer = (bytes, ok = true) => ({ ok, status: ok ? 200 : 404, arrayBuffer: async () => bytes.buffer });

test('sums of the server have their rows', () => {
  assert.deepEqual(decodeSums(BYTES, 5), {
    samples: Float64Array.from([0, 1, 0, 5, 0]), period: Float64Array.from([0, 7, 0, 300, 0]),
  });
  assert.throws(() => decodeSums(BYTES.slice(0, 7), 5), /cut/);
});

test('a page has buckets until its server has answered', async () => {
  const asked = [];
  const source = new ServerSource(5, async (url) => {
    asked.push(url);
    return answer(BYTES);
  });
  const range = [10.4, 99.6];
  assert.deepEqual([...source.rowSums(MOMENTS, 5, range, [0, 1]).samples], [4, 0, 0, 0, 0]);
  assert.equal(source.origin(range), 'page');
  assert.equal(await source.load(range), true);
  assert.deepEqual(asked, ['range?from=10&to=100']);
  assert.equal(source.origin(range), 'server');
  assert.equal(source.rowSums(MOMENTS, 5, range, [0, 1]).samples[3], 5);
  assert.equal(await source.load(range), false, 'asks once');
  assert.equal(source.rowSums(MOMENTS, 9, range, [0, 1]).samples[0], 4, 'rows by CPU are those of the page');
  assert.equal(source.rowSums(MOMENTS, 5, [0, 5], [0, 2]).samples[1], 6, 'another range is not that one');
});

test('an answer that comes too late is left out', async () => {
  const answers = [];
  const source = new ServerSource(5, () => new Promise((done) => answers.push(done)));
  const first = source.load([0, 1]);
  const second = source.load([0, 2]);
  answers[1](answer(BYTES));
  assert.equal(await second, true);
  answers[0](answer(BYTES));
  assert.equal(await first, false);
  assert.equal(source.origin([0, 2]), 'server');
});

test('a server that is gone is told, and asked again', async () => {
  let ok = false;
  const source = new ServerSource(5, async () => answer(BYTES, ok));
  await assert.rejects(source.load([0, 1]), /404/);
  ok = true;
  assert.equal(await source.load([0, 1]), true);
});

/** Row 2 at 10 ns with 1 sample and a period of 3, row 0 at 300 ns with 4 and 5; there are more. */
const LANE = Uint8Array.from([2, 1, 20, 0xc4, 0x04, 4, 3, 1, 4, 3, 5]);

test('samples of the server have their times and rows', async () => {
  const entries = decodeLane(LANE);
  assert.deepEqual([...entries.timeNs], [10, 300]);
  assert.deepEqual([...entries.row], [2, 0]);
  assert.deepEqual([[...entries.samples], [...entries.period], entries.isCut], [[1, 4], [3, 5], true]);
  assert.throws(() => decodeLane(LANE.slice(0, 9)), /cut/);
  const asked = [];
  const source = new ServerSource(5, async (url) => asked.push(url) && answer(LANE));
  assert.equal((await source.lane(7, [-2, 99.6])).row.length, 2);
  assert.deepEqual(asked, ['lane?from=0&to=100&thread=7']);
  await assert.rejects(new ServerSource(5, async () => answer(LANE, false)).lane(7, [0, 1]), /404/);
  assert.equal(await new EmbeddedSource().lane(7, [0, 1]), null);
});

test('a page that is no server’s asks nobody', async () => {
  assert.ok(sourceOf({ rows: { node: [] } }) instanceof EmbeddedSource);
  assert.ok(sourceOf({ isServed: true, rows: { node: [] } }) instanceof ServerSource);
  assert.equal(await new EmbeddedSource().load([0, 1]), false);
});
