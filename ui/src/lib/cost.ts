// What services cost: prices of a core and of memory by the hour, and what that makes of what was taken.

/** Of a core-hour and of an hour of a GiB. */
export interface Prices {
  core: number;
  gib: number;
  /** What stands behind an amount: `€`, `USD`. */
  currency: string;
}

/** An amount is told for a month, as bills are. */
export const MONTH_HOURS = 730;

/** The name of the setting that the server keeps. */
export const PRICES = 'alluvium.prices';

const isPrice = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0 && value < 1e9;

/** What was kept, or nothing where it makes no sense. */
export function readPrices(text: string | undefined): Prices | null {
  try {
    const { core, gib, currency } = JSON.parse(text ?? '') as Record<string, unknown>;
    return isPrice(core) && isPrice(gib) && core + gib > 0 ? { core, gib, currency: typeof currency === 'string' ? currency.slice(0, 8) : '' } : null;
  } catch {
    return null;
  }
}

/** What was taken in a range: the sum of points, and the seconds that each stands for. */
export interface Taken {
  sum: number;
  step: number;
}

/** The cost of a month that goes as these hours did; null where nothing was measured. */
export function monthly(cpu: Taken | null, memory: Taken | null, hours: number, { core, gib }: Prices): number | null {
  if (cpu === null && memory === null) return null;
  const taken = (of: Taken | null): number => (of === null ? 0 : (of.sum * of.step) / 3600);
  return ((taken(cpu) * core + (taken(memory) / 2 ** 30) * gib) / Math.max(hours, 1e-9)) * MONTH_HOURS;
}

/** `1,240 €`; what is below ten has its cents. */
export function formatCost(amount: number, { currency }: Prices): string {
  const places = Math.abs(amount) >= 10 || amount === 0 ? 0 : 2;
  const text = amount > 0 && amount < 0.005 ? '<0.01' : amount.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places });
  return `${text} ${currency}`.trim();
}
