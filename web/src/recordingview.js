// The view of the recording: all that is known of it, and of the page.

import { byId, el } from './dom.js';
import { boundWarnings, ledgerFacts, lossFigures, shellLine } from './facts.js';
import { formatBytes, formatCount, formatDate, formatDuration, formatPeriod } from './format.js';

/** @import { Page } from './page.d.ts' */
/** @import { Profile, Recording } from './types.d.ts' */

/** @param {string} title
 *  @param {readonly (readonly [string, string | HTMLElement])[]} pairs */
function facts(title, pairs, cls = '') {
  const shown = pairs.filter(([, value]) => value !== '');
  if (shown.length === 0) {
    return null;
  }
  const rows = shown.flatMap(([label, value]) => [el('dt', {}, label), el('dd', {}, value)]);
  return el('section', { class: `card ${cls}` }, el('h2', {}, title), el('dl', {}, ...rows));
}

/** @param {string} title
 *  @param {string[]} head
 *  @param {string[][]} rows */
function grid(title, head, rows, cls = '') {
  /** @param {'th' | 'td'} tag
   *  @param {string[]} row */
  const cells = (tag, row) => row.map((text, i) => el(tag, { class: i === 0 ? '' : 'number' }, text));
  return rows.length === 0 ? null : el(
    'section',
    { class: `card ${cls}` },
    el('h2', {}, title),
    el('table', {}, el('thead', {}, el('tr', {}, ...cells('th', head))), el('tbody', {}, ...rows.map((row) => el('tr', {}, ...cells('td', row))))),
  );
}

/** @param {Recording} recording
 *  @returns {[string, string | HTMLElement][]} */
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

/** @param {Profile} profile */
function cards(profile) {
  const { losses } = profile;
  const events = profile.events.map((event) => [
    event.name, formatCount(event.samples), formatPeriod(event.name, event.period), formatCount(event.lostSamples),
  ]);
  /** @type {(figure: [string, string, boolean, string]) => [string, HTMLElement]} */
  const pair = ([label, value, , title]) => [`${label[0].toUpperCase()}${label.slice(1)}`, el('span', {}, value, el('small', {}, title))];
  return [
    facts('Recording', recordingFacts(profile.recording), 'wide'),
    grid('Events', ['Event', 'Samples', 'Sum of periods', 'Lost samples'], events),
    facts('Loss', [...lossFigures(profile).map(pair), ['Paused', losses.elapsedNs > 0 ? formatDuration(losses.pausedNs) : '']]),
    facts('Cost of recording', ledgerFacts(profile.ledger)),
    grid('Records', ['Type', 'Count'], profile.records.map(([type, count]) => [type, formatCount(count)])),
    facts('Page', [
      ['Call tree', `${formatCount(profile.nodes.parent.length)} nodes, ${formatCount(profile.rows.node.length)} rows`],
      ['Complete', boundWarnings(profile).join(' ') || 'yes: nothing was left out'],
      ['Written by', profile.generator],
    ]),
  ].filter((card) => card !== null);
}

export class RecordingView {
  /** @param {Page} page */
  constructor(page) {
    byId('view-recording').replaceChildren(...cards(page.model.profile));
  }

  /** The cards are the same in each state. */
  show() {}
}
