// A range of time that is chosen by dragging over a picture whose x is time.

import { el } from './dom.js';

/** @import { TimeRange } from './types.d.ts' */

/** A shorter way of the pointer is a click. */
const LEAST_WAY_PX = 4;

export class RangeDrag {
  /** @type {{ from: number, pointer: number, moved: boolean } | null} */
  drag = null;

  /** Drags begin on `surface`; their mark stands in `host`. `on` has nsAt(clientX) and select(range).
   *  @param {HTMLElement} surface
   *  @param {HTMLElement} host
   *  @param {{ nsAt: (clientX: number) => number, select: (range: TimeRange) => void, moved: () => void }} on */
  constructor(surface, host, on) {
    this.on = on;
    this.surface = surface;
    this.host = host;
    this.mark = el('div', { class: 'range-mark', hidden: true });
    host.append(this.mark);
    surface.addEventListener('pointerdown', (event) => {
      // Not on a scroll bar.
      if (event.button === 0 && event.target instanceof HTMLCanvasElement) {
        this.drag = { from: event.clientX, pointer: event.pointerId, moved: false };
      }
    });
    surface.addEventListener('pointermove', (event) => this.#move(event));
    surface.addEventListener('pointerup', (event) => this.#end(event));
    surface.addEventListener('pointercancel', () => this.#clear());
  }

  #clear() {
    this.drag = null;
    this.mark.hidden = true;
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const { drag } = this;
    if (drag === null) {
      return;
    }
    if (!drag.moved && Math.abs(event.clientX - drag.from) >= LEAST_WAY_PX) {
      drag.moved = true;
      // A drag may end beside the picture. The click that follows belongs to the surface, so it chooses nothing.
      this.surface.setPointerCapture(drag.pointer);
    }
    if (drag.moved) {
      this.on.moved();
      const { left, width } = this.host.getBoundingClientRect();
      /** @param {number} x */
      const place = (x) => Math.max(0, Math.min(width, x - left));
      const [begin, end] = [drag.from, event.clientX].map(place).sort((a, b) => a - b);
      this.mark.hidden = false;
      this.mark.style.left = `${begin}px`;
      this.mark.style.width = `${end - begin}px`;
    }
  }

  /** @param {PointerEvent} event */
  #end(event) {
    const { drag } = this;
    this.#clear();
    if (drag?.moved) {
      const [from, to] = [drag.from, event.clientX].map(this.on.nsAt).sort((a, b) => a - b);
      this.on.select([from, to]);
    }
  }
}
