// Spans of threads and the axis of time on canvases: colours of activities and waits, pieces of a lane, round times.

import { formatMoment } from './format.js';
import { cssColour, waitKind } from './colors.js';
import { axisSteps } from './stripdata.js';
import { ACTIVITIES, wokenAt } from './switches.js';

/** @import { Activity, Paint, TimelineData, TimeRange } from './types.d.ts' */

const PREEMPTED = ACTIVITIES.findIndex(({ id }) => id === 'preempted');
/** Height of the mark of a span that a loss touches. */
const LOSSY_PX = 3;
/** Distance between the times of an axis, at least. */
const TICK_PX = 110;

/** The colour of an activity in the theme of `paint`.
 *  @param {Activity} activity
 *  @param {Paint} paint */
export function activityColour(activity, paint) {
  return paint.gap === '#ffffff' ? activity.light : activity.dark;
}

/** Colours of the classes of waits.
 *  @param {Pick<TimelineData, 'classes'>} timeline
 *  @param {Paint} paint */
export function classColours({ classes }, paint) {
  return classes.map((name) => cssColour(waitKind(name)[paint.gap === '#ffffff' ? 'light' : 'dark']));
}

/** Draws the spans of a thread within `range`, which is as wide as the place.
 *  @param {CanvasRenderingContext2D} context
 *  @param {TimelineData} timeline
 *  @param {number} thread
 *  @param {{ left: number, width: number, top: number, height: number }} place
 *  @param {TimeRange} range
 *  @param {Paint} paint */
export function drawSpans(context, timeline, thread, place, [from, to], paint) {
  const { top, height } = place;
  const scale = place.width / (to - from);
  const colours = classColours(timeline, paint);
  const runnable = activityColour(ACTIVITIES[PREEMPTED], paint);
  let drawnTo = -1;
  for (let i = timeline.first[thread]; i < timeline.first[thread + 1]; i++) {
    const left = place.left + Math.max(0, timeline.startNs[i] - from) * scale;
    const right = place.left + Math.min(to - from, timeline.startNs[i] + timeline.durationNs[i] - from) * scale;
    // Skips a span that ends within the pixel drawn last; it would not be seen.
    if (right <= place.left || right <= drawnTo) {
      continue;
    }
    if (timeline.startNs[i] > to) {
      break;
    }
    const own = timeline.class[i] > 0 ? colours[timeline.class[i] - 1] : undefined;
    context.fillStyle = own ?? activityColour(ACTIVITIES[timeline.activity[i]], paint);
    context.fillRect(left, top, Math.max(1, right - left), height);
    const woken = wokenAt(timeline, i);
    if (woken >= 0) {
      // The thread could run from here on.
      const ready = Math.max(left, place.left + (woken - from) * scale);
      context.fillStyle = runnable;
      context.fillRect(ready, top, Math.max(0, right - ready), height);
    }
    drawnTo = Math.floor(left) + 1;
    if (timeline.lossy[i] > 0) {
      context.fillStyle = paint.mark;
      context.fillRect(left, top + height - LOSSY_PX, Math.max(1, right - left), LOSSY_PX);
    }
  }
}

/** Draws round times with their marks above the line `bottom`.
 *  @param {CanvasRenderingContext2D} context
 *  @param {{ left: number, width: number, bottom: number, middle: number }} place
 *  @param {TimeRange} range
 *  @param {Paint} paint */
export function drawTimes(context, { left, width, bottom, middle }, [from, to], paint) {
  const { step } = axisSteps(to - from, Math.max(1, Math.floor(width / TICK_PX)));
  const scale = width / (to - from);
  context.fillStyle = paint.fadedText;
  context.textBaseline = 'middle';
  context.fillRect(left, bottom, width, 1);
  for (let number = Math.ceil(from / step); number * step <= to && step > 0; number++) {
    const x = left + (number * step - from) * scale;
    context.fillRect(x, bottom - 5, 1, 6);
    const text = formatMoment(number * step, step);
    if (x + 4 + context.measureText(text).width < left + width) {
      context.fillText(text, x + 4, middle);
    }
  }
}
