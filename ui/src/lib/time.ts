// Time ranges as the URL writes them: `now`, `now-1h`, or milliseconds since 1970.
// In: that text and the present. Out: milliseconds, and new text for shifted and widened ranges.

export interface Range {
  /** Milliseconds since 1970, inclusive. */
  start: number;
  /** Milliseconds since 1970, exclusive. */
  end: number;
}

export interface Preset {
  from: string;
  label: string;
}

export const PRESETS: readonly Preset[] = [
  { from: 'now-5m', label: 'Last 5 minutes' },
  { from: 'now-15m', label: 'Last 15 minutes' },
  { from: 'now-30m', label: 'Last 30 minutes' },
  { from: 'now-1h', label: 'Last hour' },
  { from: 'now-3h', label: 'Last 3 hours' },
  { from: 'now-6h', label: 'Last 6 hours' },
  { from: 'now-12h', label: 'Last 12 hours' },
  { from: 'now-1d', label: 'Last 24 hours' },
  { from: 'now-2d', label: 'Last 2 days' },
  { from: 'now-7d', label: 'Last 7 days' },
  { from: 'now-30d', label: 'Last 30 days' },
];

export const DEFAULT_FROM = 'now-1h';
export const DEFAULT_UNTIL = 'now';

const HOUR = 3.6e6;
const UNITS: Record<string, number> = { s: 1e3, m: 6e4, h: HOUR, d: 8.64e7, w: 6.048e8 };

/** Returns the time that a text names, or null if it is invalid. */
export function parseMoment(text: string, now: number): number | null {
  if (text === 'now') return now;
  const relative = /^now-(\d{1,9})([smhdw])$/.exec(text);
  if (relative) return now - Number(relative[1]) * UNITS[relative[2]!]!;
  if (/^\d{9,16}$/.test(text)) {
    const value = Number(text);
    // Up to ten digits are seconds, as in Pyroscope's links; more digits are milliseconds.
    return text.length <= 10 ? value * 1000 : value;
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : date;
}

/** Returns both ends of a range. An invalid range becomes the last hour. */
export function resolveRange(from: string, until: string, now: number): Range {
  const start = parseMoment(from, now);
  const end = parseMoment(until, now);
  if (start === null || end === null || end - start < 1000) return { start: now - HOUR, end: now };
  return { start, end };
}

/** Returns the text of an absolute range for the URL. */
export const absolute = ({ start, end }: Range): { from: string; until: string } => ({ from: String(Math.round(start)), until: String(Math.round(end)) });

export const isRelative = (text: string): boolean => text.startsWith('now');

/** Returns the range moved by half its length, never past the present. */
export function shiftRange(range: Range, direction: -1 | 1, now: number): { from: string; until: string } {
  const length = range.end - range.start;
  let end = range.end + (direction * length) / 2;
  if (direction > 0 && end >= now) end = Math.max(now, range.end);
  return { from: String(Math.round(end - length)), until: String(Math.round(end)) };
}

/** Returns a range of twice the length around the same middle, not past the present. */
export function widenRange(range: Range, now: number): { from: string; until: string } {
  const length = range.end - range.start;
  const end = Math.min(range.end + length / 2, Math.max(now, range.end));
  return { from: String(Math.round(end - 2 * length)), until: String(Math.round(end)) };
}

const STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Returns the seconds between points: a round number that results in at most `points` points. */
export function stepFor(range: Range, points = 180): number {
  const wanted = (range.end - range.start) / 1000 / points;
  return STEPS.find((step) => step >= wanted) ?? STEPS[STEPS.length - 1]!;
}

/** Returns the smallest round step of at least `seconds`. */
export function stepAtLeast(seconds: number): number {
  return STEPS.find((step) => step >= seconds) ?? STEPS[STEPS.length - 1]!;
}
