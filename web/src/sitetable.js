// The table of waits by class and call site.

import { byId, el } from './dom.js';
import { formatCount, formatDuration, plural } from './format.js';
import { RowList } from './rowlist.js';
import { CPU_CLASS, WAIT_GROUPS, isHiddenGroup } from './waitsites.js';

/** @import { State, TimelineData, WaitSite } from './types.d.ts' */

const SITE_COLUMNS = [['Waited', 'time'], ['Waits', 'count'], ['Longest', 'time'], ['Kind', 'kind'], ['Command', 'thread'], ['Call site', 'chain']];

/** @typedef {{ site: WaitSite, title?: undefined } | { title: string, site?: undefined }} SiteRow */

/** Rows of the table: sites in groups, each group but the first below a title.
 *  @param {readonly WaitSite[]} sites
 *  @param {Pick<State, 'hideIdle' | 'hideKernel'>} state
 *  @returns {SiteRow[]} */
export function siteRows(sites, state) {
  /** @type {SiteRow[]} */
  const rows = [];
  WAIT_GROUPS.forEach((name, group) => {
    const own = isHiddenGroup(group, state) ? [] : sites.filter((site) => site.group === group);
    if (own.length > 0 && group > 0) {
      const ns = own.reduce((sum, site) => sum + site.ns, 0);
      rows.push({ title: `${name[0].toUpperCase()}${name.slice(1)}: ${plural(own.length, 'call site')}, ${formatDuration(ns)}` });
    }
    rows.push(...own.map((site) => ({ site })));
  });
  return rows;
}

export class SiteTable {
  /** @param {HTMLElement} container
   *  @param {TimelineData} timeline
   *  @param {(span: number) => void} choose takes the longest single wait of a site, -1 for none */
  constructor(container, timeline, choose) {
    this.timeline = timeline;
    /** @type {SiteRow[]} */
    this.rows = [];
    const head = SITE_COLUMNS.map(([label, kind]) => el('span', { role: 'columnheader', class: `wait-${kind}` }, label));
    this.list = new RowList(container, 'Waits by call site', {
      current: (index) => choose(this.rows[index].site?.longest ?? -1),
      key: (event) => {
        if (event.key === 'Escape') {
          event.preventDefault();
          this.list.current = -1;
          this.list.render();
          choose(-1);
        }
      },
    }, head);
  }

  /** @param {{ sites: WaitSite[], lossyNs: number, foldedNs: number }} waits
   *  @param {Pick<State, 'hideIdle' | 'hideKernel'>} state */
  show({ sites, lossyNs, foldedNs }, state) {
    this.rows = siteRows(sites, state);
    this.list.show(this.rows.length, (index) => this.#row(this.rows[index]), (index) => this.rows[index].site === undefined);
    const held = sites.filter(({ group }) => group === 0);
    const notes = [held.length === 0 ? 'no wait held work up' : `${plural(held.length, 'call site')} held work up for ${formatDuration(held.reduce((sum, { ns }) => sum + ns, 0))}`];
    if (lossyNs > 0) {
      notes.push(`${formatDuration(lossyNs)} that losses touch is left out`);
    }
    if (foldedNs > 0) {
      notes.push(`${formatDuration(foldedNs)} of light call stacks is left out`);
    }
    byId('site-note').textContent = notes.join('; ');
  }

  /** @param {SiteRow} row */
  #row({ site, title }) {
    if (site === undefined) {
      return [el('span', { role: 'gridcell', class: 'wait-title' }, title)];
    }
    /** @param {string} kind
     *  @param {string} text */
    const cell = (kind, text, whole = text) => el('span', { role: 'gridcell', class: `wait-${kind}`, title: whole }, text);
    const threads = site.threads > 1 ? ` ×${formatCount(site.threads)}` : '';
    return [
      cell('time', formatDuration(site.ns)),
      cell('count', site.count > 0 ? formatCount(site.count) : ''),
      cell('time', site.longest < 0 ? '' : formatDuration(this.timeline.durationNs[site.longest])),
      cell('kind', site.class),
      cell('thread', `${site.comm}${threads}`, `${site.comm}, ${plural(site.threads, 'thread')}`),
      cell('chain', site.class === CPU_CLASS ? '(other threads had the CPUs)' : site.chain.join(' ← ')),
    ];
  }
}
