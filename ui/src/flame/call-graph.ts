// The call graph of the largest functions, as `go tool pprof -svg` draws it. Small functions and calls are omitted and counted. A
// call through omitted functions leads to the next function that is not omitted.

import type { Flame } from './layout.ts';
import { topRows } from './top.ts';

export interface CallNode {
  /** Index into the flame graph's names. */
  name: number;
  self: number;
  total: number;
  /** True if the function calls itself. */
  recursive: boolean;
}

export interface Call {
  /** Indices into the nodes. */
  from: number;
  to: number;
  value: number;
  /** True if `from` calls `to` only through omitted functions. */
  over: boolean;
}

export interface CallGraph {
  nodes: CallNode[];
  calls: Call[];
  /** Number of omitted functions and calls. */
  without: { nodes: number; calls: number };
}

/** Shares of the total below which functions and calls are omitted; the same as in `go tool pprof`. */
export const NODE_FRACTION = 0.005;
export const EDGE_FRACTION = 0.001;

export function callGraph(flame: Flame, most: number): CallGraph {
  const folded = new Set<number>();
  for (let node = 0; node < flame.count; node += 1) if (flame.folded[node]) folded.add(flame.name[node]!);
  const rows = topRows(flame).filter(({ name }) => !folded.has(name));
  const large = rows.filter(({ total, self }) => Math.max(total, self) >= flame.sum * NODE_FRACTION);
  // The rank of a function is the sum of its total and its self value.
  const kept = large.sort((one, two) => two.total + two.self - one.total - one.self || one.name - two.name).slice(0, most);
  const at = new Map(kept.map(({ name }, index) => [name, index]));
  const nodes = kept.map(({ name, self, total }): CallNode => ({ name, self, total, recursive: false }));
  const all = callsOf(flame, at, nodes);
  // The largest call to each function is kept, however small it is, so that the function stays connected.
  const main = new Map<number, Call>();
  for (const call of all) if (call.value > (main.get(call.to)?.value ?? 0)) main.set(call.to, call);
  const calls = withoutDetours(all.filter((call) => call.value >= flame.sum * EDGE_FRACTION || main.get(call.to) === call), nodes.length);
  return { nodes, calls, without: { nodes: rows.length - nodes.length, calls: all.length - calls.length } };
}

function callsOf(flame: Flame, at: ReadonlyMap<number, number>, nodes: CallNode[]): Call[] {
  const calls = new Map<number, Call>();
  /** The frame itself or its nearest caller whose function is kept; -1 if there is none. */
  const nearest = new Int32Array(flame.count).fill(-1);
  const functionAt = (frame: number): number => at.get(flame.name[frame]!)!;
  const callerOf = (frame: number): number => (flame.parent[frame]! < 0 ? -1 : nearest[flame.parent[frame]!]!);
  for (let frame = 0; frame < flame.count; frame += 1) {
    if (flame.parent[frame]! < 0 || !at.has(flame.name[frame]!)) {
      nearest[frame] = callerOf(frame);
      continue;
    }
    nearest[frame] = frame;
    const caller = callerOf(frame);
    if (caller < 0) continue;
    const [from, to] = [functionAt(caller), functionAt(frame)];
    if (from === to) {
      nodes[to]!.recursive = true;
      continue;
    }
    // A stack counts once for a call, however often it contains that call.
    let again = false;
    for (let up = caller; up >= 0 && !again; up = callerOf(up)) again = functionAt(up) === to && callerOf(up) >= 0 && functionAt(callerOf(up)) === from;
    const key = from * nodes.length + to;
    const call = calls.get(key) ?? { from, to, value: 0, over: true };
    calls.set(key, call);
    if (!again) call.value += flame.total[frame]!;
    if (flame.parent[frame] === caller) call.over = false;
  }
  return [...calls.values()].sort((one, two) => two.value - one.value || one.from - two.from || one.to - two.to);
}

/** Removes calls through omitted functions if another path leads to the same function. */
function withoutDetours(calls: readonly Call[], count: number): Call[] {
  const next: Set<Call>[] = Array.from({ length: count }, () => new Set());
  for (const call of calls) next[call.from]!.add(call);
  const leads = (from: number, to: number): boolean => {
    const seen = new Uint8Array(count);
    const open = [from];
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (node === to) return true;
      if (seen[node]) continue;
      seen[node] = 1;
      for (const call of next[node]!) open.push(call.to);
    }
    return false;
  };
  // The smallest calls are removed first, so that large ones stay.
  for (const call of calls.filter(({ over }) => over).reverse()) {
    next[call.from]!.delete(call);
    if (!leads(call.from, call.to)) next[call.from]!.add(call);
  }
  return calls.filter((call) => next[call.from]!.has(call));
}
