// The breakdown of one label: for each value, its mean, its share, its chart, and its top function.

import { createMemo, type Accessor } from 'solid-js';
import { layout } from '../flame/layout.ts';
import { sortRows, topRows } from '../flame/top.ts';
import { mergeStacktraces } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { parseMatchers, printSelector } from '../lib/selector.ts';
import { chartSeries, meanOf, sumOf } from '../lib/series.ts';
import type { Query } from './selection.ts';

export interface LabelValue {
  value: string;
  mean: number;
  share: number;
  points: [number, number][];
}

export interface Breakdown {
  query: Query;
  label: string;
  values: LabelValue[];
  /** Seconds between points. */
  step: number;
}

/** The function with the largest own value among the profiles of a label value. */
export interface Top {
  name: string;
  share: number;
}

const POINTS = 60;
const NODES = 4096;

export function createBreakdown(query: Accessor<Query | null>, label: Accessor<string>): Loader<Breakdown> {
  const wanted = createMemo(() => {
    const asked = query();
    return asked === null || label() === '' ? null : { query: asked, label: label() };
  });
  return createLoader(wanted, async ({ query: asked, label: name }, signal) => {
    const { lines, step } = await chartSeries(asked.type, asked.selector, asked.range, [name], POINTS, signal);
    const sums = lines.map(({ points }) => sumOf(points));
    const all = sums.reduce((a, b) => a + b, 0);
    const values = lines.map(({ labels, points }, index) => ({ value: labels[name] ?? '', points, mean: meanOf(points), share: all > 0 ? sums[index]! / all : 0 }));
    return { query: asked, label: name, step, values: values.sort((a, b) => b.share - a.share || a.value.localeCompare(b.value)) };
  });
}

/** Adds a matcher to a selector. Profiles must match all matchers, even if several matchers name the same label. */
export const withValue = (selector: string, name: string, op: '=' | '!=', value: string): string => printSelector([...parseMatchers(selector), { name, op, value }]);

export function createTop(breakdown: Accessor<Pick<Breakdown, 'query' | 'label'> | null>, value: string): Loader<Top | null> {
  return createLoader(breakdown, async ({ query: { type, selector, range }, label }, signal) => {
    const flame = layout(await mergeStacktraces({ type: type.id, selector: withValue(selector, label, '=', value), range, maxNodes: NODES, plain: true }, signal));
    const [first] = sortRows(topRows(flame).filter(({ node }) => flame.folded[node] === 0), flame.names, '-self');
    return first && flame.sum > 0 && first.self > 0 ? { name: flame.names[first.name] ?? '', share: first.self / flame.sum } : null;
  });
}
