// The changes of the call tree as menu entries, and the line that lists those in force.

import { button, el } from './dom.js';
import { functionOf } from './tree.js';
import { shortenName } from './names.js';

/** @import { Model } from './model.js' */
/** @import { MenuItem, Transform, TransformType } from './types.d.ts' */

/** Keys of the types, as in the menu. */
export const TRANSFORM_KEYS = /** @type {Readonly<Record<string, TransformType>>} */ ({ F: 'focus', S: 'subtree', M: 'merge', D: 'drop', R: 'recursion', C: 'library' });
const MAX_NAME_CHARACTERS = 40;

/** @type {Record<TransformType, (name: string) => string>} */
const SENTENCES = {
  focus: (name) => `focus: ${name}`,
  subtree: (name) => `subtree: ${name}`,
  merge: (name) => `merged: ${name}`,
  drop: (name) => `dropped: ${name}`,
  recursion: (name) => `recursion: ${name}`,
  library: (name) => `library: ${name}`,
};

/** Menu entries for the function of a key; `path` leads to its node in the whole tree, or is null.
 *  @param {Model} model
 *  @param {number} key
 *  @param {number[] | null} path
 *  @param {(transform: Transform) => void} apply
 *  @returns {MenuItem[]} */
export function transformItems(model, key, path, apply) {
  const fn = functionOf(key);
  /** @type {MenuItem[]} */
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

/** @param {Model} model
 *  @param {Transform} transform */
function nameOf(model, { type, arg }) {
  const last = typeof arg === 'number' ? arg : functionOf(arg[arg.length - 1]);
  const name = type === 'library' ? model.profile.dsos[last]?.name : model.functionName(last);
  return name ?? '(not in this recording)';
}

/** Fills the line; `keep(count)` keeps the first ones alone.
 *  @param {HTMLElement} list
 *  @param {Model} model
 *  @param {readonly Transform[]} transforms
 *  @param {(count: number) => void} keep */
export function renderTransforms(list, model, transforms, keep) {
  /** @param {string} text
   *  @param {number} count
   *  @param {string} title */
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
