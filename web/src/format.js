// Numbers, times and sizes as people read them.

const GROUPS = /\B(?=(\d{3})+$)/g;

/** A count in full, in groups of three: 1,234,567.
 *  @param {number} value */
export function formatCount(value) {
  return Math.round(value).toFixed(0).replace(GROUPS, ',');
}

/** @param {number} value
 *  @param {number} step
 *  @param {string[]} units */
function scaled(value, step, units) {
  let unit = 0;
  let scaledValue = value;
  // 999.95 would print as 1000: go on to the next unit from there.
  while (Math.abs(scaledValue) >= step - step / 20000 && unit < units.length - 1) {
    scaledValue /= step;
    unit += 1;
  }
  const digits = unit === 0 ? 0 : Math.abs(scaledValue) >= 100 ? 0 : Math.abs(scaledValue) >= 10 ? 1 : 2;
  return `${scaledValue.toFixed(digits)}${units[unit]}`;
}

/** A count in three digits: 987, 1.23 k, 45.6 M.
 *  @param {number} value */
export function formatShort(value) {
  return scaled(value, 1000, ['', ' k', ' M', ' G', ' T', ' P', ' E']);
}

/** Bytes in binary units.
 *  @param {number} bytes */
export function formatBytes(bytes) {
  return scaled(bytes, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB']);
}

/** A duration given in nanoseconds.
 *  @param {number} ns */
export function formatDuration(ns) {
  if (ns < 60e9) {
    return scaled(ns, 1000, [' ns', ' µs', ' ms', ' s']);
  }
  const seconds = Math.round(ns / 1e9);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours ? `${hours} h ` : ''}${minutes} min ${seconds % 60} s`;
}

/** A moment since the first one, with as many digits as tell it from moments `stepNs` before and after.
 *  @param {number} ns
 *  @param {number} stepNs */
export function formatMoment(ns, stepNs) {
  if (ns === 0) {
    return '0';
  }
  const [unit, unitNs] = /** @type {[string, number]} */ (
    [['s', 1e9], ['ms', 1e6], ['µs', 1e3]].find(([, length]) => Math.abs(ns) >= Number(length)) ?? ['ns', 1]);
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unitNs / Math.max(1, stepNs)) - 1e-9)));
  return ns >= 60e9 && stepNs >= 1e9 ? formatDuration(ns) : `${(ns / unitNs).toFixed(digits)} ${unit}`;
}

/** A share between 0 and 1: 12.3 %, 0.045 %; never 0 where something is there.
 *  @param {number} share */
export function formatPercent(share) {
  const percent = share * 100;
  if (!(percent > 0)) {
    return '0 %';
  }
  if (percent < 0.001) {
    return '<0.001 %';
  }
  // A part is not the whole: 99.999 does not print as 100.
  if (percent < 100 && percent >= 99.995) {
    return '99.99 %';
  }
  return `${percent.toFixed(percent < 0.1 ? 3 : percent >= 100 ? 0 : 2)} %`;
}

/** Half of an interval of a share, in points of percent: ±1.2; nothing where it is none.
 *  @param {number} half */
export function formatHalf(half) {
  const points = half * 100;
  if (!Number.isFinite(points) || !(points > 0)) {
    return '';
  }
  return `±${points < 0.01 ? '<0.01' : points.toFixed(points < 1 ? 2 : 1)}`;
}

/** True for the event of CPU time and waits that the page itself makes (crates/read/whit-page/src/wall.rs).
 *  @param {string} eventName */
export function isWallEvent(eventName) {
  return eventName.startsWith('wall-clock: ');
}

/** True where the event's period is a time in nanoseconds.
 *  @param {string} eventName */
export function isClockEvent(eventName) {
  return /^(cpu|task|wall)-clock\b/.test(eventName);
}

/** A sum of periods of this event.
 *  @param {string} eventName
 *  @param {number} period */
export function formatPeriod(eventName, period) {
  return isClockEvent(eventName) ? formatDuration(period) : formatShort(period);
}

/** Seconds since the epoch, in UTC.
 *  @param {number} seconds */
export function formatDate(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? '' : `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** One word or its plural, with the count.
 *  @param {number} count
 *  @param {string} word */
export function plural(count, word) {
  return `${formatCount(count)} ${word}${count === 1 ? '' : 's'}`;
}
