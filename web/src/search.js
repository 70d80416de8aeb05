// Search: which functions match, and how much of the samples has one of them on its stack.

import { functionOf } from './tree.js';

/** @import { Tree } from './types.d.ts' */

/** A test of names from the typed text: a substring (case matters if a capital was typed) or a
 * regular expression. `null` for no query; `error` where the expression is none.
 *  @param {string} text
 *  @param {boolean} isRegex */
export function compileQuery(text, isRegex) {
  if (text === '') {
    return null;
  }
  const caseMatters = text !== text.toLowerCase();
  if (isRegex) {
    try {
      const regex = new RegExp(text, caseMatters ? 'u' : 'iu');
      return { test: (/** @type {string} */ name) => regex.test(name), error: '' };
    } catch (error) {
      return { test: () => false, error: error instanceof Error ? error.message : String(error) };
    }
  }
  return {
    test: (/** @type {string} */ name) => (caseMatters ? name : name.toLowerCase()).includes(text),
    error: '',
  };
}

/** A regular expression that matches this text alone.
 *  @param {string} text */
export function exactly(text) {
  return `^${text.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&')}$`;
}

/** 1 for each function whose name passes the query.
 *  @param {string[]} names
 *  @param {{ test: (name: string) => boolean }} query */
export function matchFunctions(names, query) {
  return Uint8Array.from(names, (name) => (query.test(name) ? 1 : 0));
}

/** Weight of all stacks that have a matching function: each stack counts once.
 *  @param {Tree} tree
 *  @param {Float64Array} total
 *  @param {Uint8Array} matches */
export function matchedWeight(tree, total, matches) {
  const within = new Uint8Array(tree.count);
  let sum = 0;
  for (let node = 1; node < tree.count; node++) {
    const match = matches[functionOf(tree.key[node])];
    const above = within[tree.parent[node]];
    within[node] = match | above;
    sum += match && !above ? total[node] : 0;
  }
  return sum;
}
