// The difference of two flame graphs as one flame graph. Both sides have the same weight, however long their ranges are: the width
// of a frame is the mean of its shares on both sides. The values of each side are kept unchanged.

import type { FlameGraphMessage } from '../lib/api.ts';
import { layout, type Flame } from './layout.ts';
import { topRows } from './top.ts';

export interface Side {
  /** Value of each node. */
  total: Float64Array;
  self: Float64Array;
  /** Total value of the root. */
  sum: number;
}

/** Baseline and comparison. */
export interface Sides {
  left: Side;
  right: Side;
}

export interface Difference {
  flame: Flame;
  sides: Sides;
}

/** The values of both sides. */
export interface Pair {
  left: number;
  right: number;
}

/** The values of a function on both sides. */
export interface DiffRow {
  /** Index into the flame graph's names. */
  name: number;
  /** The widest node of that name. */
  node: number;
  self: Pair;
  total: Pair;
}

const GROUP = 7;

/** Reads the wire format. A node has seven numbers: x, total and self of the left side, x, total and self of the right side, and the name. */
export function layoutDiff(message: FlameGraphMessage): Difference {
  const levels = message.levels.map(({ values = [] }) => {
    const numbers = values.map((value) => Number(value) || 0);
    return Array.from({ length: Math.floor(numbers.length / GROUP) }, (_, group) => numbers.slice(group * GROUP, (group + 1) * GROUP));
  });
  // The layout uses the sums of both sides to find the callers, because the sums are integers without rounding errors.
  const flame = layout({
    names: message.names,
    levels: levels.map((level) => ({ values: level.flatMap((group) => [at(group, 0) + at(group, 3), at(group, 1) + at(group, 4), at(group, 2) + at(group, 5), at(group, 6)]) })),
    total: message.total ?? 0,
  });
  const side = (first: 0 | 3): Side & { start: Float64Array } => {
    const start = Float64Array.from(levels.flatMap((level) => {
      let end = 0;
      return level.map((group) => {
        const x = end + at(group, first);
        end = x + at(group, first + 1);
        return x;
      });
    }));
    const total = Float64Array.from(levels.flat(), (group) => at(group, first + 1));
    return { start, total, self: Float64Array.from(levels.flat(), (group) => at(group, first + 2)), sum: total[0] ?? 0 };
  };
  const [left, right] = [side(0), side(3)];
  const all = left.sum + right.sum;
  const weight = (sum: number): number => (left.sum > 0 && right.sum > 0 ? all / 2 / sum : 1);
  const [ofLeft, ofRight] = [weight(left.sum), weight(right.sum)];
  for (let node = 0; node < flame.count; node += 1) {
    flame.start[node] = left.start[node]! * ofLeft + right.start[node]! * ofRight;
    flame.total[node] = left.total[node]! * ofLeft + right.total[node]! * ofRight;
    flame.self[node] = left.self[node]! * ofLeft + right.self[node]! * ofRight;
  }
  flame.sum = all;
  return { flame, sides: { left, right } };
}

const at = (group: readonly number[], index: number): number => group[index] ?? 0;

/** Returns one row for each function with its values on both sides. Both sides have the same frames. */
export function diffRows(flame: Flame, { left, right }: Sides): DiffRow[] {
  const [before, after] = [topRows({ ...flame, ...left }), topRows({ ...flame, ...right })];
  return topRows(flame).map(({ name, node }, row) => ({
    name,
    node,
    self: { left: before[row]?.self ?? 0, right: after[row]?.self ?? 0 },
    total: { left: before[row]?.total ?? 0, right: after[row]?.total ?? 0 },
  }));
}

/** Returns the totals of a node on both sides. */
export const pairAt = ({ left, right }: Sides, node: number): Pair => ({ left: left.total[node] ?? 0, right: right.total[node] ?? 0 });

/** Makes both sides comparable: `byShare` divides by the sum of each side, `byFactors` converts to values per second. */
export type Measure = (pair: Pair) => Pair;

export const byShare = ({ left, right }: Sides): Measure => (pair) => ({ left: left.sum > 0 ? pair.left / left.sum : 0, right: right.sum > 0 ? pair.right / right.sum : 0 });

export const byFactors = (factors: Pair): Measure => (pair) => ({ left: pair.left * factors.left, right: pair.right * factors.right });

/** Returns `+` for new, `−` for removed, and an empty text if both sides have a value. */
export const signOf = ({ left, right }: Pair): '' | '+' | '−' => (left === 0 && right > 0 ? '+' : right === 0 && left > 0 ? '−' : '');

export const DIFF_COLUMNS = ['name', 'left', 'right', 'change', 'rate'] as const;
export type DiffKey = (typeof DIFF_COLUMNS)[number];

/** The sort order in the URL: self or total, the column, and the direction. The default is the change of self, descending. */
export interface DiffSort {
  of: 'self' | 'total';
  key: DiffKey;
  down: boolean;
}

export function readDiffSort(text: string): DiffSort {
  const match = /^(-?)(self|total)\.(\w+)$/.exec(text);
  const key = DIFF_COLUMNS.find((column) => column === match?.[3]);
  return match && key ? { down: match[1] === '-', of: match[2] as DiffSort['of'], key } : { down: true, of: 'self', key: 'change' };
}

export const writeDiffSort = ({ of, key, down }: DiffSort): string => (of === 'self' && key === 'change' && down ? '' : `${down ? '-' : ''}${of}.${key}`);

/** Sorts rows by a column. `share` converts values to shares, and `rate` to values per second. */
export function sortDiffRows(rows: readonly DiffRow[], names: readonly string[], { of, key, down }: DiffSort, share: Measure, rate: Measure): DiffRow[] {
  const value = (row: DiffRow): number => {
    const shares = share(row[of]);
    if (key === 'left' || key === 'right') return shares[key];
    const { left, right } = key === 'rate' ? rate(row[of]) : shares;
    return right - left;
  };
  const sorted = rows.map((row) => ({ row, value: key === 'name' ? 0 : value(row) }));
  const way = down ? -1 : 1;
  const byName = (a: DiffRow, b: DiffRow): number => (names[a.name] ?? '').localeCompare(names[b.name] ?? '') || a.name - b.name;
  const size = ({ [of]: pair }: DiffRow): number => pair.left + pair.right;
  sorted.sort((a, b) => (key === 'name' ? way * byName(a.row, b.row) : way * (a.value - b.value) || size(b.row) - size(a.row) || byName(a.row, b.row)));
  return sorted.map(({ row }) => row);
}
