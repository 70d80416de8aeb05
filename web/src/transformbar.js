// The changes of the call tree as menu entries, and the line that lists those in force.

import { button, el } from './dom.js';
import { functionOf } from './tree.js';
import { shortenName } from './names.js';

/** Keys of the types, as in the menu. */
export const TRANSFORM_KEYS = { F: 'focus', S: 'subtree', M: 'merge', D: 'drop', R: 'recursion', C: 'library' };
const MAX_NAME_CHARACTERS = 40;

const SENTENCES = {
  focus: (name) => `focus: ${name}`,
  subtree: (name) => `subtree: ${name}`,
  merge: (name) => `merged: ${name}`,
  drop: (name) => `dropped: ${name}`,
  recursion: (name) => `recursion: ${name}`,
  library: (name) => `library: ${name}`,
};

/** Menu entries for the function of a key; `path` leads to its node in the whole tree, or is null.
 *  @param {any} model
 *  @param {number} key
 *  @param {number[] | null} path
 *  @param {(transform: any) => void} apply
 *  @returns {[string, () => void, string][]} */
export function transformItems(model, key, path, apply) {
  const fn = functionOf(key);
  /** @type {[string, () => void, string][]} */
  const subtree = path === null ? [] : [['Focus on this subtree', () => apply({ type: 'subtree', arg: path }), 'S']];
  if (model.isGroup(key)) {
    return subtree;
  }
  const dso = model.dsoOfFunction(fn);
  return [
    ['Focus on function', () => apply({ type: 'focus', arg: fn }), 'F'],
    ...subtree,
    ['Merge function into its callers', () => apply({ type: 'merge', arg: fn }), 'M'],
    ['Drop stacks with this function', () => apply({ type: 'drop', arg: fn }), 'D'],
    ['Collapse recursion', () => apply({ type: 'recursion', arg: fn }), 'R'],
    [`Collapse library ${shortenName(model.profile.dsos[dso].name, 30)}`, () => apply({ type: 'library', arg: dso }), 'C'],
  ];
}

function nameOf(model, { type, arg }) {
  const name = type === 'library' ? model.profile.dsos[arg]?.name : model.functionName(functionOf(type === 'subtree' ? arg.at(-1) : arg * 2));
  return name ?? '(not in this recording)';
}

/** Fills the line; `keep(count)` keeps the first ones alone. */
export function renderTransforms(list, model, transforms, keep) {
  const crumb = (text, count, title) => {
    const element = button(text, () => keep(count), { title });
    if (count === transforms.length) {
      element.setAttribute('aria-current', 'step');
    }
    return el('li', {}, element);
  };
  const changes = transforms.map((transform, i) => {
    const name = nameOf(model, transform);
    return crumb(SENTENCES[transform.type](shortenName(name, MAX_NAME_CHARACTERS)), i + 1, SENTENCES[transform.type](name));
  });
  list.replaceChildren(crumb('complete', 0, 'All changes taken back'), ...changes);
}
