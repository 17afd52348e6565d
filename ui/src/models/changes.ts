// The functions whose share of the total changed by more than noise between the two sides of a comparison. Both sides are divided into time
// slices, and each slice is loaded separately. A change counts only if it is far larger than the variation of the share between slices.

import type { Accessor } from 'solid-js';
import { layout } from '../flame/layout.ts';
import { topRows } from '../flame/top.ts';
import { mergeStacktraces } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { inTurn } from '../lib/pool.ts';
import { beyondChance, chanceOfNoise, shareOf, type Slice } from '../lib/statistics.ts';
import type { Range } from '../lib/time.ts';
import type { Query } from './selection.ts';

export interface Rise {
  name: string;
  /** Share of the function's own value in the total of each side. */
  left: number;
  right: number;
}

export type Changes =
  /** Names of the changed functions, and the functions with the largest increases. */
  | { kind: 'tested'; real: Record<'self' | 'total', ReadonlySet<string>>; rises: readonly Rise[] }
  /** One of the sides has too few profiles to compute how much a share varies. */
  | { kind: 'too few' };

const SLICES = 8;
/** Least length of a slice; a shorter one might contain no profile. */
const SHORTEST_MS = 15_000;
const FEWEST = 3;
const NODES = 4096;
const AT_ONCE = 4;
/** Maximum of the expected share of false positives among the reported changes. */
const LUCK = 0.01;
/** Smaller shares are not tested. */
const LEAST_SHARE = 0.001;
const MOST_RISES = 5;

export function createChanges(sides: Accessor<{ left: Query; right: Query } | null>): Loader<Changes> {
  return createLoader(sides, async ({ left, right }, signal) => {
    const cuts = [...cut(left.range).map((range) => ({ query: left, range })), ...cut(right.range).map((range) => ({ query: right, range }))];
    const slices = await inTurn(cuts, AT_ONCE, async ({ query, range }) => slice(await mergeStacktraces({ type: query.type.id, selector: query.selector, range, maxNodes: NODES, plain: true }, signal)));
    const middle = cuts.findIndex(({ query }) => query === right);
    return findChanges(slices.slice(0, middle), slices.slice(middle));
  });
}

export interface Sliced {
  sum: number;
  self: ReadonlyMap<string, number>;
  total: ReadonlyMap<string, number>;
}

/** Divides a range into slices of equal length. A range that is too short stays one slice. */
export function cut({ start, end }: Range): Range[] {
  const count = Math.max(1, Math.min(SLICES, Math.floor((end - start) / SHORTEST_MS)));
  const edge = (index: number): number => Math.round(start + ((end - start) * index) / count);
  return Array.from({ length: count }, (_, index) => ({ start: edge(index), end: edge(index + 1) }));
}

function slice(message: Parameters<typeof layout>[0]): Sliced {
  const flame = layout(message);
  const rows = topRows(flame);
  const by = (key: 'self' | 'total'): Map<string, number> => {
    const sums = new Map<string, number>();
    for (const row of rows) sums.set(flame.names[row.name]!, (sums.get(flame.names[row.name]!) ?? 0) + row[key]);
    return sums;
  };
  return { sum: flame.sum, self: by('self'), total: by('total') };
}

export function findChanges(left: readonly Sliced[], right: readonly Sliced[]): Changes {
  const full = (slices: readonly Sliced[]): Sliced[] => slices.filter(({ sum }) => sum > 0);
  const sides = [full(left), full(right)] as const;
  if (sides.some((slices) => slices.length < FEWEST)) return { kind: 'too few' };
  const tested = (key: 'self' | 'total'): (Rise & { real: boolean })[] => {
    const names = new Set(sides.flat().flatMap((slices) => [...slices[key].keys()]));
    const shares = (name: string) => sides.map((slices) => shareOf(slices.map((found): Slice => ({ part: found[key].get(name) ?? 0, all: found.sum }))));
    const found = [...names].map((name) => ({ name, shares: shares(name) })).filter(({ shares: both }) => both.some(({ share }) => share >= LEAST_SHARE));
    const real = beyondChance(found.map(({ shares: [one, two] }) => chanceOfNoise(one!, two!)), LUCK);
    return found.map(({ name, shares: [one, two] }, index) => ({ name, left: one!.share, right: two!.share, real: real[index]! }));
  };
  const real = (rows: readonly (Rise & { real: boolean })[]): Set<string> => new Set(rows.filter((row) => row.real).map(({ name }) => name));
  const self = tested('self');
  const rises = self.filter((row) => row.real && row.right - row.left >= LEAST_SHARE).sort((a, b) => b.right - b.left - (a.right - a.left));
  return { kind: 'tested', real: { self: real(self), total: real(tested('total')) }, rises: rises.slice(0, MOST_RISES).map(({ name, left: before, right: after }) => ({ name, left: before, right: after })) };
}
