// Charts from series. Counters are divided by time. Gauges are states of each process: they are averaged over time within a
// process, and then summed over processes.

import { selectSeries, type Labels } from './api.ts';
import { chartValue, type ProfileType } from './profile-types.ts';
import { stepAtLeast, stepFor, type Range } from './time.ts';

/** Labels that usually distinguish processes. A missing label counts as empty. */
const INSTANCE = ['instance', 'pod', 'container', 'hostname', 'host'];

/** A line of a chart. */
export interface Line {
  label: string;
  /** Value of the label that splits the chart; undefined for the sum of the other values. */
  value?: string;
  /** A colour, or the name of a variable of the style sheet. */
  colour: string;
  /** Milliseconds and the value in the chart's unit, by time. */
  points: readonly (readonly [number, number])[];
}

export const cssColour = ({ colour }: Line): string => (colour.startsWith('--') ? `var(${colour})` : colour);

export interface SeriesLine {
  labels: Labels;
  /** Milliseconds and the value in the chart's unit, by time. */
  points: [number, number][];
}

/** Returns lines grouped by labels, and the seconds between their points. */
export async function chartSeries(type: ProfileType, selector: string, range: Range, by: readonly string[], points: number, signal?: AbortSignal): Promise<{ lines: SeriesLine[]; step: number }> {
  const gauge = type.kind === 'gauge';
  const groupBy = gauge ? [...by, ...INSTANCE.filter((name) => !by.includes(name))] : [...by];
  const ask = (seconds: number) => selectSeries({ type: type.id, selector, range: wholeSteps(range, seconds), step: seconds, groupBy, average: gauge }, signal);
  // If a process reports every 15 s, a step of 15 s may contain no value of this process, and the sum would dip. So gauges have longer steps.
  let step = Math.max(stepFor(range, points), gauge ? (range.end - range.start >= 1_800_000 ? 60 : 30) : 0);
  let series = await ask(step);
  // Profiles that arrive less often than the step leave gaps between all points, so request a longer step.
  const spacing = typicalSpacing(series.map(({ points: row }) => row));
  if (spacing >= 2 * step) {
    step = stepAtLeast(spacing);
    series = await ask(step);
  }
  const groups = new Map<string, { labels: Labels; sums: Map<number, number> }>();
  for (const { labels, points: row } of series) {
    const wanted: Labels = Object.fromEntries(by.map((name) => [name, labels[name] ?? '']));
    const key = JSON.stringify(wanted);
    let group = groups.get(key);
    if (!group) {
      group = { labels: wanted, sums: new Map() };
      groups.set(key, group);
    }
    for (const [ms, value] of row) group.sums.set(ms, (group.sums.get(ms) ?? 0) + chartValue(type, value, step));
  }
  const lines = [...groups.values()].map(({ labels, sums }) => ({ labels, points: [...sums].sort((a, b) => a[0] - b[0]) }));
  return { lines: lines.filter((line) => line.points.length > 0), step };
}

/** Rounds a range to whole steps, because a partial step would show as a dip at the edge. */
export function wholeSteps(range: Range, step: number): Range {
  const ms = step * 1000;
  const start = Math.floor(range.start / ms) * ms;
  const end = Math.floor(range.end / ms) * ms;
  return { start, end: Math.max(end, start + ms) };
}

/** Returns the median of the seconds between points. */
export function typicalSpacing(series: readonly (readonly [number, number][])[]): number {
  const gaps: number[] = [];
  for (const points of series) for (let index = 1; index < points.length; index += 1) gaps.push((points[index]![0] - points[index - 1]![0]) / 1000);
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length / 2)] ?? 0;
}

/** Sums lines, time by time. */
export function sumPoints(lines: readonly { points: readonly (readonly [number, number])[] }[]): [number, number][] {
  const sums = new Map<number, number>();
  for (const { points } of lines) for (const [ms, value] of points) sums.set(ms, (sums.get(ms) ?? 0) + value);
  return [...sums].sort((a, b) => a[0] - b[0]);
}

export const sumOf = (points: readonly (readonly [number, number])[]): number => points.reduce((sum, [, value]) => sum + value, 0);
export const meanOf = (points: readonly (readonly [number, number])[]): number => (points.length > 0 ? sumOf(points) / points.length : 0);

/** Returns a row of times, and a row of values for each line. If two successive times are more than 1.5 steps apart, a gap is inserted. */
export function alignLines(lines: readonly { points: readonly (readonly [number, number])[] }[], step: number): (number | null)[][] {
  const times = new Set<number>();
  for (const { points } of lines) for (const [ms] of points) times.add(ms / 1000);
  const sorted = [...times].sort((a, b) => a - b);
  const grid: number[] = [];
  for (const time of sorted) {
    const last = grid[grid.length - 1];
    if (last !== undefined && time - last > step * 1.5) grid.push(last + step);
    grid.push(time);
  }
  const at = new Map(grid.map((time, index) => [time, index]));
  return [
    grid,
    ...lines.map(({ points }) => {
      const row = new Array<number | null>(grid.length).fill(null);
      for (const [ms, value] of points) row[at.get(ms / 1000)!] = value;
      return row;
    }),
  ];
}

/** Returns a colour by rank, with hues far apart, readable on a light and on a dark background. */
export const lineColour = (rank: number): string => `oklch(0.64 0.14 ${Math.round((235 + rank * 137.5) % 360)})`;
