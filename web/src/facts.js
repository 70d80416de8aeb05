// Facts that a reader must know before believing the picture: missing data, the recording's cost,
// failures; and the title.

import { byId, el } from './dom.js';
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from './format.js';

/** @import { BpfCost, Ledger, PmiCost, Profile } from './types.d.ts' */

/** The loss figures: label, value, true where something is missing, explanation.
 *  @returns {[string, string, boolean, string][]}
 *  @param {Pick<Profile, 'losses' | 'events'>} profile */
export function lossFigures(profile) {
  const { losses, events } = profile;
  const byEvent = events.reduce((sum, event) => sum + event.lostSamples, 0);
  const lostSamples = Math.max(losses.lostSamples, byEvent);
  // Null where something was lost for an unknown time.
  const dataLoss = losses.elapsedNs > 0 ? losses.dataLoss : null;
  return [
    ['lost records', formatCount(losses.lostRecords), losses.lostRecords > 0,
      `Records that did not fit into a ring, reported ${losses.lostChunks === 1 ? 'once' : `${formatCount(losses.lostChunks)} times`}`],
    ['lost samples', formatCount(lostSamples), lostSamples > 0, 'Samples that the kernel says it lost'],
    ['data loss', dataLoss === null ? 'unknown' : formatPercent(dataLoss), losses.dataLoss === null || losses.dataLoss > 0,
      dataLoss !== null
        ? `Rings were full for ${formatDuration(losses.pausedNs)} of ${formatDuration(losses.elapsedNs)} recorded, summed over rings`
        : 'The recording does not say for how long its rings were full'],
    ['truncated', formatBytes(losses.truncatedBytes), losses.truncatedBytes > 0,
      'Bytes at the end of the file that hold no whole record'],
  ];
}

/** Label, value, explanation.
 *  @typedef {[label: string, value: string, title: string]} CostFigure */

/** The recorder's CPU time: that of recording, without setting up where that was measured.
 *  @param {Ledger} ledger
 *  @returns {CostFigure} */
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

/** The cost figures: label, value, explanation; empty where the recorder kept no ledger.
 *  @param {Ledger | null} ledger
 *  @returns {CostFigure[]} */
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

/** The cost of the PMU's interrupts, in words.
 *  @param {PmiCost} pmi */
export function pmiFact(pmi) {
  if (pmi.reason !== null) {
    return `not measured: ${pmi.reason}`;
  }
  const average = pmi.count > 0 ? pmi.timeNs / pmi.count : 0;
  const share = pmi.measuredNs > 0 ? `, ${formatPercent(pmi.timeNs / pmi.measuredNs)} of ${formatDuration(pmi.measuredNs)}` : '';
  const scope = pmi.measurement === 'perf_handlers' ? '' : '; all NMIs that were handled, since perf’s handlers are hidden';
  return `${formatCount(pmi.count)}, ${formatDuration(average)} each on average, ${formatDuration(pmi.longestNs)} at most, ${formatDuration(pmi.timeNs)} in all${share}${scope}`;
}

/** The cost of the recorder’s BPF programs, in words.
 *  @param {BpfCost} bpf */
export function bpfFact(bpf) {
  if (bpf.reason === null) {
    const share = bpf.timedNs > 0 ? `, ${formatPercent(bpf.runTimeNs / bpf.timedNs)} of a CPU in the ${formatDuration(bpf.timedNs)} that were timed` : '';
    return `${formatCount(bpf.programs)}: ${plural(bpf.runs, 'run')} in ${formatDuration(bpf.runTimeNs)}${share}`;
  }
  return bpf.programs === 0 ? bpf.reason : `${formatCount(bpf.programs)}, time not measured: ${bpf.reason}`;
}

/** @param {string} label
 *  @param {string} value
 *  @param {string} title
 *  @param {string} state */
function figure(label, value, title, state) {
  // Numbers stand before their label, words behind it.
  const parts = /^[\d<]/.test(value) ? [el('b', {}, value), ` ${label}`] : [`${label} `, el('b', {}, value)];
  return el('span', { class: `figure ${state}`, title }, ...parts);
}

/** Fills the strip that stays in view.
 *  @param {Profile} profile
 *  @param {Record<'losses' | 'cost' | 'warnings', HTMLElement>} places */
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

/** Data that the page itself left out, as warnings.
 *  @param {Pick<Profile, 'bounds' | 'nodes' | 'warningsLeftOff'> & Partial<Pick<Profile, 'moments'>>} profile */
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

/** @param {Profile} profile
 *  @param {HTMLElement} details */
function renderWarnings(profile, details) {
  const lines = [...boundWarnings(profile), ...profile.warnings];
  details.hidden = lines.length === 0;
  if (lines.length === 0) {
    return;
  }
  details.replaceChildren(
    el('summary', { title: lines[0] }, el('b', {}, plural(lines.length, 'warning'))),
    el('ul', {}, ...lines.map((line) => el('li', {}, line))),
  );
}

/** A command line as a shell would take it.
 *  @param {string[]} words */
export function shellLine(words) {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

/** @type {Record<string, (figure: number) => string>} */
const FORMATS = { ns: formatDuration, bytes: formatBytes, count: formatCount };

/** The entries of the ledger, as label and value; a unit that this page does not know is a count.
 *  @param {Ledger | null} ledger
 *  @returns {[string, string][]} */
export function ledgerFacts(ledger) {
  if (ledger === null) {
    return [];
  }
  /** @type {(line: Ledger['lines'][number]) => [string, string]} */
  const fact = ([title, unit, value]) => [title, (FORMATS[unit] ?? formatCount)(value)];
  return [
    ...ledger.lines.map(fact),
    ['PMU interrupts', pmiFact(ledger.pmi)],
    ['BPF programs', bpfFact(ledger.bpf)],
  ];
}

/** Fills the title: the command, or the page's own title where there is none or there are two sides.
 *  @param {Profile} profile */
export function renderTitle({ recording, title, compare }) {
  const command = compare ? '' : shellLine(recording.cmdline);
  byId('title').textContent = command === '' ? title : command;
  byId('title').title = command;
  byId('subtitle').textContent = [recording.hostname, recording.osRelease, recording.arch].filter((text) => text !== '').join(' · ');
}
