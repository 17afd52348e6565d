// An inverted flame graph: the leaves are below the root, and below each leaf are its callers. The width of a frame is the
// leaf's own value, summed over the stacks that end with the path from the frame to the leaf.

import { Builder, type Made } from './build.ts';
import type { Flame } from './layout.ts';

/** Maximum number of nodes. Paths that would need more end sooner, without losing their values. */
export const MOST_INVERTED = 131_072;

export function invert(flame: Flame, most = MOST_INVERTED): Made {
  const leaves: number[] = [];
  let frames = 1;
  for (let node = 1; node < flame.count; node += 1) {
    if (flame.self[node]! <= 0) continue;
    leaves.push(node);
    frames = Math.min(most, frames + flame.level[node]!);
  }
  // The largest leaves come first, so that only the paths of the smallest are cut.
  leaves.sort((one, two) => flame.self[two]! - flame.self[one]! || one - two);
  const made = new Builder(flame, frames);
  if (flame.count > 0 && flame.self[0]! > 0) made.give(0, 0);
  for (const leaf of leaves) {
    let at = 0;
    for (let frame = leaf; flame.parent[frame]! >= 0; frame = flame.parent[frame]!) {
      const next = made.below(at, frame);
      if (next < 0) break;
      at = next;
    }
    made.give(at, leaf);
  }
  return made.finish('largest');
}
