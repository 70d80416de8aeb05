import assert from 'node:assert/strict';
import { test } from 'node:test';

import { compileQuery, exactly, matchFunctions, matchedWeight } from '../../src/search.js';
import { mergeTree, weighTree } from '../../src/tree.js';
import { forRandomProfiles, sumOf } from './profiles.js';

test('a stack counts once, however many of its functions match', () => {
  forRandomProfiles((profile, rows, seed) => {
    const tree = mergeTree(profile);
    const { totalSamples } = weighTree(tree, profile.rows, { event: 0, threads: null, comms: null });
    for (const pattern of ['f1', 'f[13]', 'f', 'nothing']) {
      const matches = matchFunctions(profile.functions.names, compileQuery(pattern, true));
      const on = rows.filter((r) => r.event === 0
        && r.stack.some(([fn]) => new RegExp(pattern).test(`f${fn}`)));
      assert.equal(matchedWeight(tree, totalSamples, matches), sumOf(on, (r) => r.samples), seed);
    }
  });
});

test('capitals make case matter', () => {
  assert.ok(compileQuery('store', false).test('kv::Store::get'));
  assert.ok(compileQuery('Store', false).test('kv::Store::get'));
  assert.ok(!compileQuery('STORE', false).test('kv::Store::get'));
  assert.ok(compileQuery('^kv::(store|wal)', true).test('kv::Store::get'));
});

test('brackets are text unless a regular expression is asked for', () => {
  assert.ok(compileQuery('operator[](', false).test('a::operator[](int)'));
  assert.notEqual(compileQuery('operator[(', true).error, '');
  assert.equal(compileQuery('', true), null);
});

test('an exact search finds one name alone', () => {
  const name = 'std::vector<int>::operator[](unsigned long) const \\ $^ {a|b}*+?./-';
  const query = compileQuery(exactly(name), true);
  assert.equal(query.error, '');
  assert.ok(query.test(name));
  assert.ok(!query.test(`${name}x`) && !query.test(`x${name}`));
});
