// Where the sums of a range of time come from: the columns in the page, whose moments are buckets, or the server of the
// page (crates/read/whit-page/src/ranges.rs), which knows each sample's time.

import { readNumbers, rowSums, undoDifferences } from './moments.js';

/** @import { LaneEntries, Moments, Profile, RowSums, Source, TimeRange } from './types.d.ts' */

/** Sums of the page's own columns. */
export class EmbeddedSource {
  /** Names the origin of a range's sums: another one means other sums. */
  origin() {
    return 'page';
  }

  /** Samples and periods of each row in a range, which touches buckets [from, to).
   *  @param {Moments} moments
   *  @param {number} rowCount
   *  @param {TimeRange} range
   *  @param {TimeRange} buckets
   *  @returns {RowSums} */
  rowSums(moments, rowCount, range, buckets) {
    return rowSums(moments, rowCount, buckets);
  }

  /** Fetches the sums of a range; true where they are others than before. */
  async load() {
    return false;
  }

  /** Samples of a thread of the page with their own times; null where only moments are known.
   *  @param {number} _thread
   *  @param {TimeRange} _range
   *  @returns {Promise<LaneEntries | null>} */
  async lane(_thread, _range) {
    return null;
  }
}

/** Reads the server's samples of a thread: a count, 1 where there are more, times and rows as differences, samples and
 *  periods.
 *  @param {Uint8Array} bytes
 *  @returns {LaneEntries} */
export function decodeLane(bytes) {
  const head = [0, 0];
  let at = readNumbers(bytes, 0, head);
  const [timeNs, row, samples, period] = [0, 1, 2, 3].map(() => new Float64Array(head[0]));
  for (const column of [timeNs, row, samples, period]) {
    at = readNumbers(bytes, at, column);
  }
  if (at !== bytes.length) {
    throw new Error('the samples of the server are cut');
  }
  undoDifferences(timeNs);
  return { timeNs, row: Int32Array.from(undoDifferences(row)), samples, period, isCut: head[1] === 1 };
}

/** Reads the server's columns: a count, then rows as differences, samples and periods of those that have some.
 *  @param {Uint8Array} bytes
 *  @param {number} rowCount */
export function decodeSums(bytes, rowCount) {
  const head = [0];
  let at = readNumbers(bytes, 0, head);
  const columns = [0, 1, 2].map(() => new Float64Array(head[0]));
  for (const column of columns) {
    at = readNumbers(bytes, at, column);
  }
  if (at !== bytes.length) {
    throw new Error('the sums of the server are cut');
  }
  const [samples, period] = [new Float64Array(rowCount), new Float64Array(rowCount)];
  undoDifferences(columns[0]).forEach((row, i) => {
    samples[row] = columns[1][i];
    period[row] = columns[2][i];
  });
  return { samples, period };
}

/** Sums of the server; until they are there, those of the page. */
export class ServerSource extends EmbeddedSource {
  /** @param {number} rowCount
   *  @param {(url: string) => Promise<Pick<Response, 'ok' | 'status' | 'arrayBuffer'>>} ask */
  constructor(rowCount, ask = (url) => fetch(url)) {
    super();
    this.rowCount = rowCount;
    this.ask = ask;
    /** @type {{ key: string, sums: RowSums } | null} */
    this.held = null;
    this.wanted = '';
  }

  /** The server's sums of a range, where they are there.
   *  @param {TimeRange | null} range */
  #sums(range) {
    return range !== null && this.held !== null && this.held.key === String(range) ? this.held.sums : null;
  }

  /** @param {TimeRange | null} [range] */
  origin(range = null) {
    return this.#sums(range) !== null ? 'server' : 'page';
  }

  /** @param {Moments} moments
   *  @param {number} rowCount
   *  @param {TimeRange} range
   *  @param {TimeRange} buckets */
  rowSums(moments, rowCount, range, buckets) {
    const sums = this.#sums(range);
    // Rows by CPU are the page's own.
    return sums !== null && rowCount === this.rowCount ? sums : super.rowSums(moments, rowCount, range, buckets);
  }

  /** @param {TimeRange | null} [range] */
  async load(range = null) {
    const key = String(range);
    if (range === null || this.#sums(range) !== null || this.wanted === key) {
      return false;
    }
    this.wanted = key;
    try {
      const [from, to] = range.map((ns) => Math.max(0, Math.round(ns)));
      const response = await this.ask(`range?from=${from}&to=${to}`);
      if (!response.ok) {
        throw new Error(`the server answers ${response.status}`);
      }
      const sums = decodeSums(new Uint8Array(await response.arrayBuffer()), this.rowCount);
      // The reader may have gone on to another range.
      if (this.wanted !== key) {
        return false;
      }
      this.held = { key, sums };
      return true;
    } finally {
      this.wanted = this.wanted === key ? '' : this.wanted;
    }
  }

  /** @param {number} thread
   *  @param {TimeRange} range */
  async lane(thread, range) {
    const [from, to] = range.map((ns) => Math.max(0, Math.round(ns)));
    const response = await this.ask(`lane?from=${from}&to=${to}&thread=${thread}`);
    if (!response.ok) {
      throw new Error(`the server answers ${response.status}`);
    }
    return decodeLane(new Uint8Array(await response.arrayBuffer()));
  }
}

/** The source of a page's ranges.
 *  @param {Profile} profile
 *  @returns {Source} */
export function sourceOf(profile) {
  return profile.isServed ? new ServerSource(profile.rows.node.length) : new EmbeddedSource();
}
