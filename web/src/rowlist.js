// A list of rows of one height. Only the rows in view are elements; keys move the current one.

import { el } from './dom.js';

const LIST_ROW_PX = 20;
const LIST_OVERSCAN = 10;
/** Rows kept above the one that is scrolled to. */
const LIST_CONTEXT_ROWS = 5;

/** Rows that a key leads on; `page` rows are in view. Undefined for other keys.
 *  @param {string} key
 *  @param {number} page */
export function stepByKey(key, page) {
  const rows = Math.max(1, page);
  /** @type {Record<string, number>} */
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: rows, PageUp: -rows, Home: -Infinity, End: Infinity };
  return /** @type {number | undefined} */ (steps[key]);
}

export class RowList {
  /** `on` has current(index) and key(event, index); `head` are the cells of a row above the others, or empty.
   *  @param {HTMLElement} container
   *  @param {string} label
   *  @param {{ current: (index: number) => void, key: (event: KeyboardEvent, index: number) => void }} on
   *  @param {HTMLElement[]} head */
  constructor(container, label, on, head = []) {
    this.on = on;
    this.count = 0;
    this.current = -1;
    this.head = head.length > 0 ? LIST_ROW_PX + 8 : 0;
    this.body = el('div', { class: 'list-body', role: 'rowgroup' });
    const top = head.length > 0 ? el('div', { class: 'list-head', role: 'row' }, ...head) : null;
    this.scroller = el('div', { class: 'list-scroller', tabindex: '0', role: 'grid', 'aria-label': label }, top, this.body);
    container.replaceChildren(this.scroller);
    this.scroller.addEventListener('scroll', () => this.render(), { passive: true });
    this.scroller.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.render()).observe(this.scroller);
  }

  /** Shows `count` rows: `draw(index)` gives the cells of one, `marked(index)` is true for those to stand out.
   *  @param {number} count
   *  @param {(index: number) => HTMLElement[]} draw
   *  @param {(index: number) => boolean} marked */
  show(count, draw, marked = () => false) {
    this.draw = draw;
    this.marked = marked;
    this.count = count;
    this.current = Math.min(this.current, count - 1);
    this.body.style.height = `${count * LIST_ROW_PX}px`;
    this.scroller.setAttribute('aria-rowcount', String(count));
    this.render();
  }

  render() {
    const { draw, marked } = this;
    if (draw === undefined || marked === undefined || this.scroller.clientHeight === 0) {
      return;
    }
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / LIST_ROW_PX) - LIST_OVERSCAN);
    const last = Math.min(this.count, first + Math.ceil(this.scroller.clientHeight / LIST_ROW_PX) + 2 * LIST_OVERSCAN);
    const rows = [];
    for (let index = first; index < last; index++) {
      const classes = ['list-row', index === this.current ? 'current' : '', marked(index) ? 'marked' : ''];
      const row = el('div', {
        role: 'row', class: classes.filter((name) => name !== '').join(' '), 'aria-rowindex': String(index + 1),
        'aria-selected': String(index === this.current), onclick: () => this.select(index),
      }, ...draw(index));
      row.style.top = `${index * LIST_ROW_PX}px`;
      rows.push(row);
    }
    this.body.replaceChildren(...rows);
  }

  /** @param {number} index */
  select(index) {
    this.current = index;
    this.reveal(index);
    this.on.current(index);
  }

  /** Scrolls a row into view.
   *  @param {number} index */
  reveal(index) {
    const top = index * LIST_ROW_PX;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top + LIST_ROW_PX + this.head > scrollTop + clientHeight) {
      this.scroller.scrollTop = Math.max(0, top - LIST_CONTEXT_ROWS * LIST_ROW_PX);
    }
    this.render();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.count === 0) {
      return;
    }
    const step = stepByKey(event.key, Math.floor((this.scroller.clientHeight - this.head) / LIST_ROW_PX) - 1);
    if (step !== undefined) {
      event.preventDefault();
      this.select(Math.max(0, Math.min(this.count - 1, this.current + step)));
    } else {
      this.on.key(event, this.current);
    }
  }
}
