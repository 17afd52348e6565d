// What the Profile view shows: a selection, its chart and its flame graph, in the same numbers; and why there is nothing.

import { createMemo, type Accessor } from 'solid-js';
import { formatValue } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { createCatalogue } from './catalogue.ts';
import { createChart, type ChartData } from './chart.ts';
import { createFlame, type FlameSource } from './flame.ts';
import type { RangeModel } from './range.ts';
import { needsWhole, type ShownText } from './recipe.ts';
import { createSelection, sameQuery, type Query, type SelectionText } from './selection.ts';

export interface ProfileText extends SelectionText, ShownText {
  /** Label that splits the chart. */
  by: Accessor<string>;
  /** The span whose stacks are shown; empty for all. */
  span: Accessor<string>;
}

export type ProfileModel = ReturnType<typeof createProfile>;

export function createProfile(text: ProfileText, time: RangeModel) {
  const selection = createSelection(text, time.range);
  const { query } = selection;
  const catalogue = createCatalogue(selection);
  const chart = createChart(query, text.by, time.young);
  const source = createMemo<FlameSource | null>(() => {
    const wanted = query();
    return wanted && { kind: 'merged', query: wanted, ...(text.span() !== '' ? { spans: [text.span()] } : {}) };
  });
  const flame = createFlame(source, text.focus, needsWhole(text));
  /** The question that the flame graph answers, which may be the one before the last. */
  const drawn = createMemo((): Query | null => {
    const from = flame.data()?.source;
    return from && 'query' in from ? from.query : null;
  }, null, { equals: sameQuery });
  /** The chart of the same question; while a new one is on its way, the one before that is still shown. */
  const beside = (): ChartData | undefined => {
    const data = chart.data();
    const asked = drawn();
    if (!data || !asked) return undefined;
    const same = sameQuery(data.query, asked) || (chart.pending() && data.query.type.id === asked.type.id && data.query.selector === asked.selector);
    return same ? data : undefined;
  };

  /**
   * What is a state (memory in use) comes from the server summed over all profiles of the range, which says nothing: it is
   * scaled to the chart's mean, so that picture and chart say the same. Without the chart only shares are known.
   */
  const scale = createMemo((): number | null => {
    const sum = flame.data()?.flame.sum ?? 0;
    if (drawn()?.type.kind === 'rate') return 1;
    const data = beside();
    return data && sum !== 0 ? data.mean / sum : null;
  });
  const amount = createMemo(() => {
    const factor = scale();
    const unit = drawn()?.type.unit ?? 'count';
    return (value: number): string => (factor === null ? (chart.pending() ? '…' : '–') : formatValue(value * factor, unit));
  });
  /** Why values are shown as shares only: the chart, which they need, could not be read. */
  const onlyShares = createMemo(() => (drawn() !== null && scale() === null && !chart.pending() ? chart.error() : undefined));

  // A picture of nothing is either of no profiles at all, or of profiles that hold only zeros: the chart tells which.
  const blank = createMemo<{ query: Query; zero: boolean } | null>((before) => {
    const answer = flame.data();
    const asked = drawn();
    if (flame.pending() || (answer?.flame.sum === 0 && chart.pending())) return before;
    if (!answer || !asked || answer.flame.sum !== 0 || catalogue.missing()) return null;
    return { query: asked, zero: (beside()?.lines.length ?? 0) > 0 };
  }, null);
  const nothingMatches = createMemo<Query | null>(() => (blank()?.zero ? null : (blank()?.query ?? null)));
  const nearest = createLoader(nothingMatches, (wanted, signal) => nearestRange(wanted.type.id, wanted.selector, wanted.range, Date.now(), signal));

  return { ...selection, catalogue, chart, flame, drawn, amount, onlyShares, nothingMatches, onlyZeros: () => blank()?.zero ?? false, nearest };
}
