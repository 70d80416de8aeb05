// Colours of frames, marks of those that the search finds, and categories that the legend fades out.

import { themePaint, vary } from './colors.js';
import { categoryColour, renderLegend } from './controls.js';
import { functionOf } from './tree.js';

/** @import { Page } from './page.d.ts' */
/** @import { Marks } from './types.d.ts' */

export class Colouring {
  /** @type {Set<number>} Categories that are faded out. */
  muted = new Set();
  /** @type {{ scheme: string, colours: string[] }} Colours by key in one theme and colouring. */
  fills = { scheme: '', colours: [] };

  /** @param {Page} page */
  constructor(page) {
    this.page = page;
  }

  /** Colour of a key in the present theme and colouring.
   *  @param {number} key */
  fill(key) {
    const { model, state: { colour }, theme } = this.page;
    const scheme = `${theme.name} ${colour} ${model.root}`;
    if (this.fills.scheme !== scheme) {
      this.fills = { scheme, colours: [] };
    }
    this.fills.colours[key] ??= vary(
      categoryColour(model.category(key, colour), colour, theme.name),
      model.functionName(functionOf(key)),
    );
    return this.fills.colours[key];
  }

  /** Tells the keys that the search finds; null without a search.
   *  @returns {((key: number) => boolean) | null} */
  match() {
    const { found } = this.page;
    if (found === null || found.error !== '') {
      return null;
    }
    return (key) => found.functions[functionOf(key)] === 1;
  }

  /** Colours of frames, and marks of those that the search finds.
   *  @returns {Marks} */
  marks() {
    const { model, state, theme } = this.page;
    return {
      paint: themePaint(theme.name),
      fill: (key) => this.fill(key),
      match: this.match(),
      muted: (key) => this.muted.has(model.category(key, state.colour)),
    };
  }

  /** Fills a legend whose entries fade their frames out and in.
   *  @param {HTMLElement} container */
  renderLegend(container) {
    const { page, muted } = this;
    renderLegend(container, page.model, {
      colour: page.state.colour,
      theme: page.theme.name,
      muted,
      toggle: (category) => {
        if (!muted.delete(category)) {
          muted.add(category);
        }
        page.render();
      },
    });
  }
}
