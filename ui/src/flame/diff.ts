// The difference of two flame graphs, as one: a frame is as wide as both of its sides together, and each side is told.

import type { FlameGraphMessage } from '../lib/api.ts';
import { layout, type Flame } from './layout.ts';

/** The totals of a frame on each side, by node. */
export interface Sides {
  left: Float64Array;
  right: Float64Array;
}

export interface Difference {
  flame: Flame;
  sides: Sides;
}

/** Reads the wire's form: groups of seven, x, total and self of the left, the same of the right, and the name. */
export function layoutDiff(message: FlameGraphMessage): Difference {
  const groups = message.levels.map(({ values = [] }) => {
    const numbers = values.map((value) => Number(value) || 0);
    return Array.from({ length: Math.floor(numbers.length / 7) }, (_, group) => numbers.slice(group * 7, group * 7 + 7));
  });
  const both = groups.map((level) => ({ values: level.flatMap(([x = 0, total = 0, self = 0, otherX = 0, otherTotal = 0, otherSelf = 0, name = 0]) => [x + otherX, total + otherTotal, self + otherSelf, name]) }));
  const all = groups.flat();
  return {
    flame: layout({ names: message.names, levels: both, total: message.total ?? 0 }),
    sides: { left: Float64Array.from(all, ([, total = 0]) => total), right: Float64Array.from(all, (group) => group[4] ?? 0) },
  };
}
