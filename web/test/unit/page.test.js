// The generated pages' data through the page's own modules: what Rust wrote is what the page sums.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Script } from 'node:vm';

import { decodeProfile } from '../../src/decode.js';
import { decodeMoments, inflateText } from '../../src/moments.js';
import { DEFAULT_STATE } from '../../src/state.js';
import { Model } from '../../src/model.js';
import { sumOf } from './profiles.js';

const PAGES = process.env.WHIT_TEST_PAGES;
if (PAGES === undefined) {
  throw new Error('WHIT_TEST_PAGES names no folder of generated pages: run web/test/run.sh');
}

async function modelOf(page) {
  const html = readFileSync(join(PAGES, `${page}.html`), 'utf8');
  const [, json] = /<script type="application\/json" id="profile">([^<]*)<\/script>/.exec(html);
  const profile = decodeProfile(JSON.parse(json));
  if (profile.moments !== null) {
    const [, columns] = /id="moments">([^<]*)<\/script>/.exec(html);
    profile.moments = decodeMoments(profile.moments, await inflateText(columns));
  }
  return new Model(profile);
}

for (const page of ['server', 'hostile', 'large', 'waits', 'one', 'empty']) {
  test(`${page}: all events, processes, threads and comms add up`, async () => {
    const model = await modelOf(page);
    const { events, threads } = model.profile;
    events.forEach((event, index) => {
      const state = { ...DEFAULT_STATE, event: index };
      model.select(state);
      assert.equal(model.weights.totalSamples[0], event.samples);
      assert.equal(model.weights.totalPeriod[0], event.period);
      const choices = model.choices(state);
      for (const list of [choices.processes, choices.threads, choices.comms]) {
        assert.equal(sumOf(list, (choice) => choice.weight), model.total);
      }
      const inverted = model.graph('bottom-up', []);
      assert.equal(inverted.weight[0], model.total, 'inverted, the same total');
      const bySingleThread = sumOf(threads, ({ pid, tid }) => {
        model.select({ ...state, pid, tid });
        return model.weights.totalSamples[0];
      });
      assert.equal(bySingleThread, event.samples, 'threads one by one are the whole');
    });
  });
}

test('hostile: no text of the recording has invisible characters left', async () => {
  const { title, recording, warnings, events, comms, dsos, files, functions } = (await modelOf('hostile')).profile;
  const texts = [
    title, recording.path, recording.hostname, ...recording.cmdline, ...warnings, ...comms, ...files, ...functions.names,
    ...events.map((event) => event.name), ...dsos.flatMap((dso) => [dso.path, dso.name]),
  ];
  assert.ok(texts.includes('\\u{202e}gnp.exe\\x00\\x07'));
  assert.deepEqual(texts.filter((text) => /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(text)), []);
});

test('the joined script parses: no import is left, no top-level name is there twice', async () => {
  const html = readFileSync(join(PAGES, 'empty.html'), 'utf8');
  const [, script] = /<script type="module">([^]*)<\/script>/.exec(html);
  assert.ok(new Script(script, { filename: 'page.js' }));
});

test('server: the graph names what the profile holds', async () => {
  const model = await modelOf('server');
  model.select(DEFAULT_STATE);
  const names = new Set([...model.tree.key].slice(1).map((key) => model.functionName(key >> 1)));
  for (const name of ['__clone3', 'kv::Store::get(std::string_view) const', 'LazyCompile:*renderRow dashboard.js:210']) {
    assert.ok(names.has(name), name);
  }
  const found = model.search('kv::Compactor::merge', false);
  const merge = model.profile.functions.names.findIndex((name) => name.startsWith('kv::Compactor::merge'));
  const sums = model.functionSums();
  assert.equal(found.weight, sums.totalPeriod[merge], 'recursion counts once in search and table');
  assert.ok(found.share > 0 && found.share < 0.2);
  assert.deepEqual(model.search('x', false).share > 0, true);
  assert.equal(model.search('', false), null);
});

test('server: source lines of a node, heaviest first', async () => {
  const model = await modelOf('server');
  model.select(DEFAULT_STATE);
  const put = [...model.tree.key.keys()].find((node) => node > 0
    && model.functionName(model.tree.key[node] >> 1).startsWith('kv::Store::put'));
  const lines = model.sourceLines(model.tree.key[put], put);
  assert.deepEqual(lines.map(({ line }) => line), ['src/store.cc:212', 'src/store.cc:215', 'src/store.cc:231']);
  assert.ok(Math.abs(sumOf(lines, ({ share }) => share) - 1) < 1e-9);
});

test('one: an event without periods counts samples', async () => {
  const model = await modelOf('one');
  model.select(DEFAULT_STATE);
  assert.equal(model.byPeriod, false);
  assert.equal(model.total, 1);
});

test('large: folded nodes say how many they are', async () => {
  const model = await modelOf('large');
  model.select(DEFAULT_STATE);
  const { bounds, nodes } = model.profile;
  assert.ok(nodes.parent.length <= 200_000 && bounds.nodesBefore > 200_000);
  const { graph } = model.graph('top-down', []);
  const folded = [...graph.key.keys()].filter((node) => graph.key[node] === model.foldedKey);
  assert.match(model.nodeName(graph, folded[0]), /^\([\d,]+ small frames?\)$/);
  const dropped = sumOf(folded, (node) => model.tree.folded[node]);
  assert.equal(nodes.parent.length - folded.length + dropped, bounds.nodesBefore);
});
