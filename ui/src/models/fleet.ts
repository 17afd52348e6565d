// All services with their use of CPU and memory over time, optionally split by a label.

import { createMemo, type Accessor } from 'solid-js';
import { profileTypes, servicesBy } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { isCpu, isMemoryInUse, profileType, sortTypes, type ProfileType } from '../lib/profile-types.ts';
import { chartSeries, meanOf, sumOf, sumPoints, type SeriesLine } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

export interface Measure {
  /** Id of the profile type. */
  type: string;
  /** Mean over the time with measurements. */
  mean: number;
  /** Sum over the range, the basis of shares. A service that ran for a minute has a small sum, however busy it was. */
  sum: number;
  /** Seconds between points. */
  step: number;
  points: [number, number][];
}

export type Resource = 'cpu' | 'memory';

export interface Service {
  /** Unique key, made of name and group. */
  key: string;
  name: string;
  /** Value of the label that services are grouped by; empty without a label. */
  group: string;
  types: ProfileType[];
  cpu: Measure | null;
  memory: Measure | null;
}

/** Use of all services together. `mean` is over the time in which any service has measurements. */
export type Whole = Pick<Measure, 'mean' | 'sum'>;

export interface Fleet {
  services: Service[];
  cpu: Whole;
  memory: Whole;
  range: Range;
  /** The label that services are grouped by. */
  label: string;
  /** Seconds between points, the longer of CPU and memory. */
  step: number;
}

/** For a range without profiles: whether any profiles are stored, and the nearest range with profiles. */
export interface Emptiness {
  stored: boolean;
  nearest: Range | null | undefined;
}

/** Number of points in the chart of a service, which is about a hundred pixels wide. */
const POINTS = 60;
/** Maximum number of points for all services together, and least number for each. */
const MOST_POINTS = 60_000;
const LEAST_POINTS = 12;
/** Maximum number of profile types of one resource, for example CPU from several profilers. */
const MOST_TYPES = 3;

export function createFleet(range: Accessor<Range>, group: Accessor<string>): { fleet: Loader<Fleet>; empty: Loader<Emptiness> } {
  const wanted = createMemo(() => ({ range: range(), label: group() }));
  const fleet = createLoader(wanted, load);
  const empty = createLoader(() => (fleet.data()?.services.length === 0 ? range() : null), whyEmpty);
  return { fleet, empty };
}

const keyOf = (name: string, group: string): string => JSON.stringify([name, group]);

async function load({ range, label }: { range: Range; label: string }, signal: AbortSignal): Promise<Fleet> {
  const found = await servicesBy(label, range, signal);
  const types = [...new Set(found.flatMap((service) => service.types))];
  const points = Math.max(LEAST_POINTS, Math.min(POINTS, Math.floor(MOST_POINTS / Math.max(1, found.length))));
  const by = label === '' ? ['service_name'] : ['service_name', label];
  const ask = async (wanted: (type: string) => boolean): Promise<Map<string, Measure>> => {
    const ids = types.filter(wanted).slice(0, MOST_TYPES);
    const answers = await Promise.all(ids.map((id) => chartSeries(profileType(id), '{}', range, by, points, signal)));
    const step = Math.max(...answers.map((answer) => answer.step));
    const lines = new Map<string, SeriesLine[]>();
    for (const line of answers.flatMap((answer) => answer.lines)) {
      const key = keyOf(line.labels.service_name ?? '', label === '' ? '' : (line.labels[label] ?? ''));
      lines.set(key, [...(lines.get(key) ?? []), line]);
    }
    const out = new Map<string, Measure>();
    for (const { service, value, types: its } of found) {
      const key = keyOf(service, value);
      const sums = sumPoints(lines.get(key) ?? []);
      const type = ids.find((id) => its.includes(id));
      if (type !== undefined && sums.length > 0) out.set(key, { type, points: sums, mean: meanOf(sums), sum: sumOf(sums), step });
    }
    return out;
  };
  const [cpu, memory] = await Promise.all([ask(isCpu), ask(isMemoryInUse)]);
  const whole = (measures: Iterable<Measure>): Whole => {
    const sums = sumPoints([...measures]);
    return { mean: meanOf(sums), sum: sumOf(sums) };
  };
  // Most services have the same types, so sorted lists are shared.
  const known = new Map<string, ProfileType[]>();
  const sorted = (its: readonly string[]): ProfileType[] => {
    const which = its.join();
    const before = known.get(which) ?? sortTypes(its);
    known.set(which, before);
    return before;
  };
  return {
    services: found.map(({ service: name, value: group, types: its }) => {
      const key = keyOf(name, group);
      return { key, name, group, types: sorted(its), cpu: cpu.get(key) ?? null, memory: memory.get(key) ?? null };
    }),
    range,
    label,
    cpu: whole(cpu.values()),
    memory: whole(memory.values()),
    // All measures of a resource have the same step.
    step: Math.max(0, ...[cpu, memory].map((measures) => measures.values().next().value?.step ?? 0)),
  };
}

async function whyEmpty(range: Range, signal: AbortSignal): Promise<Emptiness> {
  const [first] = await profileTypes(null, signal);
  if (first === undefined) return { stored: false, nearest: null };
  return { stored: true, nearest: await nearestRange(first, '{}', range, Date.now(), signal) };
}
