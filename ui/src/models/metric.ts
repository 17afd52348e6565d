// A Prometheus metric over the same time as a profile's chart, and its highest point.

import { createMemo, type Accessor } from 'solid-js';
import { createLoader, type Loader } from '../lib/loader.ts';
import { hasPrometheus, lineName, metricLines } from '../lib/prometheus.ts';
import { lineColour, type Line } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

/** Maximum number of lines that a reader can tell apart. */
const MAX_LINES = 10;
/** Minimum length of the range that a click on a point opens; a shorter range might contain no profile. */
const SHORTEST_MS = 60_000;

export interface MetricData {
  /** The lines with the largest values. */
  lines: Line[];
  /** Number of lines that are not shown. */
  others: number;
  range: Range;
  /** Seconds between points. */
  step: number;
  peak: { time: number; value: number } | null;
}

export interface MetricModel {
  /** True if the server is configured with a Prometheus. */
  available: Loader<boolean>;
  data: Loader<MetricData>;
}

/** Loads the lines of a query. An empty query loads nothing. */
export function createMetric(query: Accessor<string>, range: Accessor<Range>): MetricModel {
  const available = createLoader(() => true, hasPrometheus);
  const wanted = createMemo(() => (query() === '' || !available.data() ? null : { query: query(), range: range() }));
  return {
    available,
    data: createLoader(wanted, async (asked, signal): Promise<MetricData> => {
      const { lines: found, step } = await metricLines(asked.query, asked.range, signal);
      const most = (points: readonly (readonly [number, number])[]): number => points.reduce((max, [, value]) => Math.max(max, value), Number.NEGATIVE_INFINITY);
      const sorted = found.map(({ labels, points }) => ({ label: lineName(labels), points, most: most(points) })).sort((a, b) => b.most - a.most);
      const lines = sorted.slice(0, MAX_LINES).map(({ label, points }, index): Line => ({ label, points, colour: sorted.length === 1 ? '--accent' : lineColour(index) }));
      return { lines, others: sorted.length - lines.length, range: asked.range, step, peak: peakOf(lines) };
    }),
  };
}

/** Returns the highest point of all lines. If several points have this value, returns the earliest. */
export function peakOf(lines: readonly Pick<Line, 'points'>[]): MetricData['peak'] {
  let peak: MetricData['peak'] = null;
  for (const { points } of lines) for (const [time, value] of points) if (peak === null || value > peak.value || (value === peak.value && time < peak.time)) peak = { time, value };
  return peak;
}

/** Returns a range around a point that is long enough to contain profiles. */
export function around(time: number, step: number): Range {
  const half = Math.max(SHORTEST_MS, 4000 * step) / 2;
  return { start: time - half, end: time + half };
}
