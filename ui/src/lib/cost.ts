// The cost of services: the hourly prices of a core and of memory, and the cost of the measured use.

/** The prices of a core-hour and of a GiB-hour. */
export interface Prices {
  core: number;
  gib: number;
  /** Text after an amount: `€`, `USD`. */
  currency: string;
}

/** Hours of a month, the period of all costs. */
export const MONTH_HOURS = 730;

/** Name of the setting on the server. */
export const PRICES = 'alluvium.prices';

const isPrice = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0 && value < 1e9;

/** Reads stored prices; null if they are missing or invalid. */
export function readPrices(text: string | undefined): Prices | null {
  try {
    const { core, gib, currency } = JSON.parse(text ?? '') as Record<string, unknown>;
    return isPrice(core) && isPrice(gib) && core + gib > 0 ? { core, gib, currency: typeof currency === 'string' ? currency.slice(0, 8) : '' } : null;
  } catch {
    return null;
  }
}

/** The use in a range: the sum of the points, and the seconds that each point stands for. */
export interface Taken {
  sum: number;
  step: number;
}

/** Returns the cost of a month with the average use of the measured range. `hours` is the length of this range. Null without measurements. */
export function monthly(cpu: Taken | null, memory: Taken | null, hours: number, { core, gib }: Prices): number | null {
  if (cpu === null && memory === null) return null;
  const taken = (of: Taken | null): number => (of === null ? 0 : (of.sum * of.step) / 3600);
  return ((taken(cpu) * core + (taken(memory) / 2 ** 30) * gib) / Math.max(hours, 1e-9)) * MONTH_HOURS;
}

/** Formats a cost as `1,240 €`. An amount below ten has cents. */
export function formatCost(amount: number, { currency }: Prices): string {
  const places = Math.abs(amount) >= 10 || amount === 0 ? 0 : 2;
  const text = amount > 0 && amount < 0.005 ? '<0.01' : amount.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places });
  return `${text} ${currency}`.trim();
}
