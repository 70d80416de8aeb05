// Colours: by kind of code or by binary, in a light and a dark theme.
//
// Frames of one category vary a little in hue and lightness by function, so that neighbours stand
// apart; the text colours keep a contrast of 4.5 and more on all of them.

/** @import { Colour, Paint, Theme } from './types.d.ts' */

/** Kinds in the order of the legend: label and hue, saturation, lightness for light and dark.
 *  @type {{ id: string, label: string, light: Colour, dark: Colour }[]} */
export const KINDS = [
  { id: 'user', label: 'User', light: [27, 92, 72], dark: [21, 58, 36] },
  { id: 'inlined', label: 'User, inlined', light: [49, 88, 72], dark: [43, 58, 27] },
  { id: 'kernel', label: 'Kernel', light: [211, 72, 77], dark: [212, 46, 39] },
  { id: 'module', label: 'Kernel module', light: [246, 66, 82], dark: [250, 34, 45] },
  { id: 'vdso', label: 'vDSO', light: [184, 46, 70], dark: [186, 46, 28] },
  { id: 'jit', label: 'JIT', light: [130, 42, 71], dark: [138, 36, 29] },
  { id: 'unknown', label: 'Unknown', light: [30, 6, 79], dark: [220, 5, 38] },
  { id: 'folded', label: 'Small frames', light: [30, 4, 88], dark: [220, 4, 28] },
  { id: 'lock', label: 'Wait: lock', light: [4, 78, 70], dark: [2, 58, 42] },
  { id: 'io', label: 'Wait: I/O', light: [172, 44, 66], dark: [174, 46, 26] },
  { id: 'page-fault', label: 'Wait: page fault', light: [325, 58, 78], dark: [325, 40, 40] },
  { id: 'sleep', label: 'Wait: sleep', light: [214, 22, 82], dark: [216, 18, 36] },
  { id: 'poll', label: 'Wait: poll', light: [200, 52, 80], dark: [202, 44, 30] },
  { id: 'queue', label: 'Wait: queue', light: [262, 40, 84], dark: [262, 24, 42] },
  { id: 'run-queue', label: 'Waits for a CPU', light: [62, 66, 62], dark: [60, 54, 24] },
  { id: 'wait', label: 'Wait: other', light: [30, 10, 74], dark: [24, 8, 37] },
  { id: 'group', label: 'Group', light: [36, 14, 84], dark: [220, 9, 31] },
];

/** Hues of the heaviest binaries and how light each may be under light text; the others share a
 *  grey. */
const BINARY_HUES = [
  [27, 33], [211, 35], [130, 29], [276, 40], [49, 27], [184, 28], [340, 38], [96, 28], [232, 42], [310, 37],
];

/** Binaries that have a colour of their own. */
export const MAX_COLOURED_BINARIES = BINARY_HUES.length;

/** @type {Record<Theme, Paint>} */
const THEMES = {
  light: {
    text: '#1d1a16', fadedFill: 'hsl(36 14% 91%)', fadedText: '#6f6a63', match: 'hsl(312 78% 78%)',
    root: 'hsl(36 12% 84%)', mark: 'rgba(60,35,0,.42)', hatch: 'rgba(60,45,30,.26)',
    binarySaturation: 62, binaryLightness: 76, other: [36, 5, 82], gap: '#ffffff',
  },
  dark: {
    text: '#f6f3ee', fadedFill: 'hsl(220 7% 20%)', fadedText: '#9a9da3', match: 'hsl(312 62% 40%)',
    root: 'hsl(220 7% 30%)', mark: 'rgba(255,235,200,.5)', hatch: 'rgba(255,245,230,.2)',
    binarySaturation: 40, binaryLightness: null, other: [220, 4, 35], gap: '#1b1d21',
  },
};

/** The fixed colours of a theme.
 *  @param {Theme} theme */
export function themePaint(theme) {
  return THEMES[theme];
}

/** The colour that marks losses in time.
 *  @param {Theme} theme */
export function lossColour(theme) {
  return theme === 'dark' ? '#ff8f87' : '#a81c1c';
}

/** @param {string} name */
function hashName(name) {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  }
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** @param {Colour} colour */
function hsl([hue, saturation, lightness]) {
  return `hsl(${hue.toFixed(1)} ${saturation.toFixed(1)}% ${lightness.toFixed(1)}%)`;
}

/** The colour of one function within its category's colour.
 *  @param {Colour} base
 *  @param {string} name */
export function vary([hue, saturation, lightness], name) {
  const hash = hashName(name);
  /** @param {number} bits
   *  @param {number} size */
  const spread = (bits, size) => (((hash >>> bits) & 0xff) / 255 - 0.5) * size;
  return hsl([hue + spread(0, 12), saturation + spread(8, 8), lightness + spread(16, 6)]);
}

/** Index into KINDS of a function's key.
 *  @param {string} dsoKind
 *  @param {{ inlined: boolean, kernel: boolean, folded: boolean }} frame */
export function kindIndex(dsoKind, { inlined, kernel, folded }) {
  const kind = folded ? 'folded'
    : dsoKind === 'module' ? 'module'
      : kernel || dsoKind === 'kernel' ? 'kernel'
        : dsoKind === 'elf' ? (inlined ? 'inlined' : 'user') : dsoKind;
  const index = KINDS.findIndex(({ id }) => id === kind);
  return index < 0 ? KINDS.findIndex(({ id }) => id === 'unknown') : index;
}

/** Base colour of a kind.
 *  @param {number} index
 *  @param {Theme} theme
 *  @returns {Colour} */
export function kindColour(index, theme) {
  return KINDS[index][theme];
}

/** Base colour of the binary of this rank by weight.
 *  @param {number} rank
 *  @param {Theme} theme
 *  @returns {Colour} */
export function binaryColour(rank, theme) {
  const paint = THEMES[theme];
  if (rank >= BINARY_HUES.length) {
    return paint.other;
  }
  const [hue, darkLightness] = BINARY_HUES[rank];
  return [hue, paint.binarySaturation, paint.binaryLightness ?? darkLightness];
}

/** Kinds of waits by their classes (crates/read/whit-page/src/wall.rs has the same). */
const CLASS_KINDS = /** @type {Record<string, string>} */ ({
  lock: 'lock', disk: 'io', network: 'io', pipe: 'io', 'page-fault': 'page-fault', sleep: 'sleep', poll: 'poll', 'idle-loop': 'poll', peer: 'poll', queue: 'queue', child: 'queue', join: 'queue',
});

/** The kind of a class of waits.
 *  @param {string} name */
export function waitKind(name) {
  const id = CLASS_KINDS[name] ?? 'wait';
  return KINDS.find((kind) => kind.id === id) ?? KINDS[0];
}

/** A colour of CSS, in one of this page's two forms, as a pixel of a canvas: red in the lowest byte.
 *  @param {string} css */
export function packColour(css) {
  if (css.startsWith('#')) {
    const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(css.slice(at, at + 2), 16));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }
  const [hue, saturation, lightness] = (css.match(/-?[\d.]+/g) ?? []).map(Number);
  const [light, around] = [lightness / 100, (((hue % 360) + 360) % 360) / 30];
  const strength = (saturation / 100) * Math.min(light, 1 - light);
  /** @param {number} offset */
  const channel = (offset) => {
    const place = (offset + around) % 12;
    return Math.round(255 * (light - strength * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return ((255 << 24) | (channel(4) << 16) | (channel(8) << 8) | channel(0)) >>> 0;
}

/** A base colour as CSS.
 *  @param {Colour} base */
export function cssColour(base) {
  return hsl(base);
}
