// Profile types: Pyroscope's five-part id (`process_cpu:cpu:nanoseconds:cpu:nanoseconds`) and its display name.
// In: ids from the server. Out: a display name, a group, the unit of values, and how a chart shows them.

import type { Unit } from './format.ts';

/** `rate`: values add up over time, and a chart shows them per second. `gauge`: each value is a state. */
export type Kind = 'rate' | 'gauge';

export interface ProfileType {
  id: string;
  label: string;
  group: string;
  /** Unit of the values in a flame graph. */
  unit: 'ns' | 'bytes' | 'count';
  kind: Kind;
  /** Unit of the values in a chart, which `chartValue` computes. */
  chartUnit: Unit;
  /** Title of the chart. */
  chartTitle: string;
  /** Likely reason if all values are zero; empty if not known. */
  whenZero: string;
  /** Order of the types: a smaller number is more important. */
  rank: number;
}

interface Known {
  label: string;
  group: string;
  chart: string;
}

export const GROUPS = ['CPU', 'Memory', 'Goroutines and threads', 'Locks and waiting', 'Exceptions', 'Other'];

// Keyed by `name:sampleType`. Other types are named after their id.
const KNOWN: Record<string, Known> = {
  'process_cpu:cpu': { label: 'CPU', group: 'CPU', chart: 'CPU' },
  'process_cpu:samples': { label: 'CPU samples', group: 'CPU', chart: 'CPU samples' },
  'process_cpu:wall': { label: 'Wall clock', group: 'CPU', chart: 'Wall clock' },
  'process_cpu:itimer': { label: 'CPU (itimer)', group: 'CPU', chart: 'CPU' },
  'off_cpu:off_cpu': { label: 'Off CPU', group: 'Locks and waiting', chart: 'Time off CPU' },
  'memory:inuse_space': { label: 'Memory in use', group: 'Memory', chart: 'Memory in use' },
  'memory:inuse_objects': { label: 'Objects in use', group: 'Memory', chart: 'Objects in use' },
  'memory:alloc_space': { label: 'Memory allocated', group: 'Memory', chart: 'Allocation' },
  'memory:alloc_objects': { label: 'Objects allocated', group: 'Memory', chart: 'Allocation' },
  'memory:alloc_in_new_tlab_bytes': { label: 'Allocated in new TLAB', group: 'Memory', chart: 'Allocation in new TLAB' },
  'memory:alloc_in_new_tlab_objects': { label: 'Objects in new TLAB', group: 'Memory', chart: 'Objects in new TLAB' },
  'memory:live': { label: 'Live objects', group: 'Memory', chart: 'Live objects' },
  'goroutine:goroutine': { label: 'Goroutines', group: 'Goroutines and threads', chart: 'Goroutines' },
  'goroutines:goroutine': { label: 'Goroutines', group: 'Goroutines and threads', chart: 'Goroutines' },
  'threadcreate:threadcreate': { label: 'Threads created', group: 'Goroutines and threads', chart: 'Threads created' },
  'mutex:delay': { label: 'Lock wait', group: 'Locks and waiting', chart: 'Time waiting for locks' },
  'mutex:contentions': { label: 'Lock contentions', group: 'Locks and waiting', chart: 'Lock contentions' },
  'mutex:lock_duration': { label: 'Lock wait', group: 'Locks and waiting', chart: 'Time waiting for locks' },
  'mutex:lock_count': { label: 'Lock contentions', group: 'Locks and waiting', chart: 'Lock contentions' },
  'block:delay': { label: 'Blocked time', group: 'Locks and waiting', chart: 'Time blocked' },
  'block:contentions': { label: 'Blocking events', group: 'Locks and waiting', chart: 'Blocking events' },
  'block:lock_duration': { label: 'Blocked time (locks)', group: 'Locks and waiting', chart: 'Time blocked' },
  'block:lock_count': { label: 'Blocking events (locks)', group: 'Locks and waiting', chart: 'Blocking events' },
  'exceptions:exception': { label: 'Exceptions', group: 'Exceptions', chart: 'Exceptions' },
};
const ORDER = Object.keys(KNOWN);

const WHEN_ZERO: Record<string, string> = {
  block: 'A Go program records blocking events only after a call of runtime.SetBlockProfileRate.',
  mutex: 'A Go program records waits for locks only after a call of runtime.SetMutexProfileFraction, and only if goroutines have to wait.',
  process_cpu: 'The process used hardly any CPU time: a CPU profile samples at intervals of CPU time.',
};

/** Returns the profile type for an id. Parts may be missing: the label is made of the existing parts, and a missing unit counts as `count`. */
export function profileType(id: string): ProfileType {
  const [name = id, sampleType = '', sampleUnit = ''] = id.split(':');
  const key = `${name}:${sampleType}`;
  const known = KNOWN[key];
  const unit = /^(nanoseconds|ns)$/.test(sampleUnit) ? 'ns' : /^bytes?$/.test(sampleUnit) ? 'bytes' : 'count';
  const kind: Kind = /^(inuse_|live$|goroutines?$|threadcreate$)/.test(sampleType) ? 'gauge' : 'rate';
  const group = known?.group ?? (/cpu/.test(name) ? 'CPU' : /mem|heap|alloc/.test(name) ? 'Memory' : /mutex|block|lock/.test(name) ? 'Locks and waiting' : 'Other');
  const label = known?.label ?? (sampleType === '' || sampleType === name ? name : `${name} ${sampleType}`).replace(/_/g, ' ');
  const onCpu = group === 'CPU' && unit === 'ns';
  const rates: Record<ProfileType['unit'], Unit> = { ns: onCpu ? 'cores' : 's/s', bytes: 'bytes/s', count: 'count/s' };
  const chartUnit = kind === 'gauge' ? unit : rates[unit];
  const place = ORDER.indexOf(key);
  const rank = GROUPS.indexOf(group) * 1000 + (place < 0 ? 999 : place);
  return { id, label, group, unit, kind, chartUnit, chartTitle: known?.chart ?? label, whenZero: WHEN_ZERO[name] ?? '', rank };
}

/** Converts the sum or average over a step to the value that a chart shows. */
export function chartValue(type: ProfileType, value: number, stepSeconds: number): number {
  if (type.kind === 'gauge') return value;
  const perSecond = value / stepSeconds;
  return type.unit === 'ns' ? perSecond / 1e9 : perSecond;
}

/** Returns the types sorted by importance, CPU first. */
export function sortTypes(ids: Iterable<string>): ProfileType[] {
  return [...new Set(ids)].map(profileType).sort((a, b) => a.rank - b.rank || a.label.localeCompare(b.label));
}

export const isCpu = (id: string): boolean => profileType(id).chartUnit === 'cores';
export const isMemoryInUse = (id: string): boolean => /^[^:]*:inuse_space:/.test(id);
