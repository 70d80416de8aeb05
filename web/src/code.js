// The code of the hottest functions: the data block (written by crates/read/whit-page/src/code.rs), and rows to
// draw. Knows nothing of the document.

import { cleanName } from './names.js';
import { formatBytes, formatCount, plural } from './format.js';

/** @import { Code, CodeBlock, CodeBounds, CodePlaces, CodeWeight, FunctionCode, FunctionCodeBlock, InstructionRow, LineRow, PlaceEntry, WeightEntry } from './types.d.ts' */

/** @param {WeightEntry} entry
 *  @returns {CodeWeight} */
const decodeWeight = ([event, samples, period, half]) => ({ event, samples, period, half: half === null ? NaN : half / 100 });

/** Weights by place: arrays of [event, samples, period, half of the interval as a share].
 *  @param {PlaceEntry[]} list
 *  @returns {CodePlaces} */
function byPlace(list) {
  /** @type {CodePlaces} */
  const places = new Map();
  for (const [place, ...weight] of list) {
    const weights = places.get(place) ?? [];
    weights.push(decodeWeight(weight));
    places.set(place, weights);
  }
  return places;
}

/** @param {FunctionCodeBlock} entry
 *  @returns {FunctionCode} */
function decodeFunction(entry) {
  return {
    ...entry,
    name: '',
    problem: entry.problem === null ? null : cleanName(entry.problem),
    weights: entry.weights.map(decodeWeight),
    texts: entry.texts.map(cleanName),
    chains: entry.chains.map((chain) => chain.map(([full, short, site]) => [cleanName(full), cleanName(short), cleanName(site)])),
    files: entry.files.map(cleanName),
    lines: entry.lines.map(([file, line, text]) => ({ file, line, text: text === null ? null : cleanName(text) })),
    rowWeights: byPlace(entry.rowWeights),
    lineWeights: byPlace(entry.lineWeights),
  };
}

/** The block of the page.
 *  @param {CodeBlock} block
 *  @returns {Code} */
export function decodeCode(block) {
  return { ...block, functions: block.functions.map(decodeFunction) };
}

/** The weight of a place for an event, or null.
 *  @param {CodePlaces} places
 *  @param {number} place
 *  @param {number} event
 *  @returns {CodeWeight | null} */
export function weightAt(places, place, event) {
  return places.get(place)?.find((weight) => weight.event === event) ?? null;
}

/** The event whose samples are shown: the chosen one, or for the page's own event of CPU time and waits the first
 *  that was recorded.
 *  @param {Pick<FunctionCode, 'weights'>} code
 *  @param {number} event
 *  @param {boolean} isWall */
export function codeEvent({ weights }, event, isWall) {
  return isWall ? weights[0]?.event ?? event : event;
}

/** Share of a weight in the function, by period where there are any.
 *  @param {Pick<CodeWeight, 'samples' | 'period'> | null} weight
 *  @param {Pick<CodeWeight, 'samples' | 'period'> | null} whole */
export function shareOf(weight, whole) {
  if (weight === null || whole === null) {
    return 0;
  }
  return whole.period > 0 ? weight.period / whole.period : weight.samples / Math.max(1, whole.samples);
}

/** Rows of the list of instructions: {row} is an instruction, {text, depth} the begin or end of an inlined function.
 *  @param {Pick<FunctionCode, 'offsets' | 'chainOf' | 'chains' | 'name'>} code */
export function instructionRows({ offsets, chainOf, chains, name }) {
  /** @type {InstructionRow[]} */
  const rows = [];
  /** @type {[string, string, string][]} */
  let before = [];
  for (let row = 0; row < offsets.length; row++) {
    const chain = chains[chainOf[row] ?? 0] ?? [];
    let common = 0;
    while (common < chain.length && common < before.length && chain[common].join() === before[common].join()) {
      common += 1;
    }
    for (let depth = common; depth < chain.length; depth++) {
      const [full, short, site] = chain[depth];
      rows.push({ text: `▸ ${short}, inlined${site === '' ? '' : ` at ${site}`}`, title: full, depth, begins: row });
    }
    if (common === chain.length && before.length > common) {
      const [full, short] = common > 0 ? chain[common - 1] : [name, name];
      rows.push({ text: `◂ ${short}`, title: full, depth: common, begins: row });
    }
    rows.push({ row, depth: chain.length });
    before = chain;
  }
  return rows;
}

/** Rows of the list of lines: {file} is a heading, {line} an index into the lines, {gap} counts lines without code.
 *  @param {Pick<FunctionCode, 'lines' | 'files'>} code */
export function lineRows({ lines, files }) {
  /** @type {LineRow[]} */
  const rows = [];
  lines.forEach((line, index) => {
    const before = lines[index - 1] ?? null;
    if (before === null || before.file !== line.file) {
      const isMissing = lines.every((other) => other.file !== line.file || other.text === null);
      rows.push({ file: files[line.file], isMissing });
    } else if (line.line > before.line + 1) {
      rows.push({ gap: line.line - before.line - 1 });
    }
    rows.push({ line: index });
  });
  return rows;
}

/** The place with the largest weight of an event, or -1.
 *  @param {CodePlaces} places
 *  @param {number} event */
export function hottestPlace(places, event) {
  let [best, most] = [-1, 0];
  for (const [place, weights] of places) {
    const weight = weights.find((candidate) => candidate.event === event);
    const value = weight === undefined ? 0 : weight.period || weight.samples;
    if (value > most) {
      [best, most] = [place, value];
    }
  }
  return best;
}

/** Which of the embedded functions shows a function: itself, or the heaviest one that it is inlined into; -1 for none.
 *  @param {Code} code
 *  @param {number} fn
 *  @param {string} name */
export function codeFor({ functions }, fn, name) {
  const own = functions.findIndex((code) => code.function === fn);
  if (own >= 0) {
    return own;
  }
  // Debug information may have a name without its namespaces.
  /** @param {string} inlined */
  const isIt = (inlined) => inlined === name || name.endsWith(`::${inlined}`) || inlined.endsWith(`::${name}`);
  return functions.findIndex((code) => code.chains.some((chain) => chain.some(([full]) => isIt(full))));
}

/** The function with most of an event in itself, of those whose instructions are at hand if there are any; the first one
 *  where none has any weight, -1 without functions.
 *  @param {Code} code
 *  @param {number} event */
export function hottestCode({ functions }, event) {
  /** @param {FunctionCode} code */
  const weightOf = ({ weights }) => weights.find((weight) => weight.event === event)?.period ?? 0;
  /** @param {FunctionCode} a
   *  @param {FunctionCode} b */
  const isHotter = (a, b) => {
    const [hasCode, before] = [a, b].map(({ problem }) => Number((problem ?? null) === null));
    return hasCode === before ? weightOf(a) > weightOf(b) : hasCode > before && weightOf(a) > 0;
  };
  return functions.reduce((best, code, index) => (best < 0 || isHotter(code, functions[best]) ? index : best), -1);
}

/** Why a function has no code on this page.
 *  @param {CodeBounds} bounds
 *  @param {number | null} fn */
export function noCodeReason({ tooLarge, maxFunctions, minPercent, maxFunctionBytes, maxBytes, leftOut }, fn) {
  const large = tooLarge.find(([of]) => of === fn);
  if (large !== undefined) {
    return `Its code has ${formatBytes(large[1])}, and this page holds functions of ${formatBytes(maxFunctionBytes)} at most: run whit annotate.`;
  }
  const bound = leftOut > 0 ? ` ${plural(leftOut, 'further function')} did not fit ${formatBytes(maxBytes)}.` : '';
  return `This page holds the code of the ${formatCount(maxFunctions)} hottest functions with at least ${minPercent} % of an event in themselves.${bound} whit annotate shows all others.`;
}
