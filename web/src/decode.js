// The page's data block (written by crates/read/whit-page/src/data.rs) as typed arrays.

import { cleanName } from './names.js';

/** @import { Headline, PageBlock, Recording, TimelessProfile } from './types.d.ts' */

/** Layout that this page reads. */
const LAYOUT = 2;

export const FRAME_INLINED = 1;
export const FRAME_KERNEL = 2;
export const FRAME_FOLDED = 4;

/** @param {string} text */
export function base64Bytes(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

/** Numbers of a column of LEB128 bytes in base64, into an array of `Type`.
 *  @template {Float64Array | Int32Array | Uint32Array | Uint8Array} N
 *  @param {string} text
 *  @param {new (count: number) => N} Type
 *  @returns {N} */
export function plainColumn(text, Type) {
  const bytes = base64Bytes(text);
  let count = 0;
  for (let i = 0; i < bytes.length; i++) {
    count += bytes[i] < 0x80 ? 1 : 0;
  }
  const values = new Type(count);
  for (let i = 0, at = 0; i < count; i++) {
    let value = 0;
    let factor = 1;
    // Not with shifts: counts reach beyond 32 bits.
    while (bytes[at] >= 0x80) {
      value += (bytes[at++] & 0x7f) * factor;
      factor *= 128;
    }
    values[i] = value + bytes[at++] * factor;
  }
  return values;
}

/** Numbers of a column of zigzag differences.
 *  @param {string} text */
export function deltaColumn(text) {
  const zigzag = plainColumn(text, Float64Array);
  const values = new Int32Array(zigzag.length);
  let value = 0;
  for (let i = 0; i < zigzag.length; i++) {
    value += zigzag[i] % 2 === 0 ? zigzag[i] / 2 : -(zigzag[i] + 1) / 2;
    values[i] = value;
  }
  return values;
}

/** @param {PageBlock['frames']} frames */
function decodeFrames(frames) {
  const file = plainColumn(frames.file, Int32Array);
  return {
    function: deltaColumn(frames.function),
    file: file.map((f) => f - 1),
    line: plainColumn(frames.line, Uint32Array),
    flags: plainColumn(frames.flags, Uint8Array),
  };
}

/** @param {PageBlock['nodes']} nodes */
function decodeNodes(nodes) {
  const parent = plainColumn(nodes.up, Int32Array);
  for (let i = 0; i < parent.length; i++) {
    parent[i] = parent[i] === 0 ? -1 : i - parent[i];
  }
  return { parent, frame: deltaColumn(nodes.frame) };
}

/** @param {PageBlock['rows']} rows */
function decodeRows(rows) {
  return {
    event: deltaColumn(rows.event),
    thread: deltaColumn(rows.thread),
    comm: deltaColumn(rows.comm),
    // One more than the cgroup, 0 for none.
    cgroup: rows.cgroup === '' ? new Int32Array(deltaColumn(rows.comm).length) : deltaColumn(rows.cgroup),
    // -1 where the samples have no frame at all.
    node: deltaColumn(rows.node).map((node) => node - 1),
    samples: plainColumn(rows.samples, Float64Array),
    period: plainColumn(rows.period, Float64Array),
  };
}

/** The recording's description of itself, each text of it cleaned.
 *  @param {Recording} recording
 *  @returns {Recording} */
function decodeRecording(recording) {
  /** @param {unknown} value */
  const clean = (value) => (typeof value === 'string' ? cleanName(value) : value);
  const entries = Object.entries(recording).map(([name, value]) => [name, clean(value)]);
  return { ...recording, ...Object.fromEntries(entries), cmdline: recording.cmdline.map(cleanName) };
}

/** @param {Headline} headline
 *  @returns {Headline} */
function decodeHeadline(headline) {
  return {
    ...headline,
    functions: headline.functions.map(({ name, share }) => ({ name: cleanName(name), share })),
    waits: headline.waits.map((wait) => ({ ...wait, comm: cleanName(wait.comm), functions: wait.functions.map(cleanName) })),
  };
}

/** The profile out of the parsed JSON block: the one place where texts of the recording enter the page.
 *  @param {PageBlock} page
 *  @returns {TimelessProfile} */
export function decodeProfile(page) {
  if (page.layout !== LAYOUT) {
    throw new Error(`the page's data have layout ${page.layout}, its script reads ${LAYOUT}`);
  }
  return {
    ...page,
    title: cleanName(page.title),
    recording: decodeRecording(page.recording),
    warnings: page.warnings.map(cleanName),
    comms: page.comms.map(cleanName),
    cgroups: page.cgroups.map(cleanName),
    events: page.events.map((event) => ({ ...event, name: cleanName(event.name) })),
    threads: page.threads.map(([pid, tid, comm]) => ({ pid, tid, comm })),
    dsos: page.dsos.map(([path, name, buildId, kind]) => (
      { path: cleanName(path), name: cleanName(name), buildId, kind })),
    files: page.files.map(cleanName),
    functions: {
      names: page.functions.names.map(cleanName),
      dso: plainColumn(page.functions.dso, Int32Array),
      known: plainColumn(page.functions.known, Uint8Array),
    },
    frames: decodeFrames(page.frames),
    nodes: decodeNodes(page.nodes),
    rows: decodeRows(page.rows),
    headline: page.headline ? decodeHeadline(page.headline) : null,
  };
}
