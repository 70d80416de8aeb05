// Search: which functions match, and how much of the samples has one of them on its stack.

import { functionOf } from './tree.js';

/** A test of names from the typed text: a substring (case matters if a capital was typed) or a
 * regular expression. `null` for no query; `error` where the expression is none. */
export function compileQuery(text, isRegex) {
  if (text === '') {
    return null;
  }
  const caseMatters = text !== text.toLowerCase();
  if (isRegex) {
    try {
      const regex = new RegExp(text, caseMatters ? 'u' : 'iu');
      return { test: (name) => regex.test(name), error: '' };
    } catch (error) {
      return { test: () => false, error: error.message };
    }
  }
  return {
    test: caseMatters ? (name) => name.includes(text) : (name) => name.toLowerCase().includes(text),
    error: '',
  };
}

/** A regular expression that matches this text alone. */
export function exactly(text) {
  return `^${text.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&')}$`;
}

/** 1 for each function whose name passes the query. */
export function matchFunctions(names, query) {
  return Uint8Array.from(names, (name) => (query.test(name) ? 1 : 0));
}

/** Weight of all stacks that have a matching function: each stack counts once. */
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
