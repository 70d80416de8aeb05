// The line above all views: busy CPUs, the hottest functions, the waits that cost most, losses.

import { byId, el } from './dom.js';
import { formatCount, formatDuration, formatPercent, plural } from './format.js';
import { shortenName } from './names.js';

/** @import { Headline, Profile } from './types.d.ts' */

/** Characters of a name in the line; the opened list has whole names. */
const LINE_NAME = 24;

/** A wait in words: in the line its sum and innermost function, else all of it.
 *  @param {Headline['waits'][number]} wait
 *  @param {boolean} isShort */
function waitText({ class: kind, comm, functions, waitNs, count }, isShort) {
  const site = (isShort ? functions.slice(0, 1).map((name) => shortenName(name, LINE_NAME)) : functions).join(' ← ');
  const where = site === '' ? '' : ` in ${site}`;
  return isShort ? `${kind} ${formatDuration(waitNs)}${where}` : `${kind} ${formatDuration(waitNs)}, ${plural(count, 'wait')} of ${comm}${where}`;
}

/** The facts in words, each with a title: short ones for the line, or whole ones.
 *  @param {Headline} headline
 *  @param {boolean} hasWaits
 *  @param {boolean} isShort
 *  @returns {[title: string, text: string][]} */
export function headlineParts({ busyCpus, cpus, functions, waits, lost }, hasWaits, isShort) {
  /** @type {[string, string][]} */
  const parts = [];
  if (busyCpus !== null) {
    parts.push(['', `${busyCpus.toFixed(2)}${cpus === null ? '' : ` of ${formatCount(cpus)}`} CPUs busy`]);
  }
  if (functions.length > 0) {
    parts.push(['hottest', functions.map(({ name, share }) => `${isShort ? shortenName(name, LINE_NAME) : name} ${formatPercent(share)}`).join(', ')]);
  }
  if (hasWaits) {
    const sums = waits.map((wait) => waitText(wait, isShort));
    parts.push(['waits', sums.length > 0 ? sums.join(isShort ? ', ' : '; ') : 'none held work up']);
  }
  parts.push(['', lost === null ? 'nothing lost' : `lost: ${lost}`]);
  return parts;
}

/** Fills the line; a page of two sides has none.
 *  @param {Profile} profile */
export function renderHeadline({ headline, switches }) {
  byId('headline').hidden = !headline;
  if (!headline) {
    return;
  }
  const hasWaits = Boolean(switches);
  /** @param {[string, string]} part */
  const words = ([title, text]) => (title === '' ? [el('b', {}, text)] : [`${title}: `, el('b', {}, text)]);
  const short = headlineParts(headline, hasWaits, true);
  const whole = headlineParts(headline, hasWaits, false);
  byId('headline').replaceChildren(
    el('summary', { title: 'In short: click for whole names' }, ...short.flatMap((part, at) => [at > 0 ? el('span', { class: 'sep' }, '·') : null, ...words(part)])),
    el('ul', {}, ...whole.map((part) => el('li', {}, ...words(part)))),
  );
}
