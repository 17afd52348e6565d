// A flame graph from its other end: each leaf below the root, and below it who called it. The width of a frame is the own
// value of the leaf at the top of its chain, as far as it was called so.

import { Builder, type Made } from './build.ts';
import type { Flame } from './layout.ts';

/** The most nodes that the inverted graph has. Chains that would need more end sooner; their values are not lost. */
export const MOST_INVERTED = 131_072;

export function invert(flame: Flame, most = MOST_INVERTED): Made {
  const leaves: number[] = [];
  let frames = 1;
  for (let node = 1; node < flame.count; node += 1) {
    if (flame.self[node]! <= 0) continue;
    leaves.push(node);
    frames = Math.min(most, frames + flame.level[node]!);
  }
  // The largest first, so that it is the smallest that are cut when there is no room.
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
