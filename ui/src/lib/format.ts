// The text of values, the same everywhere: ns/us/ms/s/min/h, B/KiB/MiB/GiB, K/M/G, shares and times of day.
// In: plain numbers and a unit. Out: short text with three significant digits.

import type { Range } from './time.ts';
import { inZone } from './zone.ts';

export type Unit = 'ns' | 'bytes' | 'count' | 'cores' | 'bytes/s' | 'count/s' | 's/s';

/** The explanations of units, shown in tooltips of values. */
const UNITS: Record<Unit, string> = {
  ns: 'Time: ns, µs, ms, s, min, h (1 s = 1000 ms = 1,000,000 µs)',
  bytes: 'Bytes in powers of two: 1 KiB = 1024 B, 1 MiB = 1024 KiB, 1 GiB = 1024 MiB',
  count: 'Count: 1 K = 1000, 1 M = 1,000,000',
  cores: 'CPU time per second: 1 core is one fully used CPU, 1 mcore is a thousandth of it',
  'bytes/s': 'Bytes per second in powers of two: 1 MiB/s = 1,048,576 bytes per second',
  'count/s': 'Count per second: 1 K/s = 1000 per second',
  's/s': 'Seconds of all threads per second of wall clock time: 1 s/s is one thread all the time',
};

export const explainUnit = (unit: Unit): string => UNITS[unit];

/** Formats a number with three significant digits, without trailing zeros after the point. */
function digits(value: number): string {
  const size = Math.abs(value);
  const places = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const text = value.toFixed(places);
  return places === 0 ? text : text.replace(/\.?0+$/, '');
}

function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  for (const [factor, name] of steps) {
    // 999.5 would show as 1000 of the smaller unit, so it is written in the larger unit.
    if (size >= factor * 0.9995) return `${digits(value / factor)} ${name}`.trimEnd();
  }
  const [factor, name] = steps[steps.length - 1]!;
  return `${digits(value / factor)} ${name}`.trimEnd();
}

const TIME = [[3.6e12, 'h'], [6e10, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']] as const;
const BYTES = [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']] as const;
const COUNT = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'K'], [1, '']] as const;

const PLAIN: Record<Unit, { steps: readonly (readonly [number, string])[]; after: string }> = {
  ns: { steps: TIME, after: '' },
  bytes: { steps: BYTES, after: '' },
  'bytes/s': { steps: BYTES, after: '/s' },
  count: { steps: COUNT, after: '' },
  'count/s': { steps: COUNT, after: '/s' },
  's/s': { steps: [[1, 's'], [1e-3, 'ms']], after: '/s' },
  cores: { steps: [[1, 'cores'], [1e-3, 'mcores']], after: '' },
};

/** Formats a value with its unit: `1.5 GiB`. */
export function formatValue(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return unit === 'count' || unit === 'count/s' ? '0' : `0 ${{ ns: 's', bytes: 'B', cores: 'cores', 'bytes/s': 'B/s', 's/s': 's/s' }[unit]}`;
  if (value === 1 && unit === 'cores') return '1 core';
  // From a tenth of a core on, the unit is cores and not millicores.
  if (unit === 'cores' && value >= 0.1) return `${digits(value)} cores`;
  const { steps, after } = PLAIN[unit];
  return `${scaled(value, steps)}${after}`;
}

/** Returns a formatter for the values of an axis: all use the unit that suits the largest value. */
export function axisFormat(most: number, unit: Unit): (value: number) => string {
  const { steps, after } = PLAIN[unit];
  const [factor, name] = steps.find(([least]) => most >= least * (unit === 'cores' ? 0.1 : 0.9995)) ?? steps[steps.length - 1] ?? [1, ''];
  return (value) => `${Number((value / factor).toPrecision(4))}${name === '' ? '' : ` ${name}`}${after}`;
}

/** Formats a share as a percentage: `12.3%`. A tiny share above zero shows as `<0.01%`. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  if (percent > 0 && percent < 0.01) return '<0.01%';
  return `${percent >= 99.95 ? Math.round(percent) : percent >= 10 ? percent.toFixed(1) : percent.toFixed(2)}%`;
}

const two = (value: number): string => String(value).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Formats a time of day, optionally with seconds, in the selected time zone: `14:05:30`. */
export function formatClock(ms: number, seconds: boolean): string {
  const date = inZone(ms);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${seconds ? `:${two(date.getUTCSeconds())}` : ''}`;
}

/** Formats a day, with the year only if it is not the current year: `21 Nov`. */
export function formatDay(ms: number): string {
  const date = inZone(ms);
  const year = date.getUTCFullYear();
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${year === inZone(Date.now()).getUTCFullYear() ? '' : ` ${year}`}`;
}

/** Formats a day and a time of day: `21 Nov 14:05`. */
export const formatMoment = (ms: number, seconds = false): string => `${formatDay(ms)} ${formatClock(ms, seconds)}`;

/** Formats the two ends of a range, with the day only once if it is the same: `21 Nov 14:05 – 15:05`. */
export function formatRange({ start, end }: Range): string {
  const seconds = end - start < 300_000;
  return `${formatMoment(start, seconds)} – ${formatDay(start) === formatDay(end) ? formatClock(end, seconds) : formatMoment(end, seconds)}`;
}

/** Formats a duration in milliseconds: 90 s is `1.5 min`. */
export function formatSpan(ms: number): string {
  if (ms >= 86_400_000) return `${digits(ms / 86_400_000)} d`;
  return scaled(ms * 1e6, TIME);
}

/** Formats an age in whole units: `40 s`, `12 min`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** Formats a whole number: `1,234,567`. */
export function formatWhole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** Formats a change with its sign: `+1.5 GiB`. A change that rounds to zero has no sign. */
export function formatSigned(value: number, format: (value: number) => string): string {
  const text = format(Math.abs(value));
  return !Number.isFinite(value) || !/[1-9]/.test(text) ? text : `${value < 0 ? '−' : '+'}${text}`;
}

/** Formats both sides of a comparison: `12% → 25%`. */
export const formatPair = (pair: { left: number; right: number }, format: (value: number) => string): string => `${format(pair.left)} → ${format(pair.right)}`;
