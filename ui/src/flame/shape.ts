// Applies a recipe to a flame graph: it selects stacks, and removes frames or merges them into their callers. The remaining frames keep
// their values and order. `sum` is still that of the whole graph, and shares refer to it. The value of the removed stacks is `sum` minus
// the total of the root.

import { Builder, type Made } from './build.ts';
import type { Flame } from './layout.ts';
import type { Plan } from './recipe.ts';

export function shape(flame: Flame, plan: Plan): Made {
  const kept = keptValues(flame, plan);
  const made = new Builder(flame, Math.max(1, flame.count));
  /** The new node of each remaining frame. */
  const place = new Int32Array(flame.count);
  for (let node = 0; node < flame.count; node += 1) {
    const above = flame.parent[node]!;
    if (kept.total[node] === 0 && above >= 0) continue;
    const at = above < 0 ? 0 : placeOf(made, flame, plan, place[above]!, node);
    place[node] = at;
    if (kept.self[node]! > 0) made.give(at, node, kept.self[node]);
  }
  return made.finish('name');
}

function placeOf(made: Builder, flame: Flame, plan: Plan, caller: number, node: number): number {
  const name = flame.name[node]!;
  if (plan.hidden[name]) return caller;
  const group = plan.group[name]!;
  if (group > 0 && caller > 0 && plan.group[made.name[caller]!] === group) {
    made.hear(caller, node);
    return caller;
  }
  if (plan.recursion) {
    let above = caller;
    while (above > 0 && made.name[above] !== name) above = made.parent[above]!;
    if (above > 0) return above;
  }
  return made.below(caller, node);
}

/** Returns the own value and the total of each node over the selected stacks. */
function keptValues(flame: Flame, { only, without }: Plan): { self: Float64Array; total: Float64Array } {
  if (only.length === 0 && !without.includes(1)) return { self: flame.self, total: flame.total };
  const all = 2 ** only.length - 1;
  /** One bit for each text of `only` that a node or one of its callers matches; -1 for frames of `without` and the frames below them. */
  const met = new Int32Array(flame.count);
  const self = new Float64Array(flame.count);
  for (let node = 0; node < flame.count; node += 1) {
    const above = flame.parent[node]!;
    const name = flame.name[node]!;
    const before = above < 0 ? 0 : met[above]!;
    if (before < 0 || (above >= 0 && without[name])) {
      met[node] = -1;
      continue;
    }
    let now = before;
    for (let at = 0; at < only.length; at += 1) if (only[at]![name]) now |= 1 << at;
    met[node] = now;
    if (now === all) self[node] = flame.self[node]!;
  }
  const total = self.slice();
  for (let node = flame.count - 1; node > 0; node -= 1) if (flame.parent[node]! >= 0) total[flame.parent[node]!]! += total[node]!;
  return { self, total };
}
