// Names, numbers, colours, state, column encoding, facts.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cleanName, shortenName, shortenThread } from '../../src/names.js';
import * as format from '../../src/format.js';
import { KINDS, MAX_COLOURED_BINARIES, binaryColour, kindColour, kindIndex, themePaint } from '../../src/colors.js';
import { DEFAULT_STATE, decodeState, encodeState } from '../../src/state.js';
import { decodeProfile, deltaColumn, plainColumn } from '../../src/decode.js';
import { boundWarnings, bpfFact, costFigures, ledgerFacts, lossFigures, pmiFact, shellLine } from '../../src/facts.js';
import { compareRows } from '../../src/table.js';
import { eventChoices } from '../../src/controls.js';

test('names lose parameters, then template arguments, then scopes, then their end', () => {
  const name = 'std::vector<kv::Slot, std::allocator<kv::Slot>>::operator[](unsigned long) const';
  assert.equal(shortenName(name, 100), name);
  assert.equal(shortenName(name, 70), 'std::vector<kv::Slot, std::allocator<kv::Slot>>::operator[] const');
  assert.equal(shortenName(name, 35), 'std::vector<…>::operator[] const');
  assert.equal(shortenName(name, 28), '…vector<…>::operator[] const');
  assert.equal(shortenName(name, 18), '…operator[] const');
  assert.equal(shortenName(name, 8), 'operato…');
  assert.equal(shortenName(name, 1), '');
});

test('a method keeps the beginning of its type', () => {
  const name = 'llvm::ModuleToPostOrderCGSCCPassAdaptor::run';
  assert.equal(shortenName(name, 40), '…ModuleToPostOrderCGSCCPassAdaptor::run');
  assert.equal(shortenName(name, 24), 'ModuleToPostOrderC…::run');
  assert.equal(shortenName(name, 10), 'Modu…::run');
  assert.equal(shortenName(name, 9), '…run');
  assert.equal(shortenName('github.com/organisation/server.handle', 20), '…server.handle');
});

test('operators, receivers and anonymous namespaces stay readable', () => {
  assert.equal(shortenName('a::operator<<(std::ostream&, int)', 15), 'a::operator<<');
  assert.equal(shortenName('a::operator()(int, int, int)', 15), 'a::operator()');
  assert.equal(shortenName('a::operator->(int, int)', 15), 'a::operator->');
  assert.equal(shortenName('net/http.(*conn).serve', 19), '…http.(*conn).serve');
  assert.equal(shortenName('a::(anonymous namespace)::run(int)', 16), 'a::{anon}::run');
  assert.equal(shortenName('<alloc::vec::Vec<T> as core::iter::Extend>::extend', 14), '<…>::extend');
  assert.equal(shortenName('less<<<than', 6), 'less<…');
});

test('a shortened name is never longer than asked for', () => {
  const names = ['f(((', '<<<<>', 'a::b::c::d::e::f<g<h>>(i)', '::::', '/', 'x'.repeat(300), '(anonymous namespace)', '()', '<>'];
  for (const name of names) {
    for (let max = 0; max < 40; max++) {
      assert.ok(shortenName(name, max).length <= max, `${name} in ${max}`);
    }
  }
});

test('invisible characters of names become visible', () => {
  assert.equal(cleanName('a\u202eb\u0000c\u200bd\n\u061c\u009b\u001b[2J'), 'a\\u{202e}b\\x00c\\u{200b}d\\x0a\\u{61c}\\u{9b}\\x1b[2J');
  assert.equal(cleanName('größe<T>'), 'größe<T>');
});

test('numbers, sizes and times', () => {
  assert.equal(format.formatCount(1234567), '1,234,567');
  assert.equal(format.formatShort(987), '987');
  assert.equal(format.formatShort(1234), '1.23 k');
  assert.equal(format.formatShort(999_999), '1.00 M');
  assert.equal(format.formatBytes(48_213_004), '46.0 MiB');
  assert.equal(format.formatDuration(1_500_000), '1.50 ms');
  assert.equal(format.formatDuration(3_725e9), '1 h 2 min 5 s');
  assert.equal(format.formatPercent(0), '0 %');
  assert.equal(format.formatPercent(1), '100 %');
  assert.equal(format.formatPercent(0.99999), '99.99 %');
  assert.equal(format.formatPercent(0.0000001), '<0.001 %');
  assert.equal(format.formatPeriod('cpu-clock:u', 2e9), '2.00 s');
  assert.equal(format.formatPeriod('cycles', 2e9), '2.00 G');
  assert.equal(format.formatDate(1_795_270_812), '2026-11-21 14:20:12 UTC');
  assert.equal(format.plural(1, 'sample'), '1 sample');
});

function luminance([hue, saturation, lightness]) {
  const [s, l] = [saturation / 100, lightness / 100];
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    const c = l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4);
}

function hexLuminance(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test('frames can be read: contrast of 4.5 and more in both themes', () => {
  for (const theme of ['light', 'dark']) {
    const text = hexLuminance(themePaint(theme).text);
    const kinds = KINDS.map((kind, index) => [kind.id, kindColour(index, theme)]);
    const binaries = Array.from({ length: MAX_COLOURED_BINARIES + 1 }, (_, rank) => [rank, binaryColour(rank, theme)]);
    for (const [name, [hue, saturation, lightness]] of [...kinds, ...binaries]) {
      // The corners of what `vary` does.
      for (const [dh, ds, dl] of [[0, 0, 0], [6, 4, 3], [-6, 4, 3], [6, -4, -3], [-6, 4, -3], [6, 4, -3]]) {
        const fill = luminance([(hue + dh + 360) % 360, saturation + ds, lightness + dl]);
        const contrast = (Math.max(text, fill) + 0.05) / (Math.min(text, fill) + 0.05);
        assert.ok(contrast >= 4.5, `${theme} ${name}: ${contrast.toFixed(2)}`);
      }
    }
  }
});

test('kinds of code', () => {
  const kind = (dso, flags) => KINDS[kindIndex(dso, { inlined: false, kernel: false, folded: false, ...flags })].id;
  assert.equal(kind('elf', {}), 'user');
  assert.equal(kind('elf', { inlined: true }), 'inlined');
  assert.equal(kind('kernel', { inlined: true, kernel: true }), 'kernel');
  assert.equal(kind('module', { kernel: true }), 'module');
  assert.equal(kind('jit', {}), 'jit');
  assert.equal(kind('no such kind', {}), 'unknown');
  assert.equal(kind('folded', { folded: true }), 'folded');
});

test('a state comes back from its fragment', () => {
  const state = {
    ...DEFAULT_STATE, event: 2, pid: 7, tid: -1, comm: 'a&b=#c', weight: 'samples', view: 'sandwich',
    stacks: 'bottom-up', shape: 'icicle', colour: 'binary', search: '^std::<.*>%\u2028', regex: true,
    zoom: [0, 35, 36, 123456], fn: 4, callers: [1], callees: [2, 3], sort: 'name', ascending: true, filter: 'x y',
  };
  assert.deepEqual(decodeState(`#${encodeState(state)}`), state);
  assert.equal(encodeState(DEFAULT_STATE), '');
  assert.deepEqual(decodeState(''), { ...DEFAULT_STATE });
});

test('a fragment that makes no sense is as if it were not there', () => {
  const fragment = '#event=x&pid=1e9&view=__proto__&zoom=a.!.b&sort=&regex=yes&__proto__=1&constructor=2&fn=-';
  assert.deepEqual(decodeState(fragment), { ...DEFAULT_STATE, zoom: [10] });
});

test('columns as the page has them', () => {
  const base64 = (...bytes) => Buffer.from(bytes).toString('base64');
  assert.deepEqual([...plainColumn(base64(0, 127, 0x80, 1), Int32Array)], [0, 127, 128]);
  const large = base64(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f);
  assert.deepEqual([...plainColumn(large, Float64Array)], [2 ** 53 - 1]);
  assert.deepEqual([...deltaColumn(base64(2, 1, 4))], [1, 0, 2]);
  assert.throws(() => decodeProfile({ layout: 99 }), /layout 99/);
});

test('gaps are shown, and unknown values are not shown as zero', () => {
  const losses = { lostRecords: 0, lostChunks: 0, lostSamples: 0, pausedNs: 0, elapsedNs: 0, dataLoss: 0, truncatedBytes: 0 };
  const values = (profile) => Object.fromEntries(lossFigures(profile).map(([label, value, missing]) => [label, [value, missing]]));
  assert.deepEqual(values({ losses, events: [] })['data loss'], ['unknown', false]);
  const lossy = values({
    losses: { ...losses, lostRecords: 1200, elapsedNs: 100, pausedNs: 5, dataLoss: 0.05, truncatedBytes: 10 },
    events: [{ lostSamples: 3 }, { lostSamples: 4 }],
  });
  assert.deepEqual(lossy, {
    'lost records': ['1,200', true], 'lost samples': ['7', true], 'data loss': ['5.00 %', true], truncated: ['10 B', true],
  });
  const untimed = { ...losses, lostRecords: 185000, elapsedNs: 100, dataLoss: null };
  assert.deepEqual(values({ losses: untimed, events: [] })['data loss'], ['unknown', true]);
  assert.deepEqual(costFigures(null), []);
});

test('setting up is no part of the cost of recording', () => {
  const ledger = {
    wallNs: 3.41e9, setupNs: 2.4e9, userCpuNs: 6e8, systemCpuNs: 2.9e8, setupCpuNs: 8.7e8, recordedNs: 1e9, recordingCpuNs: 1.5e7,
    writtenBytes: 0, ringBytes: 0, rings: 2, writes: 0, writeNs: 0, wakeups: 0,
  };
  const [[label, value, title]] = costFigures(ledger);
  assert.deepEqual([label, value], ['recorder CPU', '15.0 ms (1.50 % of one CPU)']);
  assert.equal(title, 'in 1.00 s of recording; setting up took 870 ms in 2.40 s besides.'
    + ' With that and the end: 600 ms in user mode, 290 ms in kernel mode');
  const [[, untold]] = costFigures({ ...ledger, setupCpuNs: 0, recordingCpuNs: null });
  assert.equal(untold, '890 ms');
});

test('the cost of the kernel is shown, or why it is unknown', () => {
  const pmi = { reason: null, measurement: 'perf_handlers', count: 1000, timeNs: 2.5e6, longestNs: 4e4, measuredNs: 1e9 };
  const figures = '1,000, 2.50 µs each on average, 40.0 µs at most, 2.50 ms in all, 0.25 % of 1.00 s';
  assert.equal(pmiFact(pmi), figures);
  assert.equal(pmiFact({ ...pmi, measurement: 'all_handlers' }), `${figures}; all NMIs that were handled, since perf’s handlers are hidden`);
  assert.match(pmiFact({ ...pmi, count: 0, timeNs: 0, measuredNs: 0 }), /^0, 0 /);
  assert.equal(pmiFact({ ...pmi, reason: 'no event' }), 'not measured: no event');
  const bpf = { reason: null, programs: 1, runs: 3000, runTimeNs: 3e5, timedNs: 1e8 };
  assert.equal(bpfFact(bpf), '1: 3,000 runs in 300 µs, 0.30 % of a CPU in the 100 ms that were timed');
  assert.equal(bpfFact({ ...bpf, timedNs: 0 }), '1: 3,000 runs in 300 µs');
  assert.equal(bpfFact({ ...bpf, reason: 'off' }), '1, time not measured: off');
  assert.equal(bpfFact({ ...bpf, reason: 'none was loaded', programs: 0 }), 'none was loaded');
  const lines = [['Wall time', 'ns', 2e9], ['Written', 'bytes', 2048], ['Rings', 'count', 3], ['Heat', 'kelvin', 4]];
  assert.deepEqual(ledgerFacts({ lines, pmi, bpf }), [
    ['Wall time', '2.00 s'], ['Written', '2.00 KiB'], ['Rings', '3'], ['Heat', '4'],
    ['PMU interrupts', figures], ['BPF programs', bpfFact(bpf)],
  ]);
  assert.deepEqual(ledgerFacts(null), []);
});

test('the bounds of the page are among its warnings', () => {
  const nodes = { parent: { length: 5 } };
  const none = { bounds: { nodesBefore: 5, foldThreshold: null, threadsMerged: 0 }, nodes, warningsLeftOff: 0 };
  assert.deepEqual(boundWarnings(none), []);
  const said = boundWarnings({ bounds: { nodesBefore: 90, foldThreshold: 0.0001, threadsMerged: 3 }, nodes, warningsLeftOff: 2 });
  assert.match(said[0], /5 of 90 call tree nodes: subtrees below 0.010 %/);
  assert.match(said[1], /^The 3 threads/);
  assert.match(said[2], /^2 further warnings/);
  const moments = { sliceNs: 5e6, bucketNs: 4e6, wantedBucketNs: 1e6, maxEntries: 2000 };
  const [joined, longer] = boundWarnings({ ...none, moments });
  assert.match(joined, /those of a call stack and thread within 5\.00 ms are joined, without their CPU/);
  assert.match(longer, /exact to 4\.00 ms, not to 1\.00 ms: this page holds 2,000 entries/);
  assert.deepEqual(boundWarnings({ ...none, moments: { ...moments, sliceNs: null, bucketNs: 1e6 } }), []);
});

test('a command line is quoted where a shell needs it', () => {
  assert.equal(shellLine(['whit', 'record', '-e', 'cycles:u', "it's"]), "whit record -e cycles:u 'it'\\''s'");
});

test('rows sort by any column, ties by weight', () => {
  const row = (name, self, total, binary = 'a') => ({ name, self, total, binary });
  const rows = [row('b', 1, 5), row('a', 1, 9), row('c', 3, 3, 'A')];
  const names = (sort, ascending) => [...rows].sort(compareRows(sort, ascending)).map((r) => r.name).join('');
  assert.equal(names('self', false), 'cab');
  assert.equal(names('total', false), 'abc');
  assert.equal(names('total', true), 'cba');
  assert.equal(names('name', true), 'abc');
});

test('a name of brackets alone is cut, not emptied', () => {
  assert.equal(shortenName('</script><img src=x onerror="window.pwned = 1"> (7)', 20), 'script><img src=x o…');
  assert.equal(shortenName('(anonymous)(int, long, char const*)', 20), '(anonymous)(int, lo…');
  assert.equal(shortenName('map<int, std::vector<long>>::find(int)', 16), 'map<…>::find');
});

test('a long name of a thread keeps its number', () => {
  assert.equal(shortenThread('worker 12', 20), 'worker 12');
  assert.equal(shortenThread('a long name of a worker 1234567', 20), 'a long name… 1234567');
  assert.equal(shortenThread('name 1234567', 6), 'name 1');
  assert.equal(shortenThread('x'.repeat(40), 10), 'x'.repeat(10));
});

test('dummy events are no choice, unless one is chosen', () => {
  const events = [['cycles', 3], ['dummy:HG', 0], ['cs', 0], ['dummy', 2], ['whit-blocked', 0]].map(([name, samples]) => ({ name, samples }));
  const names = (chosen) => eventChoices(events, chosen).map(({ value, text }) => `${value} ${text}`);
  assert.deepEqual(names(0), ['0 cycles · 3 samples', '2 cs · 0 samples', '3 dummy · 2 samples']);
  assert.ok(names(1).includes('1 dummy:HG · 0 samples'));
});
