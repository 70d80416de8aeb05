// Differences of waits and requests: which values of a row have a line.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { measureLines, quantityText } from '../../src/measuresview.js';

const UNDECIDED = 'cannot be told';
const quantities = [
  { name: 'waiting', unit: 'ns', per: 'second' }, { name: 'waits', unit: 'count', per: 'second' }, { name: 'spinning', unit: 'ns', per: 'second' },
];
const value = (quantity, verdict, smallest = 2e6) => ({ quantity, verdict, smallest, before: 1, after: 2, change: 1, low: 0, high: 2 });
const measure = (kind) => ({ kind, units: null, quantities, tests: 1, whole: null, rows: [], warnings: [] });

test('the first line of a row has the verdict of all its values, and others that differ follow', () => {
  const row = {
    name: ['take'], verdict: 'waits less, spins more',
    values: [value('waiting', 'waits less'), value('waits', UNDECIDED), value('spinning', 'spins more')],
  };
  const lines = measureLines(measure('locks'), row);
  assert.deepEqual(lines.map(({ quantity, verdict }) => [quantity.name, verdict]), [
    ['waiting', 'waits less, spins more'], ['spinning', 'spins more'],
  ]);
  // A request has all of its values, each with its own verdict.
  assert.deepEqual(measureLines(measure('requests'), row).map(({ verdict }) => verdict), ['waits less', `${UNDECIDED} (2.00 M)`, 'spins more']);
});

test('a row that does not differ says which change would have been found', () => {
  const row = { name: ['take'], verdict: UNDECIDED, values: [value('waiting', UNDECIDED), value('waits', UNDECIDED, null)] };
  const [line, ...others] = measureLines(measure('waits'), row);
  assert.match(line.verdict, /^cannot be told \(2(\.0+)? ms\)$/);
  assert.equal(others.length, 0);
});

test('values have their divisor', () => {
  assert.equal(quantityText(quantities[0], false), 'waiting per second');
  assert.equal(quantityText({ ...quantities[0], per: 'run' }, true), 'waiting per unit');
  assert.equal(quantityText({ ...quantities[0], per: null }, false), 'waiting');
});
