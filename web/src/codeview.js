// Source and assembly of a function: two lists beside each other. Only the rows in view are elements.

import { el, setStatus } from './dom.js';
import { RowList } from './rowlist.js';
import { formatCount, formatHalf, formatPercent, plural } from './format.js';
import { hottestPlace, instructionRows, lineRows, shareOf, weightAt } from './code.js';

/** @import { CodeWeight, FunctionCode, InstructionRow, LineRow } from './types.d.ts' */

const CODE_INDENT_PX = 14;
/** Share of the function at which a row has the full colour. */
const FULL_HEAT = 0.3;

export class CodeView {
  /** @type {FunctionCode | null} */
  code = null;
  event = -1;
  /** @type {CodeWeight | null} Its weight. */
  whole = null;
  /** @type {InstructionRow[]} */
  instructionRows = [];
  /** @type {LineRow[]} */
  lineRows = [];
  chosenLine = -1;

  /** @param {{ lines: HTMLElement, instructions: HTMLElement }} containers */
  constructor(containers) {
    /** @param {HTMLElement} container
     *  @param {string} label
     *  @param {(index: number) => void} current
     *  @param {(event: KeyboardEvent, index: number) => void} key */
    const list = (container, label, current, key) => new RowList(container, label, { current, key });
    this.lines = list(
      containers.lines,
      'Source lines',
      (index) => this.#chooseLine(this.lineRows[index].line ?? -1),
      (event) => this.#key(event, null),
    );
    this.instructions = list(
      containers.instructions,
      'Instructions',
      (index) => this.#chooseInstruction(this.instructionRows[index]),
      (event, index) => this.#key(event, this.instructionRows[index]),
    );
  }

  /** Shows a function's code for an event; `whole` is its weight, or null without samples of the event.
   *  @param {FunctionCode} code
   *  @param {number} event
   *  @param {CodeWeight | null} whole */
  show(code, event, whole) {
    const isNew = this.code !== code || this.event !== event;
    [this.code, this.event, this.whole] = [code, event, whole];
    this.instructionRows = instructionRows(code);
    this.lineRows = lineRows(code);
    if (isNew) {
      this.chosenLine = -1;
      [this.lines.current, this.instructions.current] = [-1, -1];
    }
    this.#show();
    if (isNew) {
      this.toHottest();
    }
  }

  /** The drawn function; there is none before the first `show`. */
  get #shown() {
    if (this.code === null) {
      throw new Error('no code is shown');
    }
    return this.code;
  }

  #show() {
    this.lines.show(this.lineRows.length, (index) => this.#drawLine(this.lineRows[index]), (index) => (
      this.chosenLine >= 0 && this.lineRows[index].line === this.chosenLine));
    this.instructions.show(this.instructionRows.length, (index) => this.#drawInstruction(this.instructionRows[index]), (index) => {
      const { row } = this.instructionRows[index];
      return this.chosenLine >= 0 && row !== undefined && this.#shown.lineOf[row] === this.chosenLine + 1;
    });
  }

  /** Goes to the instruction with the largest share. */
  toHottest() {
    if (this.code !== null) {
      this.#goTo(Math.max(0, hottestPlace(this.code.rowWeights, this.event)));
    }
  }

  /** @param {number} row */
  #goTo(row) {
    const index = this.instructionRows.findIndex((candidate) => candidate.row === row);
    if (index >= 0) {
      this.instructions.select(index);
    }
  }

  /** Marks the instructions of a line, and scrolls to the hottest of them.
   *  @param {number} line */
  #chooseLine(line) {
    this.chosenLine = line;
    this.#show();
    const best = line < 0 ? -1 : this.#hottestOf(line);
    if (best >= 0) {
      this.instructions.current = best;
      this.instructions.reveal(best);
    }
    if (line >= 0) {
      const { lines, files, lineWeights } = this.#shown;
      this.#showWeight(`${files[lines[line].file]}:${lines[line].line}`, weightAt(lineWeights, line + 1, this.event));
    }
  }

  /** The place in the list of the hottest instruction of a line, or -1.
   *  @param {number} line */
  #hottestOf(line) {
    const { lineOf, rowWeights } = this.#shown;
    let [best, most] = [-1, -1];
    this.instructionRows.forEach(({ row }, index) => {
      const share = row === undefined || lineOf[row] !== line + 1 ? -1 : shareOf(weightAt(rowWeights, row, this.event), this.whole);
      [best, most] = share > most ? [index, share] : [best, most];
    });
    return best;
  }

  /** @param {InstructionRow} instruction */
  #chooseInstruction({ row, text }) {
    if (row === undefined) {
      setStatus(text);
      this.#show();
      return;
    }
    this.chosenLine = (this.#shown.lineOf[row] ?? 0) - 1;
    this.#show();
    const index = this.lineRows.findIndex(({ line }) => line === this.chosenLine);
    if (this.chosenLine >= 0 && index >= 0) {
      this.lines.current = index;
      this.lines.reveal(index);
    }
    this.#showWeight(`${this.#address(row)} ${this.#shown.texts[row] ?? ''}`, weightAt(this.#shown.rowWeights, row, this.event));
  }

  /** @param {string} what
   *  @param {CodeWeight | null} weight */
  #showWeight(what, weight) {
    const share = weight === null ? 'no samples' : `${formatPercent(shareOf(weight, this.whole))} ${formatHalf(weight.half)}, ${plural(weight.samples, 'sample')}`;
    setStatus(`${what}: ${share}`);
  }

  /** @param {KeyboardEvent} event
   *  @param {InstructionRow | null} current */
  #key(event, current) {
    if (event.key === 'Enter' && current?.row !== undefined && this.#shown.targets[current.row] > 0) {
      event.preventDefault();
      this.#goTo(this.#shown.targets[current.row] - 1);
    } else if (event.key === 'h') {
      event.preventDefault();
      this.toHottest();
    }
  }

  /** @param {number} row */
  #address(row) {
    return (BigInt(`0x${this.#shown.start}`) + BigInt(this.#shown.offsets[row])).toString(16);
  }

  /** Share, half of its interval, and a colour behind both.
   *  @param {CodeWeight | null} weight */
  #weightCells(weight) {
    const share = shareOf(weight, this.whole);
    const cell = el(
      'span',
      { role: 'gridcell', class: 'code-share', title: weight === null ? null : `${plural(weight.samples, 'sample')}: share of the function` },
      weight === null ? '' : formatPercent(share),
      el('span', { class: 'half-width' }, weight === null ? '' : formatHalf(weight.half)),
    );
    cell.style.setProperty('--heat', `${Math.round(Math.min(1, share / FULL_HEAT) * 100)}%`);
    return [cell];
  }

  /** @param {LineRow} row
   *  @returns {HTMLElement[]} */
  #drawLine(row) {
    /** @param {string} words
     *  @param {string} classes */
    const text = (words, classes) => [el('span', { role: 'gridcell', class: `code-wide ${classes}`, title: words }, words)];
    if (row.file !== undefined) {
      return row.isMissing ? text(`${row.file}: not at hand when the page was made`, 'code-file missing') : text(row.file, 'code-file');
    }
    if (row.gap !== undefined) {
      return text(`… ${plural(row.gap, 'line')}`, 'code-gap');
    }
    const { line } = row;
    const { line: number, text: code } = this.#shown.lines[line];
    return [
      ...this.#weightCells(weightAt(this.#shown.lineWeights, line + 1, this.event)),
      el('span', { role: 'gridcell', class: 'code-number' }, String(number)),
      el('span', { role: 'gridcell', class: 'code-text', title: code }, code ?? ''),
    ];
  }

  /** @param {InstructionRow} instruction
   *  @returns {HTMLElement[]} */
  #drawInstruction(instruction) {
    if (instruction.row === undefined) {
      return this.#drawInlined(instruction);
    }
    const { row } = instruction;
    const { margins, marginTexts, rowWeights, texts } = this.#shown;
    const words = texts[row] ?? '(code not at hand)';
    return [
      ...this.#weightCells(weightAt(rowWeights, row, this.event)),
      el('span', { role: 'gridcell', class: 'code-number' }, this.#address(row)),
      el('span', { role: 'gridcell', class: 'code-margin', 'aria-hidden': 'true' }, marginTexts[margins[row]]?.[0] ?? ''),
      el('span', { role: 'gridcell', class: 'code-text', title: words }, words),
    ];
  }

  /** The begin or end of an inlined function.
   *  @param {Exclude<InstructionRow, { row: number }>} inlined */
  #drawInlined({ text, title, depth, begins }) {
    const label = el('span', { role: 'gridcell', class: 'code-inlined', title }, text);
    label.style.paddingLeft = `${4 + depth * CODE_INDENT_PX}px`;
    const { margins, marginTexts } = this.#shown;
    return [
      el('span', { class: 'code-share' }),
      el('span', { class: 'code-number' }, this.#address(begins).replace(/./g, ' ')),
      el('span', { class: 'code-margin', 'aria-hidden': 'true' }, marginTexts[margins[begins]]?.[1] ?? ''),
      label,
    ];
  }
}

/** Facts of a function's code, in words.
 *  @param {FunctionCode} code
 *  @param {{ binary: string, eventName: string, whole: CodeWeight | null, eventTotal: number, isPart: boolean }} of */
export function codeFacts(code, { binary, eventName, whole, eventTotal, isPart }) {
  const share = whole === null ? `no sample of ${eventName} is in its own code`
    : `${formatPercent(eventTotal > 0 ? whole.period / eventTotal : 0)} ${formatHalf(whole.half)} of ${eventName}, ${plural(whole.samples, 'sample')}`;
  return [
    binary,
    share,
    `${formatCount(code.sizeBytes)} bytes at ${code.start}`,
    ...(isPart ? ['of all threads and all of the time, whatever is selected above'] : []),
    ...(code.undrawn > 0 ? [`${plural(code.undrawn, 'jump')} not drawn`] : []),
  ];
}
