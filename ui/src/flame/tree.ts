// A flame graph, and the graphs that are made from it. If the flame graph is a difference, each frame of all these graphs has the values of
// both sides.

import type { Made } from './build.ts';
import type { Sides } from './diff.ts';
import { invert } from './invert.ts';
import type { Flame } from './layout.ts';
import { isPlain, keepsFrames, planOf, type Recipe } from './recipe.ts';
import { calleesOf, callersOf } from './sandwich.ts';
import { shape } from './shape.ts';

export interface Tree {
  flame: Flame;
  /** The values of both sides, if the graph is a difference. */
  sides: Sides | null;
  /** Whether the frames below a frame are its callees or its callers. A graph of callers begins at the leaves of the stacks, or at one function. */
  reads: 'callees' | 'callers of leaves' | 'callers of one';
}

export interface Shaped {
  /** The graph from the root to the leaves, used for tables. */
  calls: Tree;
  /** The drawn graph: `calls`, or its inverted graph. */
  shown: Tree;
  /** Errors of texts in the recipe that cannot be parsed. */
  errors: string[];
}

export function shapeTree(tree: Tree, recipe: Recipe): Shaped {
  if (isPlain(recipe)) return { calls: tree, shown: tree, errors: [] };
  let calls = tree;
  let errors: string[] = [];
  if (!keepsFrames(recipe)) {
    const plan = planOf(tree.flame, recipe);
    errors = plan.errors;
    calls = carry(tree, shape(tree.flame, plan), 'callees');
  }
  return { calls, shown: recipe.invert ? carry(calls, invert(calls.flame), 'callers of leaves') : calls, errors };
}

export interface Sandwich {
  callers: Tree;
  callees: Tree;
}

/** Returns the callers and callees of a function as two graphs. */
export function sandwichOf(tree: Tree, name: number): Sandwich {
  return { callers: carry(tree, callersOf(tree.flame, name), 'callers of one'), callees: carry(tree, calleesOf(tree.flame, name), 'callees') };
}

function carry({ sides }: Tree, { flame, of }: Made, reads: Tree['reads']): Tree {
  if (!sides) return { flame, sides, reads };
  const side = (from: Sides['left']): Sides['left'] => {
    const self = new Float64Array(flame.count);
    const values = reads === 'callers of one' ? from.total : from.self;
    of.forEach((to, node) => { if (to >= 0) self[to]! += values[node]!; });
    const total = self.slice();
    for (let node = flame.count - 1; node > 0; node -= 1) total[flame.parent[node]!]! += total[node]!;
    return { total, self, sum: from.sum };
  };
  return { flame, sides: { left: side(sides.left), right: side(sides.right) }, reads };
}
