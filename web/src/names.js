// Function names: made safe to look at, and made short enough for a frame.

// C0 and C1 controls, the controls that reorder text, and characters without a width: a name must not
// look like another.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The name with invisible characters written in letters, as whit's text does: `\x1b`, `\u{202e}`.
 *  @param {string} name */
export function cleanName(name) {
  return name.replace(INVISIBLE, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  });
}

/** @type {Record<string, string>} */
const CLOSING = { '<': '>', '(': ')' };

/** True where the bracket at `i` is part of the name: operators, Go's `(*Receiver)`.
 *  @param {string} name
 *  @param {number} i */
function belongsToName(name, i) {
  const before = name.slice(Math.max(0, i - 9), i);
  return name[i] === '(' ? /(operator|\.)$/.test(before) : /operator<?$/.test(before);
}

/** The name with each outermost `open…close` group replaced by `filler`.
 *  @param {string} name
 *  @param {string} open
 *  @param {string} filler */
function collapse(name, open, filler) {
  const close = CLOSING[open];
  let short = '';
  let depth = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === open && (depth > 0 || !belongsToName(name, i))) {
      short += depth === 0 ? filler : '';
      depth += 1;
    } else if (c === close && depth > 0 && name[i - 1] !== '-') {
      depth -= 1;
    } else if (depth === 0) {
      short += c;
    }
  }
  // Brackets that do not pair up belong to no group, and a name is more than brackets: it stays as it is.
  const isName = /[^<>()…\s]/.test(short);
  return depth === 0 && isName ? short : name;
}

/** The name itself, without parameters, without template arguments, then without more and more of
 *  its scopes.
 *  @param {string} name */
function shorterForms(name) {
  const plain = collapse(name.replaceAll('(anonymous namespace)', '{anon}'), '(', '');
  const bare = collapse(plain, '<', '<…>');
  const forms = [name, plain, bare];
  for (const scope of bare.matchAll(SCOPE)) {
    forms.push(`…${bare.slice(scope.index + scope[0].length)}`);
  }
  return forms;
}

const SCOPE = /(::|\/)(?=[^:/])/g;
// Fewer characters of a type do not tell it from others.
const MIN_OWNER = 4;

/** A method alone says little: the beginning of its type stands before it, where there is space.
 *  @param {string} form the shortened name
 *  @param {string} longer the name with one scope more
 *  @param {number} max */
function withOwner(form, longer, max) {
  const method = form.slice(1);
  const owner = longer.replace(/^…/, '').slice(0, -method.length);
  const space = max - method.length - 3;
  const isMethod = form.startsWith('…') && !method.match(SCOPE) && owner.endsWith('::');
  return isMethod && space >= MIN_OWNER ? `${owner.slice(0, space)}…::${method}` : form;
}

/** The name of a thread, with its number at the end, in at most `max` characters: the number stays.
 *  @param {string} name
 *  @param {number} max */
export function shortenThread(name, max) {
  if (name.length <= max) {
    return name;
  }
  const number = name.slice(Math.max(0, name.lastIndexOf(' ')));
  return number.length + 2 > max ? name.slice(0, Math.max(0, max)) : `${name.slice(0, max - number.length - 1)}…${number}`;
}

/** `name` in at most `max` characters: parameters go first, then template arguments, then scopes,
 *  then the end.
 *  @param {string} name
 *  @param {number} max */
export function shortenName(name, max) {
  if (name.length <= max) {
    return name;
  }
  if (max < 2) {
    return '';
  }
  const forms = shorterForms(name);
  const fitting = forms.findIndex((form) => form.length <= max);
  if (fitting >= 0) {
    return withOwner(forms[fitting], forms[fitting - 1], max);
  }
  const shortest = forms[forms.length - 1].replace(/^…/, '');
  return `${shortest.slice(0, max - 1)}…`;
}
