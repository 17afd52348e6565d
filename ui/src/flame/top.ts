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
  const byName: (TopRow | undefined)[] = new Array<undefined>(flame.names.length);
  const rows: TopRow[] = [];
  const { name: names, parent, total, self } = flame;
  for (let node = flame.levelStart[1] ?? 0; node < flame.count; node += 1) {
    const name = names[node]!;
    let row = byName[name];
    if (row === undefined) {
      row = { name, self: 0, total: 0, node };
      byName[name] = row;
      rows.push(row);
    }
    row.self += self[node]!;
    let above = parent[node]!;
    while (above >= 0 && names[above] !== name) above = parent[above]!;
    if (above < 0) row.total += total[node]!;
    if (total[node]! > total[row.node]!) row.node = node;
  }
  return rows;
}

/** The function with the largest value of its own, -1 when there is none. */
export function hottest(flame: Flame): number {
  const self = new Float64Array(flame.names.length);
  for (let node = flame.levelStart[1] ?? 0; node < flame.count; node += 1) if (!flame.folded[node]) self[flame.name[node]!]! += flame.self[node]!;
  let best = -1;
  for (let name = 0; name < self.length; name += 1) if (self[name]! > (self[best] ?? 0)) best = name;
  return best;
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
