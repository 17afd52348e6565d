// A function with its callers and its callees, one row each, as in `go tool pprof -peek`. A stack counts once for a call, however
// often it contains that call.

import type { Flame } from './layout.ts';
import { placesOf } from './sandwich.ts';
import { topRows } from './top.ts';

/** The other side of a call: a caller or a callee. */
export interface PeekRow {
  /** Index into the flame graph's names. */
  name: number;
  /** Value of the calls between the function and this caller or callee. */
  value: number;
  /** Values of this caller or callee over all its calls. */
  self: number;
  total: number;
}

export interface Peek {
  self: number;
  total: number;
  /** The largest first. */
  callers: PeekRow[];
  callees: PeekRow[];
  /** Value of the stacks that begin with the function. */
  root: number;
}

export function peek(flame: Flame, name: number): Peek {
  const rows = new Map(topRows(flame).map((row) => [row.name, row]));
  const { callers, callees, root } = callsOf(flame, name);
  const list = (values: Map<number, number>): PeekRow[] => [...values]
    .map(([other, value]) => ({ name: other, value, self: rows.get(other)?.self ?? 0, total: rows.get(other)?.total ?? 0 }))
    .sort((one, two) => two.value - one.value || one.name - two.name);
  const own = rows.get(name);
  return { self: own?.self ?? 0, total: own?.total ?? 0, callers: list(callers), callees: list(callees), root };
}

function callsOf(flame: Flame, name: number): { callers: Map<number, number>; callees: Map<number, number>; root: number } {
  const callers = new Map<number, number>();
  const callees = new Map<number, number>();
  let root = 0;
  const add = (values: Map<number, number>, other: number, node: number): number => values.set(other, (values.get(other) ?? 0) + flame.total[node]!).size;
  for (let node = 0; node < flame.count; node += 1) {
    const above = flame.parent[node]!;
    if (above < 0) continue;
    const begins = flame.parent[above]! < 0;
    if (flame.name[node] === name && !begins && firstCall(flame, node)) add(callers, flame.name[above]!, node);
    if (flame.name[above] === name && !begins && firstCall(flame, node)) add(callees, flame.name[node]!, node);
  }
  for (const place of placesOf(flame, name)) if (flame.parent[flame.parent[place] ?? -1] === -1) root += flame.total[place]!;
  return { callers, callees, root };
}

/** Whether no ancestor of a node is a call of the same function by the same caller, so that the call counts only once for a stack. */
export function firstCall({ name, parent }: Flame, node: number): boolean {
  const [callee, caller] = [name[node], name[parent[node]!]];
  for (let at = parent[node]!; parent[at]! >= 0; at = parent[at]!) if (name[at] === callee && name[parent[at]!] === caller) return false;
  return true;
}
