// What views know of the page, and what the page knows of views. No part of the page.

import type { Actions } from './actions.js';
import type { Colouring } from './colouring.js';
import type { FrameGraph } from './frames.js';
import type { Model } from './model.js';
import type { Notice, Tooltip } from './popups.js';
import type { StripBar } from './stripbar.js';
import type { Change, Code, Comparison, Found, Intervals, IntervalSteps, Keys, Requests, State, Switches, Theme } from './types.d.ts';

/** Changes the state, the page and its address; `live` while the pointer moves. */
export type Go = (change: Change, options?: { animate?: boolean; live?: boolean }) => void;
/** How views draw: with a motion, and only what follows a moving range. */
export interface Render {
  animate: boolean;
  live: boolean;
}

/** What views know of the page. */
export interface Page {
  readonly model: Model;
  readonly state: State;
  readonly found: Found | null;
  readonly switches: Switches | null;
  readonly compare: Comparison | null;
  readonly code: Code | null;
  readonly requests: Requests | null;
  /** Absent on a page without times. */
  readonly strip: StripBar | null;
  readonly theme: { name: Theme };
  readonly colouring: Colouring;
  readonly actions: Actions;
  readonly notice: Notice;
  /** The tooltip of frames. */
  readonly tooltip: Tooltip<{ graph: FrameGraph; node: number }>;
  go: Go;
  render(): void;
  renderIntervals(): void;
}

/** A view of the page. It is made once, and draws whenever the state changes. */
export interface View {
  show(render: Render): void;
  /** Its keys; they come before those of all views. */
  keys?(): Keys;
  /** Intervals that are computed in steps when the reader pauses, and then shown. */
  intervals?(): { steps: IntervalSteps; show(intervals: Intervals | null): void } | null;
  /** Enter in the search box. */
  pick?(): void;
  /** A reset keeps the chosen function. */
  isOfFunction?: boolean;
  /** Samples and periods are no choice. */
  hasOwnWeights?: boolean;
}

/** A row of the registry of views. */
export interface ViewRow {
  /** Its name in the address; `view-ID` is its section. */
  id: string;
  /** Text of its tab. */
  label: string;
  make(page: Page): View | null;
}
