// How values look, the same everywhere: ns/us/ms/s/min/h, B/KiB/MiB/GiB, K/M/G, shares and times of day.
// In: plain numbers and a unit. Out: short text with three significant digits.

export type Unit = 'ns' | 'bytes' | 'count' | 'cores' | 'bytes/s' | 'count/s' | 's/s';

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

/** A value with its unit, `1.5 GiB`. */
export function formatValue(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return unit === 'count' || unit === 'count/s' ? '0' : `0 ${{ ns: 's', bytes: 'B', cores: 'cores', 'bytes/s': 'B/s', 's/s': 's/s' }[unit]}`;
  switch (unit) {
    case 'ns':
      return scaled(value, TIME);
    case 'bytes':
      return scaled(value, BYTES);
    case 'bytes/s':
      return `${scaled(value, BYTES)}/s`;
    case 'count':
      return scaled(value, COUNT);
    case 'count/s':
      return `${scaled(value, COUNT)}/s`;
    case 's/s':
      return value >= 1 ? `${digits(value)} s/s` : `${digits(value * 1000)} ms/s`;
    case 'cores':
      return value >= 0.1 ? `${digits(value)} ${value === 1 ? 'core' : 'cores'}` : `${digits(value * 1000)} mcores`;
  }
}

/** A share of one, `12.3%`; what rounds to nothing but is something shows as `<0.01%`. */
export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  if (percent > 0 && percent < 0.01) return '<0.01%';
  return `${percent >= 99.95 ? Math.round(percent) : percent >= 10 ? percent.toFixed(1) : percent.toFixed(2)}%`;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** `14:05:30`, with the seconds only when they matter. */
export function formatClock(ms: number, seconds: boolean): string {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ''}`;
}

/** `21 Nov 14:05`; the year only when it is not this one. */
export function formatMoment(ms: number, seconds = false): string {
  const date = new Date(ms);
  const month = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'][date.getMonth()]!;
  const year = date.getFullYear() === new Date().getFullYear() ? '' : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${month}${year} ${formatClock(ms, seconds)}`;
}

/** A length of time in ms, `90 s` as `1.5 min`. */
export function formatSpan(ms: number): string {
  if (ms >= 86_400_000) return `${digits(ms / 86_400_000)} d`;
  return scaled(ms * 1e6, TIME);
}

/** `1,234,567` */
export function formatWhole(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}
