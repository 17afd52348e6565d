// What the Profile view asks the server, and what it makes of the answers: the list of services, the series of the
// chart, the flame graph, and the reason when there is nothing to show.

import { createEffect, createMemo, createSignal, on, type Accessor } from 'solid-js';
import type { Line } from '../components/Chart.tsx';
import { findPath, foldedShare, layout, type Flame } from '../flame/layout.ts';
import { mergeStacktraces, profileTypes, services } from '../lib/api.ts';
import { createLoader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { isCpu, profileType, sortTypes, type ProfileType } from '../lib/profile-types.ts';
import { formatValue } from '../lib/format.ts';
import { go, state } from '../lib/router.ts';
import { chartSeries, meanOf, sumPoints } from '../lib/series.ts';
import { parseMatchers, printMatchers, printSelector, type Matcher } from '../lib/selector.ts';
import { didYouMean } from '../lib/suggest.ts';
import type { Range } from '../lib/time.ts';

/** More lines than this cannot be told apart; the rest is one line. */
const MAX_LINES = 10;
/** Enough for a wide screen: frames below a fraction of a pixel come as `other`. */
const MAX_NODES = 16_384;
/** A zoomed frame of which more than this was folded away is asked for in more detail, up to so many nodes. */
const FOLDED_SHARE = 0.02;
const MOST_NODES = 262_144;
/** Points over the width of the chart. */
const POINTS = 180;

export interface Query {
  type: ProfileType;
  selector: string;
  range: Range;
}

export interface ChartData {
  query: Query;
  lines: Line[];
  step: number;
  mean: number;
  max: number;
}

export type Absence =
  | { kind: 'nothing stored' }
  | { kind: 'nothing in range'; nearest: Range | null | undefined }
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
  const [maxNodes, setMaxNodes] = createSignal(MAX_NODES);
  createEffect(on([service, typeId, q], () => setMaxNodes(MAX_NODES), { defer: true }));
  const flameQuery = createMemo(() => {
    const wanted = query();
    return wanted === null ? null : { query: wanted, nodes: maxNodes() };
  });
  const flame = createLoader(flameQuery, async (wanted, signal): Promise<{ flame: Flame; query: Query; nodes: number }> => {
    const { type: profile, selector: labels, range: when } = wanted.query;
    const message = await mergeStacktraces(profile.id, labels, when, wanted.nodes, signal);
    return { flame: layout(message), ...wanted };
  });
  const focus = createMemo(() => state().focus);
  createEffect(on([focus, flame.data], ([path, answer]) => {
    if (path === '' || !answer || answer.nodes !== maxNodes() || answer.nodes >= MOST_NODES) return;
    const node = findPath(answer.flame, path);
    if (node > 0 && foldedShare(answer.flame, node) > FOLDED_SHARE) setMaxNodes(answer.nodes * 4);
  }));

  interface Missing {
    service: string;
    type: string;
    selector: string;
    names: string[];
    range: Range;
  }
  const missing = createMemo<Missing | null>((before) => {
    const known = all.data();
    // While the same question is asked again, what was missing stays missing.
    if (!known || all.pending()) return before && before.service === service() ? before : null;
    if (known.size > 0 && (service() === '' || known.has(service()))) return null;
    return { service: service(), type: typeId(), selector: serviceSelector(), names: [...known.keys()], range: range() };
  }, null);
  const absence = createLoader(missing, async (wanted, signal): Promise<Absence> => {
    const stored = await profileTypes(null, signal);
    if (stored.length === 0 && wanted.names.length === 0) return { kind: 'nothing stored' };
    const id = wanted.type || stored.find(isCpu) || stored[0];
    const look = async (text: string): Promise<Range | null | undefined> => (id ? nearestRange(id, text, wanted.range, Date.now(), signal) : null);
    if (wanted.service !== '') {
      const nearest = await look(wanted.selector);
      if (nearest) return { kind: 'service elsewhere', nearest };
    }
    if (wanted.names.length === 0) return { kind: 'nothing in range', nearest: await look('{}') };
    return { kind: 'no such service', similar: didYouMean(wanted.service, wanted.names) };
  });

  /**
   * Values as they are shown. What is a state (memory in use) comes from the server summed over all profiles of the
   * range, which says nothing: it is scaled to the chart's mean, so that picture and chart say the same.
   */
  const amount = createMemo<(value: number) => string>(() => {
    const answer = flame.data();
    if (!answer) return () => '';
    const { unit, kind } = answer.query.type;
    if (kind === 'rate' || chart.error()) return (value) => formatValue(value, unit);
    const drawn = chart.data();
    if (!drawn || !sameQuery({ ...drawn.query }, answer.query) || answer.flame.sum === 0) return () => '…';
    const scale = drawn.mean / answer.flame.sum;
    return (value) => formatValue(value * scale, unit);
  });

  // A picture of nothing is either of no profiles at all, or of profiles that hold only zeros: the chart tells which.
  const blank = createMemo<{ query: Query; zero: boolean } | null>((before) => {
    const answer = flame.data();
    if (flame.pending() || (answer?.flame.sum === 0 && chart.pending())) return before;
    if (!answer || answer.flame.sum !== 0 || missing()) return null;
    const drawn = chart.data();
    return { query: answer.query, zero: !chart.error() && drawn !== undefined && sameQuery({ ...drawn.query }, answer.query) && drawn.lines.length > 0 };
  }, null);
  const nothingMatches = createMemo<Query | null>(() => (blank()?.zero ? null : (blank()?.query ?? null)));
  const onlyZeros = (): boolean => blank()?.zero ?? false;
  const nearest = createLoader(nothingMatches, (wanted, signal) => nearestRange(wanted.type.id, wanted.selector, wanted.range, Date.now(), signal));

  /** Narrows the view to one value of a label. */
  const only = (name: string, value: string): void =>
    go({ by: '', q: printMatchers([...matchers().list.filter((matcher) => matcher.name !== name), { name, op: '=', value }]) });

  return { only, all, service, types, type, matchers, selector, query, chart, flame, amount, missing, absence, nothingMatches, onlyZeros, nearest };
}

async function loadChart(query: Query & { by: string }, signal: AbortSignal): Promise<ChartData> {
  const { type, selector, range, by } = query;
  const { lines: found, step } = await chartSeries(type, selector, range, by ? [by] : [], POINTS, signal);
  const lines = found
    .map(({ labels, points }) => ({ label: by ? labels[by] || '(none)' : type.label, value: labels[by] ?? '', points, sum: points.reduce((sum, [, value]) => sum + value, 0) }))
    .sort((a, b) => b.sum - a.sum);
  const all = sumPoints(lines);
  const rest = lines.splice(MAX_LINES);
  const drawn: Line[] = lines.map(({ label, value, points }, index) => ({ label, value, points, colour: by ? lineColour(index) : '--accent' }));
  if (rest.length > 0) drawn.push({ label: `${rest.length} others`, points: sumPoints(rest), colour: '--muted' });
  return { query, lines: drawn, step, mean: meanOf(all), max: all.reduce((max, [, value]) => Math.max(max, value), 0) };
}

/** Colours by rank, far apart in hue; readable on light and on dark paper. */
export function lineColour(rank: number): string {
  return `oklch(0.64 0.14 ${Math.round((235 + rank * 137.5) % 360)})`;
}
