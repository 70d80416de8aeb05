// Source and assembly of a function: two lists beside each other. Only the rows in view are elements.

import { el } from './dom.js';
import { RowList } from './rowlist.js';
import { formatCount, formatHalf, formatPercent, plural } from './format.js';
import { hottestPlace, instructionRows, lineRows, shareOf, weightAt } from './code.js';

const CODE_INDENT_PX = 14;
/** Share of the function at which a row has the full colour. */
const FULL_HEAT = 0.3;

export class CodeView {
  /** @type {any} The function that is shown: an entry of the page's block. */
  code = null;
  event = -1;
  /** @type {any} Its weight. */
  whole = null;
  /** @type {any[]} */
  instructionRows = [];
  /** @type {any[]} */
  lineRows = [];
  chosenLine = -1;

  /** `containers` are {lines, instructions, facts}; `on` has status(text). */
  constructor(containers, on) {
    this.facts = containers.facts;
    this.on = on;
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

  /** Shows a function's code for an event; `whole` is its weight, or null without samples of the event. */
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

  #show() {
    this.lines.show(this.lineRows.length, (index) => this.#drawLine(this.lineRows[index]), (index) => (
      this.chosenLine >= 0 && this.lineRows[index].line === this.chosenLine));
    this.instructions.show(this.instructionRows.length, (index) => this.#drawInstruction(this.instructionRows[index]), (index) => {
      const { row } = this.instructionRows[index];
      return this.chosenLine >= 0 && row !== undefined && this.code.lineOf[row] === this.chosenLine + 1;
    });
  }

  /** Goes to the instruction with the largest share. */
  toHottest() {
    const place = hottestPlace(this.code.rowWeights, this.event);
    this.#goTo(Math.max(0, place));
  }

  #goTo(row) {
    const index = this.instructionRows.findIndex((candidate) => candidate.row === row);
    if (index >= 0) {
      this.instructions.select(index);
    }
  }

  /** Marks the instructions of a line, and goes to the hottest of them. */
  #chooseLine(line) {
    this.chosenLine = line;
    const rows = this.instructionRows.filter(({ row }) => row !== undefined && this.code.lineOf[row] === line + 1);
    const share = ({ row }) => shareOf(weightAt(this.code.rowWeights, row, this.event), this.whole);
    const best = rows.reduce((most, row) => (most === null || share(row) > share(most) ? row : most), null);
    this.#show();
    if (line >= 0 && best !== null) {
      this.instructions.current = this.instructionRows.indexOf(best);
      this.instructions.reveal(this.instructions.current);
    }
    if (line >= 0) {
      const { lines, files, lineWeights } = this.code;
      this.#tell(`${files[lines[line].file]}:${lines[line].line}`, weightAt(lineWeights, line + 1, this.event));
    }
  }

  #chooseInstruction({ row, text }) {
    if (row === undefined) {
      this.on.status(text);
      this.#show();
      return;
    }
    this.chosenLine = (this.code.lineOf[row] ?? 0) - 1;
    this.#show();
    const index = this.lineRows.findIndex(({ line }) => line === this.chosenLine);
    if (this.chosenLine >= 0 && index >= 0) {
      this.lines.current = index;
      this.lines.reveal(index);
    }
    this.#tell(`${this.#address(row)} ${this.code.texts[row] ?? ''}`, weightAt(this.code.rowWeights, row, this.event));
  }

  #tell(what, weight) {
    const share = weight === null ? 'no samples' : `${formatPercent(shareOf(weight, this.whole))} ${formatHalf(weight.half)}, ${plural(weight.samples, 'sample')}`;
    this.on.status(`${what}: ${share}`);
  }

  #key(event, current) {
    if (event.key === 'Enter' && current?.row !== undefined && this.code.targets[current.row] > 0) {
      event.preventDefault();
      this.#goTo(this.code.targets[current.row] - 1);
    } else if (event.key === 'h') {
      event.preventDefault();
      this.toHottest();
    }
  }

  #address(row) {
    return (BigInt(`0x${this.code.start}`) + BigInt(this.code.offsets[row])).toString(16);
  }

  /** Share, half of its interval, and a colour behind both. */
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

  #drawLine({ file, isMissing, gap, line }) {
    const text = (words, classes) => [el('span', { role: 'gridcell', class: `code-wide ${classes}`, title: words }, words)];
    if (file !== undefined) {
      return text(isMissing ? `${file}: not at hand when the page was made` : file, isMissing ? 'code-file missing' : 'code-file');
    }
    if (gap !== undefined) {
      return text(`… ${plural(gap, 'line')}`, 'code-gap');
    }
    const { line: number, text: code } = this.code.lines[line];
    return [
      ...this.#weightCells(weightAt(this.code.lineWeights, line + 1, this.event)),
      el('span', { role: 'gridcell', class: 'code-number' }, String(number)),
      el('span', { role: 'gridcell', class: 'code-text', title: code }, code ?? ''),
    ];
  }

  #drawInstruction({ row, text, title, depth, begins }) {
    if (row === undefined) {
      const label = el('span', { role: 'gridcell', class: 'code-inlined', title }, text);
      label.style.paddingLeft = `${4 + depth * CODE_INDENT_PX}px`;
      const above = this.code.marginTexts[this.code.margins[begins]]?.[1] ?? '';
      return [
        el('span', { class: 'code-share' }),
        el('span', { class: 'code-number' }, this.#address(begins).replace(/./g, ' ')),
        el('span', { class: 'code-margin', 'aria-hidden': 'true' }, above),
        label,
      ];
    }
    const margin = this.code.marginTexts[this.code.margins[row]]?.[0] ?? '';
    const words = this.code.texts[row] ?? '(code not at hand)';
    return [
      ...this.#weightCells(weightAt(this.code.rowWeights, row, this.event)),
      el('span', { role: 'gridcell', class: 'code-number' }, this.#address(row)),
      el('span', { role: 'gridcell', class: 'code-margin', 'aria-hidden': 'true' }, margin),
      el('span', { role: 'gridcell', class: 'code-text', title: words }, words),
    ];
  }
}

/** Facts of a function's code, in words. */
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
