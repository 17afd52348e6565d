// The rows of the top table: each function with its self and total values. The inner calls of a recursive function are not
// counted twice.

import type { Flame } from './layout.ts';

export interface TopRow {
  /** Index into the flame graph's names. */
  name: number;
  self: number;
  total: number;
  /** The largest node with that name. A zoom from the table shows this node. */
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

/** Returns the function with the largest own value, -1 if there is none. */
export function hottest(flame: Flame): number {
  const self = new Float64Array(flame.names.length);
  for (let node = flame.levelStart[1] ?? 0; node < flame.count; node += 1) if (!flame.folded[node]) self[flame.name[node]!]! += flame.self[node]!;
  let best = -1;
  for (let name = 0; name < self.length; name += 1) if (self[name]! > (self[best] ?? 0)) best = name;
  return best;
}

export type SortKey = 'name' | 'self' | 'total';

/** Reads a sort order: a column, with `-` in front for descending order. Invalid text is read as `-self`. */
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
