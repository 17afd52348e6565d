// The values of a query over time: one line, or one line for each value of a label.

import { createMemo, type Accessor } from 'solid-js';
import { createLoader, type Loader } from '../lib/loader.ts';
import { chartSeries, lineColour, meanOf, sumOf, sumPoints, type Line } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import type { Query } from './selection.ts';

/** Maximum number of lines that a reader can tell apart; the others are summed into one. */
const MAX_LINES = 10;
/** Desired maximum number of points over the width of the chart. */
const POINTS = 180;

export interface ChartData {
  query: Query;
  /** The time range of the lines and of the horizontal axis. */
  range: Range;
  /** The label that splits the lines, empty for none. */
  by: string;
  lines: Line[];
  /** Seconds between points. */
  step: number;
  mean: number;
  max: number;
}

/** Loads the chart of a query. If `young` is true, nothing is stored before the first value, and the chart begins with the first value. */
export function createChart(query: Accessor<Query | null>, by: Accessor<string>, young: Accessor<boolean>): Loader<ChartData> {
  const wanted = createMemo(() => {
    const asked = query();
    return asked === null ? null : { query: asked, by: by(), young: young() };
  });
  return createLoader(wanted, load);
}

async function load({ query, by, young }: { query: Query; by: string; young: boolean }, signal: AbortSignal): Promise<ChartData> {
  const { type, selector, range } = query;
  const { lines: found, step } = await chartSeries(type, selector, range, by ? [by] : [], POINTS, signal);
  const lines = found
    .map(({ labels, points }) => ({ label: by ? labels[by] || '(none)' : type.label, value: labels[by] ?? '', points, sum: sumOf(points) }))
    .sort((a, b) => b.sum - a.sum);
  const all = sumPoints(lines);
  const rest = lines.splice(MAX_LINES);
  const drawn: Line[] = lines.map(({ label, value, points }, index) => ({ label, value, points, colour: by ? lineColour(index) : '--accent' }));
  if (rest.length > 0) drawn.push({ label: `${rest.length} others`, points: sumPoints(rest), colour: '--muted' });
  const [first, last] = [all[0], all.at(-1)];
  const full = young && first && last && first !== last ? { start: first[0], end: last[0] } : range;
  return { query, range: full, by, lines: drawn, step, mean: meanOf(all), max: all.reduce((max, [, value]) => Math.max(max, value), 0) };
}
