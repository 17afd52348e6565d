// Converts the rows of an SQL statement to drawings: rows with a time and numbers to lines, rows with a name and a number to bars, and
// the rows of `flamegraph()` to a flame graph.

import type { FlameGraphMessage } from './api.ts';
import { lineColour, typicalSpacing, type Line } from './series.ts';
import type { SqlRow, Value } from './sql.ts';
import type { Range } from './time.ts';

export const columnsOf = (rows: readonly SqlRow[]): string[] => Object.keys(rows[0] ?? {});

/** Returns a cell as text. */
export function cellText(value: Value | undefined): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/;
const isNumber = (value: Value | undefined): boolean => typeof value === 'number' || (typeof value === 'string' && /^-?\d{16,}$/.test(value));
const every = (rows: readonly SqlRow[], column: string, test: (value: Value | undefined) => boolean): boolean => rows.some((row) => row[column] != null) && rows.every((row) => row[column] == null || test(row[column]));
const numbersOf = (rows: readonly SqlRow[]): string[] => columnsOf(rows).filter((column) => every(rows, column, isNumber));

export interface Lines {
  lines: Line[];
  range: Range;
  /** Seconds between points. */
  step: number;
}

/** Returns a line for each column of numbers, split by the values of the first column of text, if there is one. */
export function linesOf(rows: readonly SqlRow[]): Lines | null {
  const columns = columnsOf(rows);
  const time = columns.find((column) => every(rows, column, (value) => typeof value === 'string' && TIME.test(value)));
  const numbers = numbersOf(rows);
  if (time === undefined || numbers.length === 0) return null;
  const name = columns.find((column) => column !== time && !numbers.includes(column));
  const groups = new Map<string, [number, number][]>();
  for (const row of rows) {
    for (const column of numbers) {
      if (row[column] == null || row[time] == null) continue;
      const label = name === undefined ? column : numbers.length === 1 ? cellText(row[name]) : `${cellText(row[name])} ${column}`;
      const points = groups.get(label) ?? [];
      points.push([Date.parse(String(row[time])), Number(row[column])]);
      groups.set(label, points);
    }
  }
  const lines = [...groups].slice(0, MOST_LINES).map(([label, points], rank): Line => ({ label, points: points.sort((a, b) => a[0] - b[0]), colour: groups.size === 1 ? '--accent' : lineColour(rank) }));
  const times = lines.flatMap(({ points }) => points.map(([ms]) => ms));
  const [start, end] = times.reduce(([low, high], ms) => [Math.min(low, ms), Math.max(high, ms)], [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
  const step = typicalSpacing(lines.map(({ points }) => points as [number, number][])) || 60;
  return { lines, range: { start: start!, end: Math.max(end!, start! + 1000) }, step };
}

const MOST_LINES = 20;

export interface Bar {
  label: string;
  value: number;
}

/** Returns bars for the last column of numbers, named by the columns without numbers. */
export function barsOf(rows: readonly SqlRow[]): { column: string; bars: Bar[] } | null {
  const numbers = numbersOf(rows);
  const column = numbers.at(-1);
  const names = columnsOf(rows).filter((name) => !numbers.includes(name));
  if (column === undefined || names.length === 0) return null;
  return { column, bars: rows.slice(0, MOST_BARS).map((row) => ({ label: names.map((name) => cellText(row[name])).join(' · '), value: Number(row[column] ?? 0) })) };
}

const MOST_BARS = 500;

/** Returns the rows of `flamegraph()` in the wire format of flame graphs; null for other rows. */
export function flameOf(rows: readonly SqlRow[]): FlameGraphMessage | null {
  const columns = columnsOf(rows);
  if (!['level', 'x', 'total', 'self', 'function'].every((column) => columns.includes(column))) return null;
  const places = [...rows].sort((a, b) => Number(a.level) - Number(b.level) || Number(a.x) - Number(b.x));
  const names: string[] = [];
  const files: string[] = [];
  const index = new Map<string, number>();
  const levels: { values: number[] }[] = [];
  const lines: { values: number[] }[] = [];
  let end = 0;
  for (const row of places) {
    const level = Number(row.level);
    while (levels.length <= level) {
      levels.push({ values: [] });
      lines.push({ values: [] });
      end = 0;
    }
    const key = `${cellText(row.function)}\n${cellText(row.file)}`;
    if (!index.has(key)) {
      index.set(key, names.length);
      names.push(cellText(row.function));
      files.push(cellText(row.file));
    }
    levels[level]!.values.push(Number(row.x) - end, Number(row.total), Number(row.self), index.get(key)!);
    lines[level]!.values.push(Number(row.line ?? 0));
    end = Number(row.x) + Number(row.total);
  }
  return { names, files, mappings: names.map(() => ''), levels, lines };
}
