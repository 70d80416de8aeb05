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
  waits: 'sites',
  without: '',
  hideIdle: false,
  hideKernel: false,
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
  request: '',
  call: 1,
});

/** @param {...string} known
 *  @returns {(value: string) => boolean} */
const oneOf = (...known) => (value) => known.includes(value);

/** Tests of the values that a fragment has.
 *  @type {Readonly<Record<string, (value: string) => boolean>>} */
const CHOICES = {
  weight: oneOf('period', 'samples'),
  // Which views there are is known to the page.
  view: (word) => /^[a-z]+$/.test(word),
  stacks: oneOf('top-down', 'bottom-up'),
  order: oneOf('weight', 'time'),
  root: oneOf('none', ...GROUPINGS.map(({ id }) => id)),
  strip: oneOf('area', 'heat'),
  by: oneOf(...GROUPINGS.map(({ id }) => id)),
  shape: oneOf('flame', 'icicle'),
  colour: oneOf('kind', 'binary'),
  direction: oneOf('callee', 'caller'),
  waits: oneOf('sites', 'longest', 'tree'),
  sort: oneOf('self', 'total', 'name', 'binary'),
};
/** @typedef {Exclude<keyof State, 'range' | 'transforms'>} PlainName */
/** @type {readonly PlainName[]} */
const NUMBERS = ['event', 'pid', 'tid', 'fn', 'call'];
/** @type {readonly PlainName[]} */
const TEXTS = ['comm', 'search', 'filter', 'without', 'lane', 'request'];
/** @type {readonly PlainName[]} */
const FLAGS = ['regex', 'ascending', 'hideIdle', 'hideKernel'];
/** @type {readonly PlainName[]} */
const PATHS = ['zoom', 'callers', 'callees'];
/** In the order of the fragment. */
const PLAIN = [...NUMBERS, .../** @type {PlainName[]} */ (Object.keys(CHOICES)), ...TEXTS, ...FLAGS, ...PATHS];

/** Frames that a path in a fragment has at most. */
const MAX_PATH = 4096;

/** A value as the fragment has it.
 *  @param {State[PlainName]} value */
function textOf(value) {
  if (typeof value === 'boolean') {
    return value ? '1' : '0';
  }
  return typeof value === 'object' && value !== null
    ? value.slice(0, MAX_PATH).map((key) => key.toString(36)).join('.') : String(value);
}

/** The fragment, without `#`; defaults are left out.
 *  @param {State} state
 *  @param {Readonly<State>} defaults */
export function encodeState(state, defaults = DEFAULT_STATE) {
  const parameters = new URLSearchParams();
  for (const name of PLAIN) {
    const value = state[name];
    if (value !== null && textOf(value) !== textOf(defaults[name] ?? '')) {
      parameters.set(name, textOf(value));
    }
  }
  if (state.range !== null) {
    parameters.set('range', state.range.map((ns) => Math.round(ns)).join('-'));
  }
  if (state.transforms.length > 0) {
    parameters.set('t', encodeTransforms(state.transforms));
  }
  return parameters.toString();
}

/** @param {string} text */
function parsePath(text) {
  const keys = text.split('.').slice(0, MAX_PATH).map((key) => Number.parseInt(key, 36));
  const end = keys.findIndex((key) => !(key >= 0));
  return end < 0 ? keys : keys.slice(0, end);
}

/** A range in nanoseconds, as `from-to`.
 *  @returns {TimeRange | null}
 *  @param {string} text */
function parseRange(text) {
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return from !== undefined && Number(from) < Number(to) ? [Number(from), Number(to)] : null;
}

/** Reads a value of the fragment; undefined where it is senseless.
 *  @type {(readonly [readonly string[], (text: string, name: string) => unknown])[]} */
const READERS = [
  [NUMBERS, (text) => (/^-?\d{1,10}$/.test(text) ? Number(text) : undefined)],
  [Object.keys(CHOICES), (text, name) => (CHOICES[name](text) ? text : undefined)],
  [TEXTS, (text) => text],
  [FLAGS, (text) => text === '1'],
  [PATHS, parsePath],
  [['range'], parseRange],
];

/** The part of the state that a parameter of the fragment sets.
 *  @param {string} name
 *  @param {string} text
 *  @returns {Partial<State>} */
function readParameter(name, text) {
  if (name === 't') {
    return { transforms: decodeTransforms(text) };
  }
  const value = READERS.find(([names]) => names.includes(name))?.[1](text, name);
  return value === undefined ? {} : { [name]: value };
}

/** The state of a fragment; missing and senseless parts become defaults.
 *  @param {string} fragment
 *  @returns {State} */
export function decodeState(fragment, defaults = DEFAULT_STATE) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''));
  return [...parameters].reduce((state, [name, text]) => ({ ...state, ...readParameter(name, text) }), { ...defaults });
}
