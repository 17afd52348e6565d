// The model of the Compare view: a baseline and a comparison, each a query with its chart; the difference of both; and the
// changes that are more than noise.

import { createMemo, type Accessor } from 'solid-js';
import { byFactors, byShare, type Measure } from '../flame/diff.ts';
import { formatValue } from '../lib/format.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { chartValue } from '../lib/profile-types.ts';
import { meanOf } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import { createCatalogue } from './catalogue.ts';
import { createChanges } from './changes.ts';
import { createChart, type ChartData } from './chart.ts';
import { createFlame, type FlameSource } from './flame.ts';
import type { RangeModel } from './range.ts';
import { needsWhole, type ShownText } from './recipe.ts';
import { createSelection, sameQuery, type Query, type Selection, type SelectionText } from './selection.ts';
import { createVersions } from './versions.ts';

export type With = 'halves' | 'before' | 'day' | 'week' | 'same' | 'range';

export interface CompareText extends SelectionText, ShownText {
  with: Accessor<With>;
  /** The range of the comparison; null for the whole range or, with `halves`, for its second half. */
  comparison: Accessor<Range | null>;
  baseline: Accessor<Range | null>;
  /** Service and filters of the baseline. If empty or null, the baseline has the service or the filters of the comparison. */
  baseservice: Accessor<string>;
  baseq: Accessor<string | null>;
}

export interface Side {
  selection: Selection;
  /** The compared range, and the window around it that the chart shows. */
  range: Accessor<Range>;
  window: Accessor<Range>;
  chart: Loader<ChartData>;
}

export type CompareModel = ReturnType<typeof createCompare>;

const DAY = 86_400_000;
const EARLIER: Partial<Record<With, number>> = { day: DAY, week: 7 * DAY };

/** Returns for each side its range, and the window that its chart shows. */
export function placeSides(window: Range, how: With, comparison: Range | null, baseline: Range | null): Record<'left' | 'right', { range: Range; window: Range }> {
  const { start, end } = whole(window);
  const middle = Math.round((start + end) / 2);
  const right = comparison ? whole(comparison) : how === 'halves' ? { start: middle, end } : { start, end };
  const earlier = EARLIER[how] ?? 0;
  const before = { start: 2 * right.start - right.end, end: right.start };
  const left = how === 'range' && baseline ? whole(baseline) : how === 'same' ? right : earlier > 0 ? moved(right, earlier) : how === 'halves' && !comparison ? { start, end: middle } : before;
  return { left: { range: left, window: around(moved({ start, end }, earlier), left) }, right: { range: right, window: around({ start, end }, right) } };
}

const whole = ({ start, end }: Range): Range => ({ start: Math.round(start), end: Math.round(end) });
const moved = ({ start, end }: Range, by: number): Range => ({ start: start - by, end: end - by });
/** Extends a window to contain the range. If the range is far away, returns a window of the same length around the range. */
function around(window: Range, range: Range): Range {
  if (range.end > window.start - (window.end - window.start) && range.start < window.end + (window.end - window.start)) return { start: Math.min(window.start, range.start), end: Math.max(window.end, range.end) };
  const length = Math.max(window.end - window.start, 2 * (range.end - range.start));
  const middle = (range.start + range.end) / 2;
  return { start: Math.round(middle - length / 2), end: Math.round(middle + length / 2) };
}

export function createCompare(text: CompareText, time: RangeModel) {
  const places = createMemo(() => placeSides(time.range(), text.with(), text.comparison(), text.baseline()));
  const side = (name: 'left' | 'right', of: SelectionText): Side => {
    const window = createMemo(() => places()[name].window);
    const range = createMemo(() => places()[name].range);
    const selection = createSelection(of, range);
    return { selection, range, window, chart: createChart(createSelection(of, window).query, () => '', () => false) };
  };
  const right = side('right', text);
  const left = side('left', { service: () => text.baseservice() || text.service(), type: text.type, q: () => text.baseq() ?? text.q() });
  const catalogue = createCatalogue({ ...right.selection, range: time.range });
  const queries = createMemo<{ left: Query; right: Query } | null>(
    () => {
      const [one, two] = [left.selection.query(), right.selection.query()];
      return one && two ? { left: one, right: two } : null;
    },
    null,
    { equals: (a, b) => a === b || (a !== null && b !== null && sameQuery(a.left, b.left) && sameQuery(a.right, b.right)) },
  );
  const source = createMemo<FlameSource | null>(() => {
    const asked = queries();
    return asked && { kind: 'diff', ...asked };
  });
  const flame = createFlame(source, text.focus, needsWhole(text));
  const changes = createChanges(queries);
  const versions = createVersions(right.selection, time.range, catalogue.labels.data);

  /** The loaded difference and its two queries. While newer queries are loading, these two are older than `queries`. */
  const difference = createMemo(() => {
    const answer = flame.data();
    return answer?.sides && answer.source.kind === 'diff' ? { flame: answer.flame, sides: answer.sides, gone: answer.gone, left: answer.source.left, right: answer.source.right } : null;
  });
  const share = createMemo((): Measure => byShare(difference()?.sides ?? { left: NOTHING, right: NOTHING }));
  const rate = createMemo((): Measure | null => {
    const found = difference();
    if (!found) return null;
    const factors = { left: factor(found.left, found.sides.left.sum, left.chart), right: factor(found.right, found.sides.right.sum, right.chart) };
    return factors.left === null || factors.right === null ? null : byFactors({ left: factors.left, right: factors.right });
  });
  const amount = (value: number): string => formatValue(value, difference()?.right.type.chartUnit ?? 'count');
  /** The side without profiles. `nearest` is the nearest range with profiles. */
  const empty = createMemo<'left' | 'right' | null>(() => {
    const found = difference();
    if (!found || flame.pending()) return null;
    return found.sides.right.sum === 0 ? 'right' : found.sides.left.sum === 0 ? 'left' : null;
  });
  const nearest = createLoader(
    () => {
      const name = empty();
      return name && (difference()?.[name] ?? null);
    },
    ({ type, selector, range }, signal) => nearestRange(type.id, selector, range, Date.now(), signal),
  );
  return { left, right, catalogue, queries, flame, difference, changes, versions, share, rate, amount, empty, nearest };
}

const NOTHING = { total: new Float64Array(), self: new Float64Array(), sum: 0 };

/**
 * Returns the factor from a value to a value per second. For a gauge such as memory in use, it scales to the mean of the chart.
 * For all other types, it divides by the time that has profiles, as the mean of the chart does. Null while the factor is not known.
 */
export function factor({ type, range }: Query, sum: number, chart: Pick<Loader<ChartData>, 'data' | 'pending'>): number | null {
  const data = chart.data();
  const same = data !== undefined && data.query.type.id === type.id && data.query.range.start <= range.start && data.query.range.end >= range.end;
  const seconds = (range.end - range.start) / 1000;
  if (!same) return type.kind === 'rate' && !chart.pending() ? chartValue(type, 1, seconds) : null;
  const within = (data.lines[0]?.points ?? []).filter(([ms]) => ms > range.start && ms - data.step * 1000 < range.end);
  if (type.kind === 'gauge') return sum === 0 ? 0 : within.length === 0 ? null : meanOf(within) / sum;
  const covered = within.length * data.step;
  return chartValue(type, 1, covered > 0 && covered < seconds - 2 * data.step ? covered : seconds);
}
