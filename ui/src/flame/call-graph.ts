// Who calls whom, of the largest functions: what `go tool pprof -svg` draws. A function or a call that is small against all
// is left out, and how many were is said; a call over functions that are left out leads to the next that is not.

import type { Flame } from './layout.ts';
import { topRows } from './top.ts';

export interface CallNode {
  /** Index into the flame graph's names. */
  name: number;
  self: number;
  total: number;
  /** It calls itself. */
  recursive: boolean;
}

export interface Call {
  /** Indices into the nodes. */
  from: number;
  to: number;
  value: number;
  /** Never direct: functions that are left out are between. */
  over: boolean;
}

export interface CallGraph {
  nodes: CallNode[];
  calls: Call[];
  /** What was left out. */
  without: { nodes: number; calls: number };
}

/** Shares of all below which a function, and a call, is left out: those of `go tool pprof`. */
export const NODE_FRACTION = 0.005;
export const EDGE_FRACTION = 0.001;

export function callGraph(flame: Flame, most: number): CallGraph {
  const folded = new Set<number>();
  for (let node = 0; node < flame.count; node += 1) if (flame.folded[node]) folded.add(flame.name[node]!);
  const rows = topRows(flame).filter(({ name }) => !folded.has(name));
  const large = rows.filter(({ total, self }) => Math.max(total, self) >= flame.sum * NODE_FRACTION);
  // What is large of itself is worth as much as what leads to it.
  const kept = large.sort((one, two) => two.total + two.self - one.total - one.self || one.name - two.name).slice(0, most);
  const at = new Map(kept.map(({ name }, index) => [name, index]));
  const nodes = kept.map(({ name, self, total }): CallNode => ({ name, self, total, recursive: false }));
  const all = callsOf(flame, at, nodes);
  // A function stays joined to who calls it most, however little that is.
  const main = new Map<number, Call>();
  for (const call of all) if (call.value > (main.get(call.to)?.value ?? 0)) main.set(call.to, call);
  const calls = withoutDetours(all.filter((call) => call.value >= flame.sum * EDGE_FRACTION || main.get(call.to) === call), nodes.length);
  return { nodes, calls, without: { nodes: rows.length - nodes.length, calls: all.length - calls.length } };
}

function callsOf(flame: Flame, at: ReadonlyMap<number, number>, nodes: CallNode[]): Call[] {
  const calls = new Map<number, Call>();
  /** The nearest frame of a function that is kept: the frame itself, or one that leads to it; -1 when there is none. */
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
    // A stack counts once for a call, however often it makes that call.
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

/** Without those calls over functions that are left out which say nothing new: another way leads there, too. */
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
  // The smallest first: what has to stay is large.
  for (const call of calls.filter(({ over }) => over).reverse()) {
    next[call.from]!.delete(call);
    if (!leads(call.from, call.to)) next[call.from]!.add(call);
  }
  return calls.filter((call) => next[call.from]!.has(call));
}
