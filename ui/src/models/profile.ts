// The model of the Profile view: a selection, its chart, its flame graph with values scaled to match the chart, and the
// reason if no data is shown.

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
  /** Id of the span whose stacks are shown; empty for all stacks. */
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
  /** The query of the shown flame graph, which may be older than the current query. */
  const drawn = createMemo((): Query | null => {
    const from = flame.data()?.source;
    return from && 'query' in from ? from.query : null;
  }, null, { equals: sameQuery });
  /** The chart of the query in `drawn`. While a new chart is loading, this is the previous chart of the same selection. */
  const beside = (): ChartData | undefined => {
    const data = chart.data();
    const asked = drawn();
    if (!data || !asked) return undefined;
    const same = sameQuery(data.query, asked) || (chart.pending() && data.query.type.id === asked.type.id && data.query.selector === asked.selector);
    return same ? data : undefined;
  };

  /**
   * For a gauge such as memory in use, the server returns the sum over all profiles of the range, which has no meaning. The values
   * are scaled to the mean of the chart, so that flame graph and chart agree. Without the chart, only shares are known.
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
  /** The error of the chart, if only shares can be shown because of it. */
  const onlyShares = createMemo(() => (drawn() !== null && scale() === null && !chart.pending() ? chart.error() : undefined));

  // An empty flame graph has either no profiles, or only profiles with zeros. The chart distinguishes the two cases.
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
