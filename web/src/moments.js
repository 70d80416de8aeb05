// When samples were taken (crates/read/whit-page/src/moments.rs writes the columns), and sums over ranges of
// time. An entry is a bucket of time, a row, a CPU and a weight; entries stand in order of time.

import { base64Bytes } from './decode.js';

/** @import { MomentFacts, Moments, Rows, TimeRange } from './types.d.ts' */

/** Reads `values.length` LEB128 numbers from `at` on; returns the place behind them.
 *  @param {Uint8Array} bytes
 *  @param {number} from
 *  @param {Float64Array | Uint16Array | number[]} values */
export function readNumbers(bytes, from, values) {
  let at = from;
  for (let i = 0; i < values.length; i++) {
    let value = bytes[at++];
    if (value >= 0x80) {
      value &= 0x7f;
      let factor = 128;
      while (bytes[at] >= 0x80) {
        value += (bytes[at++] & 0x7f) * factor;
        factor *= 128;
      }
      value += bytes[at++] * factor;
    }
    values[i] = value;
  }
  return at;
}

/** @param {Float64Array} values */
export function undoDifferences(values) {
  let before = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    // Most fit 31 bits, where whole numbers are faster.
    before += value < 0x7fffffff ? (value >>> 1) ^ -(value & 1) : value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    values[i] = before;
  }
  return values;
}

/** The bytes of a zlib stream in base64.
 *  @param {string} text */
export async function inflateText(text) {
  const stream = new Blob([base64Bytes(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The entries of a page, from its facts about them and the inflated columns.
 *  @param {MomentFacts} facts
 *  @param {Uint8Array} bytes
 *  @returns {Moments} */
export function decodeMoments(facts, bytes) {
  const { count } = facts;
  const [bucket, row, samples, period] = [0, 0, 0, 0].map(() => new Float64Array(count));
  const cpu = new Uint16Array(count);
  let at = 0;
  for (const column of [bucket, row, cpu, samples, period]) {
    at = readNumbers(bytes, at, column);
  }
  if (at !== bytes.length) {
    throw new Error('the columns of time are cut');
  }
  undoDifferences(bucket);
  const buckets = Math.floor(facts.spanNs / facts.bucketNs) + 1;
  return {
    ...facts,
    buckets,
    first: firstEntries(bucket, buckets),
    row: Int32Array.from(undoDifferences(row)),
    cpu,
    samples,
    period,
  };
}

/** Where the entries of each bucket begin, and behind the last of all.
 *  @param {Float64Array} bucket
 *  @param {number} buckets */
function firstEntries(bucket, buckets) {
  const first = new Int32Array(buckets + 1).fill(bucket.length);
  for (let i = bucket.length - 1; i >= 0; i--) {
    first[bucket[i]] = i;
  }
  for (let b = buckets - 1; b >= 0; b--) {
    first[b] = Math.min(first[b], first[b + 1]);
  }
  return first;
}

/** The buckets of a range in nanoseconds, as [from, to): those that it touches, one at least.
 *  @param {Moments} moments
 *  @param {TimeRange} range
 *  @returns {TimeRange} */
export function bucketsOf(moments, [fromNs, toNs]) {
  const last = moments.buckets - 1;
  const from = Math.min(last, Math.max(0, Math.floor(fromNs / moments.bucketNs)));
  const to = Math.max(from + 1, Math.min(moments.buckets, Math.ceil(toNs / moments.bucketNs)));
  return [from, to];
}

/** Samples and periods of each row within buckets [from, to).
 *  @param {Moments} moments
 *  @param {number} rowCount
 *  @param {TimeRange} buckets */
export function rowSums(moments, rowCount, [from, to]) {
  const samples = new Float64Array(rowCount);
  const period = new Float64Array(rowCount);
  for (let i = moments.first[from]; i < moments.first[to]; i++) {
    samples[moments.row[i]] += moments.samples[i];
    period[moments.row[i]] += moments.period[i];
  }
  return { samples, period };
}

/** Rows told apart by CPU as well: `rows` with a column `cpu`, and entries that point to them.
 *  @param {Rows} rows
 *  @param {Moments} moments
 *  @returns {{ rows: Rows, moments: Moments }} */
export function rowsByCpu(rows, moments) {
  const cpus = moments.cpu.reduce((most, cpu) => Math.max(most, cpu), 0) + 1;
  /** @type {Map<number, number>} */
  const known = new Map();
  const row = new Int32Array(moments.count);
  /** @type {number[]} */
  const source = [];
  /** @type {number[]} */
  const cpu = [];
  for (let i = 0; i < moments.count; i++) {
    const slot = moments.row[i] * cpus + moments.cpu[i];
    let place = known.get(slot);
    if (place === undefined) {
      place = source.push(moments.row[i]) - 1;
      cpu.push(moments.cpu[i]);
      known.set(slot, place);
    }
    row[i] = place;
  }
  const split = { ...moments, row };
  /** @param {Int32Array} column */
  const pick = (column) => Int32Array.from(source, (at) => column[at]);
  const { event, thread, comm, cgroup, node } = rows;
  const picked = { event: pick(event), thread: pick(thread), comm: pick(comm), cgroup: pick(cgroup), node: pick(node) };
  const sums = rowSums(split, source.length, [0, moments.buckets]);
  return { rows: { ...picked, cpu: Int32Array.from(cpu), ...sums }, moments: split };
}

/** Calls `take` with each step of buckets [from, to) that has a bucket, and where its entries begin and end. `stepOf` is the
 *  step of a bucket, and never falls. A step has many buckets, and few of them are asked for.
 *  @param {Moments} moments
 *  @param {TimeRange} range
 *  @param {(bucket: number) => number} stepOf
 *  @param {(step: number, begin: number, end: number) => void} take */
export function eachStep({ first }, [from, to], stepOf, take) {
  for (let bucket = from, end = from; bucket < to; bucket = end) {
    const step = stepOf(bucket);
    end = bucket + 1;
    let beyond = end;
    for (let stride = 1; beyond < to && stepOf(beyond) === step; stride *= 2) {
      end = beyond + 1;
      beyond = Math.min(to, beyond + stride);
    }
    while (end < beyond) {
      const middle = (end + beyond) >> 1;
      if (stepOf(middle) === step) {
        end = middle + 1;
      } else {
        beyond = middle;
      }
    }
    take(step, first[bucket], first[end]);
  }
}

/** Weight over time: for each of `columns` equal parts of buckets [from, to) and each series, the sum of
 *  `weight`. `seriesOf` gives the series of a row, or -1. Column by column, series within.
 *  @param {Moments} moments
 *  @param {Int32Array} seriesOf
 *  @param {number} seriesCount
 *  @param {number} columns
 *  @param {Float64Array} weight
 *  @param {TimeRange} range */
export function seriesOver(moments, seriesOf, seriesCount, columns, weight, [from, to]) {
  const sums = new Float64Array(columns * seriesCount);
  const scale = columns / (to - from);
  const columnOf = (/** @type {number} */ bucket) => Math.min(columns - 1, Math.floor((bucket - from) * scale));
  eachStep(moments, [from, to], columnOf, (column, begin, end) => {
    const at = column * seriesCount;
    for (let i = begin; i < end; i++) {
      const series = seriesOf[moments.row[i]];
      if (series >= 0) {
        sums[at + series] += weight[i];
      }
    }
  });
  return sums;
}
