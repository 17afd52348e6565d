// The callers and callees of a function, merged over all its calls in the graph. A recursive function counts once, at its first call.

import { Builder, type Made } from './build.ts';
import { MOST_INVERTED } from './invert.ts';
import { firstChildren, type Flame } from './layout.ts';

/** Returns the nodes of a function that are not below another node of the same function. */
export function placesOf(flame: Flame, name: number): number[] {
  const places: number[] = [];
  const below = new Uint8Array(flame.count);
  for (let node = 0; node < flame.count; node += 1) {
    const above = flame.parent[node]!;
    if (above >= 0 && below[above]) below[node] = 1;
    else if (flame.name[node] === name) {
      below[node] = 1;
      places.push(node);
    }
  }
  return places;
}

/** Returns the callees of a function, with the function as the root. */
export function calleesOf(flame: Flame, name: number): Made {
  const places = placesOf(flame, name);
  const first = firstChildren(flame);
  const made = new Builder(flame, Math.max(1, flame.count), name);
  let open = places.map((node) => ({ node, at: 0 }));
  for (const { node } of open) made.hear(0, node);
  while (open.length > 0) {
    const next: typeof open = [];
    for (const { node, at } of open) {
      if (flame.self[node]! > 0) made.give(at, node);
      for (let child = first[node]!; child < flame.count && flame.parent[child] === node; child += 1) next.push({ node: child, at: made.below(at, child) });
    }
    open = next;
  }
  return made.finish('largest');
}

/**
 * Returns the callers of a function, with the function as the root. In other graphs, `Made.of` maps a node to the node that received
 * its own value. Here it maps each outermost node of the function to the node that received its total value.
 */
export function callersOf(flame: Flame, name: number): Made {
  const places = placesOf(flame, name).sort((one, two) => flame.total[two]! - flame.total[one]! || one - two);
  const frames = places.reduce((sum, node) => Math.min(MOST_INVERTED, sum + flame.level[node]!), 1);
  const made = new Builder(flame, frames, name);
  for (const place of places) {
    made.hear(0, place);
    let at = 0;
    // The root of the graph is not a caller.
    for (let frame = flame.parent[place]!; frame >= 0 && flame.parent[frame]! >= 0; frame = flame.parent[frame]!) {
      const next = made.below(at, frame);
      if (next < 0) break;
      at = next;
    }
    made.give(at, place, flame.total[place]);
  }
  return made.finish('largest');
}
