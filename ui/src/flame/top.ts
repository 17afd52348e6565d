// The top table: one row a function with the value of its own and with all that it calls; a recursive function's
// inner calls are not counted twice. Sorted and filtered here, drawn elsewhere.

import type { Flame } from './layout.ts';

export interface TopRow {
  /** Index into the flame graph's names. */
  name: number;
  self: number;
  total: number;
  /** The largest node of that name: where "show in graph" leads. */
  node: number;
}

export function topRows(flame: Flame): TopRow[] {
  const rows = new Map<number, TopRow>();
  for (let node = 0; node < flame.count; node += 1) {
    if (flame.level[node] === 0) continue;
    const name = flame.name[node]!;
    let row = rows.get(name);
    if (!row) {
      row = { name, self: 0, total: 0, node };
      rows.set(name, row);
    }
    row.self += flame.self[node]!;
    let above = flame.parent[node]!;
    while (above >= 0 && flame.name[above] !== name) above = flame.parent[above]!;
    if (above < 0) row.total += flame.total[node]!;
    if (flame.total[node]! > flame.total[row.node]!) row.node = node;
  }
  return [...rows.values()];
}

export type SortKey = 'name' | 'self' | 'total';

/** `-self` is the largest first; text that is no order is taken as that. */
export function readSort(text: string): { key: SortKey; down: boolean } {
  const match = /^(-?)(name|self|total)$/.exec(text);
  return match ? { key: match[2] as SortKey, down: match[1] === '-' } : { key: 'self', down: true };
}

export function sortRows(rows: readonly TopRow[], names: readonly string[], sort: string): TopRow[] {
  const { key, down } = readSort(sort);
  const by = (a: TopRow, b: TopRow): number => {
    if (key === 'name') return names[a.name]!.localeCompare(names[b.name]!);
    return a[key] - b[key] || a.total - b.total;
  };
  const sorted = [...rows].sort((a, b) => by(a, b) || b.name - a.name);
  return down ? sorted.reverse() : sorted;
}
