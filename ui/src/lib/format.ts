// How values look, the same everywhere: ns/us/ms/s/min/h, B/KiB/MiB/GiB, K/M/G, shares and times of day.
// In: plain numbers and a unit. Out: short text with three significant digits.

import type { Range } from './time.ts';
import { inZone } from './zone.ts';

export type Unit = 'ns' | 'bytes' | 'count' | 'cores' | 'bytes/s' | 'count/s' | 's/s';

/** What a unit means, said where one points at a value. */
const UNITS: Record<Unit, string> = {
  ns: 'Time: ns, µs, ms, s, min, h (1 s = 1000 ms = 1,000,000 µs)',
  bytes: 'Bytes in powers of two: 1 KiB = 1024 B, 1 MiB = 1024 KiB, 1 GiB = 1024 MiB',
  count: 'A number of things: 1 K = 1000, 1 M = 1,000,000',
  cores: 'CPU time a second: 1 core is one processor that is busy all the time, 1 mcore a thousandth of it',
  'bytes/s': 'Bytes a second, in powers of two: 1 MiB/s = 1,048,576 bytes in each second',
  'count/s': 'Things a second: 1 K/s = 1000 in each second',
  's/s': 'Seconds that threads spent on it in each second of the clock: 1 s/s is one thread all the time',
};

export const explainUnit = (unit: Unit): string => UNITS[unit];

/** Three significant digits, without trailing zeros after the point. */
function digits(value: number): string {
  const size = Math.abs(value);
  const places = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const text = value.toFixed(places);
  return places === 0 ? text : text.replace(/\.?0+$/, '');
}

function scaled(value: number, steps: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  for (const [factor, name] of steps) {
    // 999.5 shows as 1000 of the smaller step: let it move up.
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

/** A value with its unit, `1.5 GiB`. */
export function formatValue(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return unit === 'count' || unit === 'count/s' ? '0' : `0 ${{ ns: 's', bytes: 'B', cores: 'cores', 'bytes/s': 'B/s', 's/s': 's/s' }[unit]}`;
  if (value === 1 && unit === 'cores') return '1 core';
  // A tenth of a core is one of the few parts that people speak of as such.
  if (unit === 'cores' && value >= 0.1) return `${digits(value)} cores`;
  const { steps, after } = PLAIN[unit];
  return `${scaled(value, steps)}${after}`;
}

/** How the values of one axis are written: all in the unit that suits the largest. */
export function axisFormat(most: number, unit: Unit): (value: number) => string {
  const { steps, after } = PLAIN[unit];
  const [factor, name] = steps.find(([least]) => most >= least * (unit === 'cores' ? 0.1 : 0.9995)) ?? steps[steps.length - 1] ?? [1, ''];
  return (value) => `${Number((value / factor).toPrecision(4))}${name === '' ? '' : ` ${name}`}${after}`;
}

/** A share of one, `12.3%`; what rounds to nothing but is something shows as `<0.01%`. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  if (percent > 0 && percent < 0.01) return '<0.01%';
  return `${percent >= 99.95 ? Math.round(percent) : percent >= 10 ? percent.toFixed(1) : percent.toFixed(2)}%`;
}

const two = (value: number): string => String(value).padStart(2, '0');
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** `14:05:30`, with the seconds only when they matter; in the zone that was chosen. */
export function formatClock(ms: number, seconds: boolean): string {
  const date = inZone(ms);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${seconds ? `:${two(date.getUTCSeconds())}` : ''}`;
}

/** `21 Nov`; the year only when it is not this one. */
export function formatDay(ms: number): string {
  const date = inZone(ms);
  const year = date.getUTCFullYear();
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}${year === inZone(Date.now()).getUTCFullYear() ? '' : ` ${year}`}`;
}

/** `21 Nov 14:05` */
export const formatMoment = (ms: number, seconds = false): string => `${formatDay(ms)} ${formatClock(ms, seconds)}`;

/** Two ends of a range, `21 Nov 14:05 – 15:05`; the day once when it is one. */
export function formatRange({ start, end }: Range): string {
  const seconds = end - start < 300_000;
  return `${formatMoment(start, seconds)} – ${formatDay(start) === formatDay(end) ? formatClock(end, seconds) : formatMoment(end, seconds)}`;
}

/** A length of time in ms, `90 s` as `1.5 min`. */
export function formatSpan(ms: number): string {
  if (ms >= 86_400_000) return `${digits(ms / 86_400_000)} d`;
  return scaled(ms * 1e6, TIME);
}

/** How long something has been going on, in whole units: `40 s`, `12 min`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** `1,234,567` */
export function formatWhole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** A change with its sign: `+1.5 GiB`; what rounds to nothing has none. */
export function formatSigned(value: number, format: (value: number) => string): string {
  const text = format(Math.abs(value));
  return !Number.isFinite(value) || !/[1-9]/.test(text) ? text : `${value < 0 ? '−' : '+'}${text}`;
}

/** Both sides of a comparison: `12% → 25%`. */
export const formatPair = (pair: { left: number; right: number }, format: (value: number) => string): string => `${format(pair.left)} → ${format(pair.right)}`;
