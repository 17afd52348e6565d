// Services in the selected order, with their shares and costs; and their groups.

import type { Accessor } from 'solid-js';
import { keepSetting, readSettings } from '../lib/api.ts';
import { monthly, PRICES, readPrices, type Prices } from '../lib/cost.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { meanOf, sumPoints } from '../lib/series.ts';
import type { Fleet, Resource, Service } from './fleet.ts';

export type Order = 'cpu' | 'memory' | 'cost' | 'name';

export interface RankedService extends Service {
  /** Projected cost of a month; null without prices or measurements. */
  cost: number | null;
  /** The service's CPU, memory or cost, as selected by `Ranked.what`; 0 if unknown. */
  size: number;
  /** `size` divided by the sum over all services; null if the sum is zero. */
  share: number | null;
}

export interface Group {
  /** Value of the label that services are grouped by; empty for services without this label, or if there is no grouping. */
  name: string;
  services: readonly RankedService[];
  size: number;
  share: number | null;
}

export interface Ranked {
  /** The quantity that `size` and `share` of each service refer to. */
  what: 'CPU' | 'memory' | 'cost';
  services: readonly RankedService[];
  /** Cost of all services. */
  cost: number | null;
}

const byName = new Intl.Collator().compare;

export function rank(fleet: Fleet, order: Order, prices: Prices | null): Ranked {
  const hours = (fleet.range.end - fleet.range.start) / 3.6e6;
  const costs = fleet.services.map(({ cpu, memory }) => (prices ? monthly(cpu, memory, hours, prices) : null));
  const cost = prices ? costs.reduce<number>((all, one) => all + (one ?? 0), 0) : null;
  const of: Resource = order === 'memory' || fleet.cpu.sum === 0 ? 'memory' : 'cpu';
  const isCost = order === 'cost' && cost !== null;
  const whole = isCost ? cost : fleet[of].sum;
  const services = fleet.services.map((service, index): RankedService => {
    const size = isCost ? (costs[index] ?? 0) : (service[of]?.sum ?? 0);
    return { ...service, cost: costs[index] ?? null, size, share: whole > 0 ? size / whole : null };
  });
  // The services arrive sorted by name. Services without a measurement come last, sorted by the other resource.
  const other: Resource = of === 'cpu' ? 'memory' : 'cpu';
  const rest = (service: RankedService): number => service[other]?.sum ?? -1;
  if (order !== 'name') services.sort((a, b) => b.size - a.size || rest(b) - rest(a));
  return { what: isCost ? 'cost' : of === 'cpu' ? 'CPU' : 'memory', services, cost };
}

/** Puts services into groups, and keeps their order. The groups are sorted by `size`, or by name for the order `name`; services without the label come last. */
export function groupsOf(services: readonly RankedService[], order: Order): Group[] {
  const found = new Map<string, RankedService[]>();
  for (const service of services) {
    const its = found.get(service.group);
    if (its) its.push(service);
    else found.set(service.group, [service]);
  }
  const groups = [...found].map(([name, its]): Group => ({
    name,
    services: its,
    size: its.reduce((sum, { size }) => sum + size, 0),
    share: its.reduce<number | null>((sum, { share }) => (share === null ? sum : (sum ?? 0) + share), null),
  }));
  return groups.sort((a, b) => Number(a.name === '') - Number(b.name === '') || (order === 'name' ? 0 : b.size - a.size) || byName(a.name, b.name));
}

/** Returns the mean use of several services together; null if none has measurements. */
export function together(services: readonly Service[], of: Resource): number | null {
  const measures = services.flatMap((service) => service[of] ?? []);
  return measures.length === 0 ? null : meanOf(sumPoints(measures));
}

export interface PricesModel extends Loader<Prices | null> {
  keep: (prices: Prices) => Promise<void>;
}

/** The prices that the server stores for all users of the tenant. They are loaded while `wanted` is true. */
export function createPrices(wanted: Accessor<boolean>): PricesModel {
  const kept = createLoader(() => (wanted() ? true : null), async (_, signal) => readPrices((await readSettings(signal)).get(PRICES)));
  const keep = async (prices: Prices): Promise<void> => {
    await keepSetting(PRICES, JSON.stringify(prices));
    kept.retry();
  };
  return { ...kept, keep };
}
