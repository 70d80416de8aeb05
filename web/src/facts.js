// Facts that a reader must know before believing the picture: missing data, the recording's cost,
// failures; and the recording's own description.

import { el } from './dom.js';
import {
  formatBytes, formatCount, formatDate, formatDuration, formatPercent, formatPeriod, plural,
} from './format.js';

/** The loss figures: label, value, true where something is missing, explanation.
 *  @returns {[string, string, boolean, string][]} */
export function lossFigures(profile) {
  const { losses, events } = profile;
  const byEvent = events.reduce((sum, event) => sum + event.lostSamples, 0);
  const lostSamples = Math.max(losses.lostSamples, byEvent);
  // It is null where something was lost and nobody knows for how long.
  const isTimed = losses.elapsedNs > 0 && losses.dataLoss !== null;
  return [
    ['lost records', formatCount(losses.lostRecords), losses.lostRecords > 0,
      `Records that did not fit into a ring, reported ${losses.lostChunks === 1 ? 'once' : `${formatCount(losses.lostChunks)} times`}`],
    ['lost samples', formatCount(lostSamples), lostSamples > 0, 'Samples that the kernel says it lost'],
    ['data loss', isTimed ? formatPercent(losses.dataLoss) : 'unknown', losses.dataLoss === null || losses.dataLoss > 0,
      isTimed
        ? `Rings were full for ${formatDuration(losses.pausedNs)} of ${formatDuration(losses.elapsedNs)} recorded, summed over rings`
        : 'The recording does not say for how long its rings were full'],
    ['truncated', formatBytes(losses.truncatedBytes), losses.truncatedBytes > 0,
      'Bytes at the end of the file that hold no whole record'],
  ];
}

/** The recorder's CPU time: that of recording, without setting up where that was measured. */
function recorderCpu(ledger) {
  const modes = `${formatDuration(ledger.userCpuNs)} in user mode, ${formatDuration(ledger.systemCpuNs)} in kernel mode`;
  if (ledger.recordingCpuNs === null) {
    return ['recorder CPU', formatDuration(ledger.userCpuNs + ledger.systemCpuNs),
      `${modes}; setting up for ${formatDuration(ledger.setupNs)} is included`];
  }
  const share = ledger.recordedNs > 0 ? ` (${formatPercent(ledger.recordingCpuNs / ledger.recordedNs)} of one CPU)` : '';
  return ['recorder CPU', `${formatDuration(ledger.recordingCpuNs)}${share}`,
    `in ${formatDuration(ledger.recordedNs)} of recording; setting up took ${formatDuration(ledger.setupCpuNs)} in`
    + ` ${formatDuration(ledger.setupNs)} besides. With that and the end: ${modes}`];
}

/** The cost figures: label, value, explanation; empty where the recorder kept no ledger. */
export function costFigures(ledger) {
  if (ledger === null) {
    return [];
  }
  return [
    recorderCpu(ledger),
    ['written', formatBytes(ledger.writtenBytes),
      `${formatBytes(ledger.ringBytes)} taken out of ${plural(ledger.rings, 'ring')}, ${plural(ledger.writes, 'write')} in ${formatDuration(ledger.writeNs)}`],
    ['wake-ups', formatCount(ledger.wakeups), 'Times that a reader was woken'],
  ];
}

/** The cost of the PMU's interrupts, in words. */
export function pmiFact(pmi) {
  if (pmi.reason !== null) {
    return `not measured: ${pmi.reason}`;
  }
  const average = pmi.count > 0 ? pmi.timeNs / pmi.count : 0;
  const share = pmi.measuredNs > 0 ? `, ${formatPercent(pmi.timeNs / pmi.measuredNs)} of ${formatDuration(pmi.measuredNs)}` : '';
  const whose = pmi.measurement === 'perf_handlers' ? '' : '; all NMIs that were handled, since perf’s handlers are hidden';
  return `${formatCount(pmi.count)}, ${formatDuration(average)} each on average, ${formatDuration(pmi.longestNs)} at most, ${formatDuration(pmi.timeNs)} in all${share}${whose}`;
}

/** The cost of the recorder’s BPF programs, in words. */
export function bpfFact(bpf) {
  if (bpf.reason === null) {
    const share = bpf.timedNs > 0 ? `, ${formatPercent(bpf.runTimeNs / bpf.timedNs)} of a CPU in the ${formatDuration(bpf.timedNs)} that were timed` : '';
    return `${formatCount(bpf.programs)}: ${plural(bpf.runs, 'run')} in ${formatDuration(bpf.runTimeNs)}${share}`;
  }
  return bpf.programs === 0 ? bpf.reason : `${formatCount(bpf.programs)}, time not measured: ${bpf.reason}`;
}

function figure(label, value, title, state) {
  // Numbers stand before their label, words behind it.
  const parts = /^[\d<]/.test(value) ? [el('b', {}, value), ` ${label}`] : [`${label} `, el('b', {}, value)];
  return el('span', { class: `figure ${state}`, title }, ...parts);
}

/** Fills the strip that stays in view. */
export function renderStrip(profile, { losses, cost, warnings }) {
  const figures = lossFigures(profile);
  const clean = figures.every(([, , missing]) => !missing);
  losses.classList.toggle('bad', !clean);
  losses.replaceChildren(
    el('span', { class: 'strip-label' }, clean ? 'Loss: none known' : 'Loss'),
    ...figures.map(([label, value, missing, title]) => figure(label, value, title, missing ? 'missing' : 'fine')),
  );
  const costs = costFigures(profile.ledger);
  cost.replaceChildren(
    el('span', { class: 'strip-label' }, 'Cost'),
    ...costs.map(([label, value, title]) => figure(label, value, title, 'plain')),
    ...(costs.length === 0 ? [figure('', 'not in the recording', 'Only whit record keeps a ledger of what recording cost', 'plain')] : []),
  );
  renderWarnings(profile, warnings);
}

/** Data that the page itself left out, as warnings. */
export function boundWarnings({ bounds, nodes, warningsLeftOff, moments }) {
  const said = [];
  if (bounds.foldThreshold !== null) {
    said.push(`This page holds ${formatCount(nodes.parent.length)} of ${formatCount(bounds.nodesBefore)} call tree nodes: subtrees below ${formatPercent(bounds.foldThreshold)} of every event are folded into “(N small frames)”. Totals are complete; a function’s own sums leave out what was folded.`);
  }
  if (bounds.threadsMerged > 0) {
    said.push(`The ${formatCount(bounds.threadsMerged)} threads with the fewest samples are shown as one.`);
  }
  const { sliceNs = null, bucketNs = 0, wantedBucketNs = 0, maxEntries = 0 } = moments ?? {};
  if (sliceNs !== null) {
    said.push(`The recording has more samples than a page keeps one by one: those of a call stack and thread within ${formatDuration(sliceNs)} are joined, without their CPU. Ranges of time are exact to that.`);
  }
  if (bucketNs > wantedBucketNs) {
    said.push(`Ranges of time are exact to ${formatDuration(bucketNs)}, not to ${formatDuration(wantedBucketNs)}: this page holds ${formatCount(maxEntries)} entries of time at most.`);
  }
  if (warningsLeftOff > 0) {
    said.push(`${plural(warningsLeftOff, 'further warning')} left off this page.`);
  }
  return said;
}

function renderWarnings(profile, details) {
  const lines = [...boundWarnings(profile), ...profile.warnings];
  details.hidden = lines.length === 0;
  if (lines.length === 0) {
    return;
  }
  details.replaceChildren(
    el('summary', {}, el('b', {}, plural(lines.length, 'warning')), el('span', { class: 'first' }, lines[0])),
    el('ul', {}, ...lines.map((line) => el('li', {}, line))),
  );
}

function facts(title, pairs, cls = '') {
  const shown = pairs.filter(([, value]) => value !== '' && value !== null && value !== undefined);
  if (shown.length === 0) {
    return null;
  }
  const rows = shown.flatMap(([label, value]) => [el('dt', {}, label), el('dd', {}, value)]);
  return el('section', { class: `card ${cls}` }, el('h2', {}, title), el('dl', {}, ...rows));
}

function grid(title, head, rows, cls = '') {
  const cells = (tag, row) => row.map((text, i) => el(tag, { class: i === 0 ? '' : 'number' }, text));
  return rows.length === 0 ? null : el(
    'section',
    { class: `card ${cls}` },
    el('h2', {}, title),
    el('table', {}, el('thead', {}, el('tr', {}, ...cells('th', head))), el('tbody', {}, ...rows.map((row) => el('tr', {}, ...cells('td', row))))),
  );
}

/** A command line as a shell would take it. */
export function shellLine(words) {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

function recordingFacts(recording) {
  const { cpusOnline, cpusAvailable, totalMemKib, spanNs, capturedOnS } = recording;
  const cpus = cpusOnline === null ? '' : `${cpusOnline} online of ${cpusAvailable}`;
  return [
    ['Command', recording.cmdline.length > 0 ? el('code', {}, shellLine(recording.cmdline)) : ''],
    ['Recorded on', capturedOnS === null ? '' : formatDate(capturedOnS)],
    ['First to last sample', spanNs === null ? '' : formatDuration(spanNs)],
    ['Host', recording.hostname],
    ['Kernel', recording.osRelease],
    ['Architecture', recording.arch],
    ['CPUs', cpus],
    ['CPU', [recording.cpuDesc, recording.cpuid].filter((text) => text !== '').join(' · ')],
    ['Memory', totalMemKib === null ? '' : formatBytes(totalMemKib * 1024)],
    ['File', recording.path],
    ['Size', recording.sizeBytes > 0 ? formatBytes(recording.sizeBytes) : ''],
    ['Recorded by', recording.version],
    ['Call chains', recording.hasCallchains ? 'yes' : 'no: each stack is its leaf alone'],
  ];
}

const FORMATS = { ns: formatDuration, bytes: formatBytes, count: formatCount };

/** The entries of the ledger, as label and value; a unit that this page does not know is a count. */
export function ledgerFacts(ledger) {
  return ledger === null ? [] : [
    ...ledger.lines.map(([title, unit, value]) => [title, (FORMATS[unit] ?? formatCount)(value)]),
    ['PMU interrupts', pmiFact(ledger.pmi)],
    ['BPF programs', bpfFact(ledger.bpf)],
  ];
}

/** Fills the view of the recording. */
export function renderRecording(profile, container) {
  const { losses } = profile;
  const events = profile.events.map((event) => [
    event.name, formatCount(event.samples), formatPeriod(event.name, event.period), formatCount(event.lostSamples),
  ]);
  const lossPairs = lossFigures(profile).map(([label, value, , title]) => [
    `${label[0].toUpperCase()}${label.slice(1)}`, el('span', {}, value, el('small', {}, title)),
  ]);
  container.replaceChildren(...[
    facts('Recording', recordingFacts(profile.recording), 'wide'),
    grid('Events', ['Event', 'Samples', 'Sum of periods', 'Lost samples'], events),
    facts('Loss', [...lossPairs, ['Paused', losses.elapsedNs > 0 ? formatDuration(losses.pausedNs) : '']]),
    facts('Cost of recording', ledgerFacts(profile.ledger)),
    grid('Records', ['Type', 'Count'], profile.records.map(([type, count]) => [type, formatCount(count)])),
    facts('Page', [
      ['Call tree', `${formatCount(profile.nodes.parent.length)} nodes, ${formatCount(profile.rows.node.length)} rows`],
      ['Complete', boundWarnings(profile).join(' ') || 'yes: nothing was left out'],
      ['Written by', profile.generator],
    ]),
  ].filter((card) => card !== null));
}
