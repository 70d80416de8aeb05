// The view as a URL fragment, so that a link shows what its sender saw.

import { GROUPINGS } from './grouping.js';
import { decodeTransforms, encodeTransforms } from './transforms.js';

/** @import { State, TimeRange } from './types.d.ts' */

/** @type {Readonly<State>} */
export const DEFAULT_STATE = Object.freeze({
  event: 0,
  pid: null,
  tid: null,
  comm: null,
  weight: 'period',
  view: 'graph',
  stacks: 'top-down',
  order: 'weight',
  root: 'none',
  range: null,
  transforms: Object.freeze([]),
  strip: 'area',
  by: 'process',
  shape: 'flame',
  colour: 'kind',
  direction: 'callee',
  waits: 'longest',
  without: '',
  search: '',
  regex: false,
  zoom: Object.freeze([]),
  fn: null,
  callers: Object.freeze([]),
  callees: Object.freeze([]),
  sort: 'self',
  ascending: false,
  filter: '',
  lane: '',
});

const CHOICES = {
  weight: ['period', 'samples'],
  view: ['compare', 'graph', 'chart', 'tree', 'functions', 'sandwich', 'source', 'switches', 'recording'],
  stacks: ['top-down', 'bottom-up'],
  order: ['weight', 'time'],
  root: ['none', ...GROUPINGS.map(({ id }) => id)],
  strip: ['area', 'heat'],
  by: GROUPINGS.map(({ id }) => id),
  shape: ['flame', 'icicle'],
  colour: ['kind', 'binary'],
  direction: ['callee', 'caller'],
  waits: ['longest', 'tree'],
  sort: ['self', 'total', 'name', 'binary'],
};
const NUMBERS = ['event', 'pid', 'tid', 'fn'];
const TEXTS = ['comm', 'search', 'filter', 'without', 'lane'];
const FLAGS = ['regex', 'ascending'];
const PATHS = ['zoom', 'callers', 'callees'];

/** Frames that a path in a fragment has at most. */
const MAX_PATH = 4096;

/** The fragment, without `#`; defaults are left out.
 *  @param {State} state
 *  @param {Readonly<State>} defaults */
export function encodeState(state, defaults = DEFAULT_STATE) {
  const parameters = new URLSearchParams();
  const put = (names, encode) => names.forEach((name) => {
    const value = state[name];
    if (value !== null && encode(value) !== encode(defaults[name] ?? '')) {
      parameters.set(name, encode(value));
    }
  });
  put(NUMBERS, String);
  put(Object.keys(CHOICES), String);
  put(TEXTS, String);
  put(FLAGS, (flag) => (flag ? '1' : '0'));
  put(PATHS, (path) => path.slice(0, MAX_PATH).map((key) => key.toString(36)).join('.'));
  if (state.range !== null) {
    parameters.set('range', state.range.map((ns) => Math.round(ns)).join('-'));
  }
  if (state.transforms.length > 0) {
    parameters.set('t', encodeTransforms(state.transforms));
  }
  return parameters.toString();
}

function parsePath(text) {
  const keys = text.split('.').slice(0, MAX_PATH).map((key) => Number.parseInt(key, 36));
  const end = keys.findIndex((key) => !(key >= 0));
  return end < 0 ? keys : keys.slice(0, end);
}

/** A range in nanoseconds, as `from-to`.
 *  @returns {TimeRange | null} */
function parseRange(text) {
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return from !== undefined && Number(from) < Number(to) ? [Number(from), Number(to)] : null;
}

/** The state of a fragment; missing and senseless parts become defaults.
 *  @param {string} fragment
 *  @returns {State} */
export function decodeState(fragment, defaults = DEFAULT_STATE) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''));
  const state = { ...defaults };
  for (const [name, value] of parameters) {
    if (NUMBERS.includes(name) && /^-?\d{1,10}$/.test(value)) {
      state[name] = Number(value);
    } else if (Object.hasOwn(CHOICES, name) && CHOICES[name].includes(value)) {
      state[name] = value;
    } else if (TEXTS.includes(name)) {
      state[name] = value;
    } else if (FLAGS.includes(name)) {
      state[name] = value === '1';
    } else if (PATHS.includes(name)) {
      state[name] = parsePath(value);
    } else if (name === 'range') {
      state.range = parseRange(value);
    } else if (name === 't') {
      state.transforms = decodeTransforms(value);
    }
  }
  return state;
}
