// All services, what each takes of the fleet's CPU and memory, and how that went.

import type { Accessor } from 'solid-js';
import { profileTypes, services } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { isCpu, isMemoryInUse, profileType, sortTypes, type ProfileType } from '../lib/profile-types.ts';
import { chartSeries, meanOf, sumOf, sumPoints } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

export interface Measure {
  /** Where its profiles are. */
  type: string;
  /** Over the time in which it was measured. */
  mean: number;
  /** What it took in all, which is what a share is of: who ran for a minute took little, however busy. */
  sum: number;
  /** Seconds between points. */
  step: number;
  points: [number, number][];
}

export type Resource = 'cpu' | 'memory';

export interface Service {
  name: string;
  types: ProfileType[];
  cpu: Measure | null;
  memory: Measure | null;
}

/** All services together: `mean` over the time in which any was measured. */
export type Whole = Pick<Measure, 'mean' | 'sum'>;

export interface Fleet {
  services: Service[];
  cpu: Whole;
  memory: Whole;
  range: Range;
}

/** What there is to say when the range holds nothing. */
export interface Emptiness {
  stored: boolean;
  nearest: Range | null | undefined;
}

/** Charts of services hold few points: they are a hundred pixels wide. */
const POINTS = 60;
/** Types of one resource that are asked for: CPU of several profilers, say. */
const MOST_TYPES = 3;

export function createFleet(range: Accessor<Range>): { fleet: Loader<Fleet>; empty: Loader<Emptiness> } {
  const fleet = createLoader(range, load);
  const empty = createLoader(() => (fleet.data()?.services.length === 0 ? range() : null), whyEmpty);
  return { fleet, empty };
}

async function load(range: Range, signal: AbortSignal): Promise<Fleet> {
  const found = await services(range, signal);
  const types = [...new Set([...found.values()].flat())];
  const ask = async (wanted: (type: string) => boolean): Promise<Map<string, Measure>> => {
    const ids = types.filter(wanted).slice(0, MOST_TYPES);
    const answers = await Promise.all(ids.map((id) => chartSeries(profileType(id), '{}', range, ['service_name'], POINTS, signal)));
    const out = new Map<string, Measure>();
    for (const [name, its] of found) {
      const lines = answers.flatMap((answer) => answer.lines).filter(({ labels }) => labels.service_name === name);
      const points = sumPoints(lines);
      const type = ids.find((id) => its.includes(id));
      if (type !== undefined && points.length > 0) out.set(name, { type, points, mean: meanOf(points), sum: sumOf(points), step: Math.max(...answers.map(({ step }) => step)) });
    }
    return out;
  };
  const [cpu, memory] = await Promise.all([ask(isCpu), ask(isMemoryInUse)]);
  const whole = (measures: Iterable<Measure>): Whole => {
    const points = sumPoints([...measures]);
    return { mean: meanOf(points), sum: sumOf(points) };
  };
  return {
    services: [...found].map(([name, its]) => ({ name, types: sortTypes(its), cpu: cpu.get(name) ?? null, memory: memory.get(name) ?? null })),
    range,
    cpu: whole(cpu.values()),
    memory: whole(memory.values()),
  };
}

async function whyEmpty(range: Range, signal: AbortSignal): Promise<Emptiness> {
  const [first] = await profileTypes(null, signal);
  if (first === undefined) return { stored: false, nearest: null };
  return { stored: true, nearest: await nearestRange(first, '{}', range, Date.now(), signal) };
}
