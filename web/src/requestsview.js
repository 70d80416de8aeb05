// The view of requests: durations, what makes the slow ones slow, the slowest one by one, and the critical path of one.

import { themePaint } from './colors.js';
import { fillChoice } from './controls.js';
import { byId, el, swatch } from './dom.js';
import { formatCount, formatDuration, formatMoment, formatPercent, plural } from './format.js';
import { PathLanes } from './pathlanes.js';
import { SPLIT_PARTS, barOf, durationBars } from './requests.js';
import { RowList } from './rowlist.js';

/** @import { Page } from './page.d.ts' */
/** @import { NamedRequests, RequestCall, Requests, Theme, TimeRange } from './types.d.ts' */

const CALL_COLUMNS = [['Rank', 'rank'], ['Began', 'time'], ['Took', 'time'], ['Where its time is', 'split'], ['Thread', 'thread'], ['Key', 'chain']];
const PATH_COLUMNS = [['Share', 'time'], ['Time', 'time'], ['Pieces', 'rank'], ['What', 'chain']];
/** Beginnings of requests are shown to this step. */
const START_STEP_NS = 10_000;

/** A difference. */
const signed = (/** @type {number} */ ns) => (ns < 0 ? `−${formatDuration(-ns)}` : `+${formatDuration(ns)}`);

/** A cell of a row.
 *  @param {string} kind
 *  @param {string} text */
const cell = (kind, text, title = text) => el('span', { role: 'gridcell', class: `wait-${kind}`, title }, text);

/** The parts of a call as one bar.
 *  @param {readonly number[]} split
 *  @param {Theme} theme
 *  @param {number} longestNs the duration that fills the bar */
function splitBar(split, theme, longestNs) {
  const bar = el('span', { class: 'split-bar', role: 'img', 'aria-label': splitText(split) });
  split.forEach((ns, part) => {
    if (ns > 0) {
      const piece = el('span');
      piece.style.width = `${(100 * ns) / longestNs}%`;
      piece.style.background = SPLIT_PARTS[part][theme];
      bar.append(piece);
    }
  });
  return bar;
}

/** The parts of a call in words.
 *  @param {readonly number[]} split */
function splitText(split) {
  return split.map((ns, part) => (ns > 0 ? `${SPLIT_PARTS[part].label} ${formatDuration(ns)}` : '')).filter((text) => text !== '').join(', ');
}

export class RequestsView {
  /** @param {Page} page
   *  @param {Requests} requests */
  constructor(page, requests) {
    this.page = page;
    this.requests = requests;
    fillChoice(byId('request-name'), requests.names.map(({ name, count }) => ({ value: name, text: `${name} (${formatCount(count)})` })));
    byId('request-name').addEventListener('change', () => page.go({ request: byId('request-name').value, call: 1 }));
    byId('request-time').addEventListener('click', () => this.#selectCall());
    /** @param {string[][]} columns */
    const head = (columns) => columns.map(([label, kind]) => el('span', { role: 'columnheader', class: `wait-${kind}` }, label));
    this.calls = new RowList(byId('request-calls'), 'The slowest requests', {
      current: (index) => page.go({ call: index + 1 }),
      key: (event, index) => {
        if (event.key === 'Enter' && index >= 0) {
          event.preventDefault();
          this.#selectCall();
        }
      },
    }, head(CALL_COLUMNS));
    this.rows = new RowList(byId('request-rows'), 'The path added up', { current: () => {}, key: () => {} }, head(PATH_COLUMNS));
    this.lanes = new PathLanes(byId('request-path'), {
      select: (range, lane) => this.#select(range, lane),
      wheel: (event, ns) => page.strip?.wheel(event, ns + (this.#call()?.fromNs ?? 0)) ?? false,
    });
  }

  /** @returns {NamedRequests} */
  #named() {
    const { requests: { names }, page: { state } } = this;
    return names.find(({ name }) => name === state.request) ?? names[0];
  }

  /** @returns {RequestCall | undefined} */
  #call() {
    return this.#named().calls[this.page.state.call - 1];
  }

  /** Selects the time of the call in all views.
   *  @returns {void} */
  #selectCall() {
    const call = this.#call();
    if (call !== undefined) {
      this.#select([0, call.durationNs], null);
    }
  }

  /** Selects a time since the beginning of the call, and a thread, in all views.
   *  @param {TimeRange | null} range
   *  @param {{ pid: number, tid: number | null } | null} lane */
  #select(range, lane) {
    const { page } = this;
    const begin = this.#call()?.fromNs ?? 0;
    if (page.strip === null) {
      return;
    }
    /** @type {TimeRange | null} */
    const selected = range === null ? null : [Math.max(0, Math.floor(begin + range[0])), Math.ceil(begin + range[1])];
    page.go({ range: selected, ...(lane === null ? {} : { pid: lane.pid, tid: lane.tid }) });
  }

  show() {
    const { page: { state, theme } } = this;
    const named = this.#named();
    byId('request-name').value = named.name;
    byId('request-remarks').textContent = named.remarks.join('; ');
    byId('request-legend').replaceChildren(...SPLIT_PARTS.map((part) => el('span', {}, swatch(part[theme.name]), ` ${part.label}`)));
    const call = this.#call();
    byId('request-time').hidden = this.page.strip === null || call === undefined;
    this.#showQuantiles(named, theme.name);
    this.#showHistogram(named, call);
    this.#showTail(named);
    this.#showCalls(named, theme.name);
    this.calls.current = call === undefined ? -1 : state.call - 1;
    this.calls.render();
    this.#showPath(call);
  }

  /** @param {NamedRequests} named
   *  @param {Theme} theme */
  #showQuantiles({ quantiles }, theme) {
    const longest = quantiles.at(-1)?.[1] ?? 1;
    byId('request-quantiles').replaceChildren(...quantiles.map(([name, ns, split]) => el(
      'tr',
      { title: splitText(split) },
      el('th', { scope: 'row' }, name),
      el('td', {}, formatDuration(ns)),
      el('td', { class: 'quantile-split' }, splitBar(split, theme, Math.max(1, longest))),
    )));
  }

  /** @param {NamedRequests} named
   *  @param {RequestCall | undefined} call */
  #showHistogram({ histogram, count }, call) {
    const bars = durationBars(histogram);
    const most = Math.log(1 + Math.max(1, ...histogram.counts));
    const marked = call === undefined ? -1 : barOf(histogram, call.durationNs);
    const host = byId('request-histogram');
    host.setAttribute('aria-label', `Durations of ${plural(count, 'request')}`);
    host.replaceChildren(...bars.map(({ fromNs, toNs, count: calls }, index) => {
      const bar = el('span', { class: index === marked ? 'marked' : null, title: `${formatDuration(fromNs)} to ${formatDuration(toNs)}: ${plural(calls, 'request')}` }, el('i'));
      /** @type {HTMLElement} */ (bar.firstElementChild).style.height = `${calls === 0 ? 0 : Math.max(3, (100 * Math.log(1 + calls)) / most)}%`;
      return bar;
    }));
    const [first, last] = [bars[0], bars.at(-1)];
    byId('request-shortest').textContent = first === undefined ? '' : formatDuration(first.fromNs);
    byId('request-longest').textContent = last === undefined ? '' : formatDuration(last.toNs);
  }

  /** @param {NamedRequests} named */
  #showTail({ tail, tailCalls: [slow, middle] }) {
    byId('request-tail-title').textContent = `The slowest hundredth (${formatCount(slow)}) and the middle half (${formatCount(middle)})`;
    byId('request-tail').replaceChildren(...tail.map(({ what, slowNs, middleNs, intervalNs }) => {
      const isCause = intervalNs !== null && intervalNs[0] > 0;
      const interval = intervalNs === null ? 'unknown: one request alone' : `95 % interval ${signed(intervalNs[0])} to ${signed(intervalNs[1])}`;
      return el(
        'tr',
        { class: isCause ? 'cause' : null, title: `${what}: ${interval}` },
        el('td', {}, formatDuration(slowNs)),
        el('td', {}, formatDuration(middleNs)),
        el('td', {}, signed(slowNs - middleNs)),
        el('th', { scope: 'row' }, what),
      );
    }));
  }

  /** @param {NamedRequests} named
   *  @param {Theme} theme */
  #showCalls({ calls, count }, theme) {
    const longest = calls[0]?.durationNs ?? 1;
    this.calls.show(calls.length, (index) => {
      const { fromNs, durationNs, split, thread, key } = calls[index];
      const bar = cell('split', '', splitText(split));
      bar.append(splitBar(split, theme, Math.max(1, longest)));
      return [cell('rank', formatCount(index + 1)), cell('time', formatMoment(fromNs, START_STEP_NS)), cell('time', formatDuration(durationNs)), bar,
        cell('thread', thread), cell('chain', key)];
    });
    const more = count > calls.length ? ` of ${formatCount(count)}, the slowest` : '';
    byId('request-count').textContent = `${plural(calls.length, 'request')}${more}`;
  }

  /** @param {RequestCall | undefined} call */
  #showPath(call) {
    const { page: { state, theme, strip } } = this;
    const path = call?.path ?? null;
    const range = strip === null ? null : state.range;
    const drawn = call !== undefined && path !== null && path.fromNs.length > 0;
    byId('request-path').hidden = !drawn;
    byId('request-rows').hidden = path === null;
    this.lanes.show(drawn ? { call, path, range, paint: themePaint(theme.name), theme: theme.name } : null);
    const rows = path?.rows ?? [];
    this.rows.show(rows.length, (index) => {
      const { durationNs, pieces, what, explains } = rows[index];
      const text = explains === '' ? what : `${what} — ${explains}`;
      return [cell('time', formatPercent(durationNs / Math.max(1, call?.durationNs ?? 1))), cell('time', formatDuration(durationNs)),
        cell('rank', formatCount(pieces)), cell('chain', text)];
    });
    byId('request-path-note').textContent = this.#pathNote(call);
  }

  /** Remarks on the path of a call, in words.
   *  @param {RequestCall | undefined} call */
  #pathNote(call) {
    const { requests: { noPaths }, page: { state } } = this;
    if (call === undefined) {
      return 'no request ended while it was recorded';
    }
    const { path } = call;
    if (path === null) {
      return noPaths === '' ? `the page has the paths of the slowest ones alone: whit why --request ${this.#named().name}:${state.call}` : noPaths;
    }
    const left = path.rowsLeftOut > 0 ? `; ${plural(path.rowsLeftOut, 'row')} left out` : '';
    const lanes = path.fromNs.length === 0 ? `; too many pieces to draw (${formatCount(path.piecesCount)})` : '';
    return `critical path of number ${state.call}: each moment of it is in one piece${lanes}${left}`;
  }
}
