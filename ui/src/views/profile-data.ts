// What the Profile view asks the server, and what it makes of the answers: the list of services, the series of the
// chart, the flame graph, and the reason when there is nothing to show.

import { createMemo, type Accessor } from 'solid-js';
import type { Line } from '../components/Chart.tsx';
import { layout, type Flame } from '../flame/layout.ts';
import { mergeStacktraces, profileTypes, selectSeries, services } from '../lib/api.ts';
import { createLoader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { chartValue, isCpu, profileType, sortTypes, type ProfileType } from '../lib/profile-types.ts';
import { state } from '../lib/router.ts';
import { parseMatchers, printSelector, type Matcher } from '../lib/selector.ts';
import { didYouMean } from '../lib/suggest.ts';
import { stepAtLeast, stepFor, type Range } from '../lib/time.ts';

/** More lines than this cannot be told apart; the rest is one line. */
const MAX_LINES = 10;
/** Enough for a wide screen: frames below a fraction of a pixel come as `other`. */
const MAX_NODES = 16_384;

export interface Query {
  type: ProfileType;
  selector: string;
  range: Range;
}

export interface ChartData {
  lines: Line[];
  step: number;
  mean: number;
  max: number;
}

export type Absence =
  | { kind: 'nothing stored' }
  | { kind: 'nothing in range'; nearest: Range | null }
  | { kind: 'service elsewhere'; nearest: Range }
  | { kind: 'no such service'; similar: string[] };

const sameQuery = (a: Query | null, b: Query | null): boolean =>
  a === b || (a !== null && b !== null && a.type.id === b.type.id && a.selector === b.selector && a.range.start === b.range.start && a.range.end === b.range.end);

export function createProfileData(range: Accessor<Range>) {
  const all = createLoader(range, services);
  const service = createMemo(() => state().service);
  const typeId = createMemo(() => state().type);
  const q = createMemo(() => state().q);
  const by = createMemo(() => state().by);

  const matchers = createMemo<{ list: Matcher[]; error: string }>(() => {
    try {
      return { list: parseMatchers(q()), error: '' };
    } catch (error) {
      return { list: [], error: error instanceof Error ? error.message : String(error) };
    }
  });
  const types = createMemo(() => sortTypes(all.data()?.get(service()) ?? []));
  const type = createMemo(() => (typeId() === '' ? null : profileType(typeId())));
  const serviceSelector = createMemo(() => printSelector([{ name: 'service_name', op: '=', value: service() }]));
  const selector = createMemo(() => printSelector([{ name: 'service_name', op: '=', value: service() }, ...matchers().list]));
  const query = createMemo<Query | null>(
    () => {
      const wanted = type();
      return service() === '' || wanted === null ? null : { type: wanted, selector: selector(), range: range() };
    },
    null,
    { equals: sameQuery },
  );
  const chartQuery = createMemo(() => {
    const wanted = query();
    return wanted === null ? null : { ...wanted, by: by() };
  });

  const chart = createLoader(chartQuery, loadChart);
  const flame = createLoader(query, async (wanted, signal): Promise<{ flame: Flame; query: Query }> => {
    const message = await mergeStacktraces(wanted.type.id, wanted.selector, wanted.range, MAX_NODES, signal);
    return { flame: layout(message), query: wanted };
  });

  const missing = createMemo(() => {
    const known = all.data();
    if (!known || all.pending()) return null;
    if (known.size > 0 && (service() === '' || known.has(service()))) return null;
    return { service: service(), type: typeId(), selector: serviceSelector(), names: [...known.keys()], range: range() };
  });
  const absence = createLoader(missing, async (wanted, signal): Promise<Absence> => {
    const stored = await profileTypes(null, signal);
    if (stored.length === 0 && wanted.names.length === 0) return { kind: 'nothing stored' };
    const id = wanted.type || stored.find(isCpu) || stored[0];
    const look = async (text: string): Promise<Range | null> => (id ? nearestRange(id, text, wanted.range, Date.now(), signal).catch(() => null) : null);
    if (wanted.service !== '') {
      const nearest = await look(wanted.selector);
      if (nearest) return { kind: 'service elsewhere', nearest };
    }
    if (wanted.names.length === 0) return { kind: 'nothing in range', nearest: await look('{}') };
    return { kind: 'no such service', similar: didYouMean(wanted.service, wanted.names) };
  });

  const nothingMatches = createMemo(() => {
    const answer = flame.data();
    return answer && !flame.pending() && answer.flame.sum === 0 && !missing() ? answer.query : null;
  });
  const nearest = createLoader(nothingMatches, (wanted, signal) => nearestRange(wanted.type.id, wanted.selector, wanted.range, Date.now(), signal).catch(() => null));

  return { all, service, types, type, matchers, selector, query, chart, flame, missing, absence, nothingMatches, nearest };
}

async function loadChart(query: Query & { by: string }, signal: AbortSignal): Promise<ChartData> {
  const { type, selector, range, by } = query;
  const ask = (step: number) => selectSeries({ type: type.id, selector, range, step, groupBy: by ? [by] : [], average: type.kind === 'gauge' }, signal);
  let step = stepFor(range);
  let series = await ask(step);
  // Profiles that come less often than the step leave holes between all points: ask for a step that fits them.
  const spacing = typicalSpacing(series.map(({ points }) => points));
  if (spacing >= 2 * step) {
    step = stepAtLeast(spacing);
    series = await ask(step);
  }
  const lines = series
    .map(({ labels, points }) => ({
      label: by ? labels[by] || '(none)' : type.label,
      points: points.map(([ms, value]): [number, number] => [ms, chartValue(type, value, step)]),
      sum: points.reduce((sum, [, value]) => sum + value, 0),
    }))
    .filter(({ points }) => points.length > 0)
    .sort((a, b) => b.sum - a.sum);
  const rest = lines.splice(MAX_LINES);
  const totals = new Map<number, number>();
  for (const { points } of [...lines, ...rest]) for (const [ms, value] of points) totals.set(ms, (totals.get(ms) ?? 0) + value);
  const drawn: Line[] = lines.map(({ label, points }, index) => ({ label, points, colour: by ? lineColour(index) : '--accent' }));
  if (rest.length > 0) {
    const other = new Map<number, number>();
    for (const { points } of rest) for (const [ms, value] of points) other.set(ms, (other.get(ms) ?? 0) + value);
    drawn.push({ label: `${rest.length} others`, points: [...other].sort((a, b) => a[0] - b[0]), colour: '--muted' });
  }
  const values = [...totals.values()];
  return { lines: drawn, step, mean: values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : 0, max: Math.max(0, ...values) };
}

/** Seconds between most points. */
export function typicalSpacing(series: readonly (readonly [number, number][])[]): number {
  const gaps: number[] = [];
  for (const points of series) for (let index = 1; index < points.length; index += 1) gaps.push((points[index]![0] - points[index - 1]![0]) / 1000);
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length / 2)] ?? 0;
}

/** Colours by rank, far apart in hue; readable on light and on dark paper. */
export function lineColour(rank: number): string {
  return `oklch(0.64 0.14 ${Math.round((235 + rank * 137.5) % 360)})`;
}
