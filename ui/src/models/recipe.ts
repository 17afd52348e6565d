// Reads the rules for a flame graph from the URL as a recipe, and applies the recipe to the graph.

import { createMemo, type Accessor } from 'solid-js';
import type { Flame } from '../flame/layout.ts';
import { isPlain, keepsFrames, type Recipe } from '../flame/recipe.ts';
import { sandwichOf, shapeTree, type Sandwich, type Shaped, type Tree } from '../flame/tree.ts';
import type { Reader } from '../lib/schema.ts';
import type { FLAME } from '../urls.ts';
import { createWorked, work } from './work.ts';

export type RecipeText = Pick<Reader<typeof FLAME>, keyof Recipe>;

/** The values of the URL that determine which part of the graph has to be loaded. */
export type ShownText = RecipeText & Pick<Reader<typeof FLAME>, 'pane' | 'focus'>;

/** Graphs with more nodes than this are transformed in the worker, because the transformation takes longer than a screen refresh. */
const AT_ONCE = 15_000;

export const readRecipe = (at: RecipeText): Recipe => ({
  only: at.only(),
  without: at.without(),
  hide: at.hide(),
  package: at.package(),
  fold: at.fold(),
  recursion: at.recursion(),
  invert: at.invert(),
});

/** True if the shown graph is made from all frames, including small ones. */
export const needsWhole = (at: RecipeText & Pick<ShownText, 'pane'>): Accessor<boolean> => createMemo(() => at.pane() !== 'flame' || !isPlain(readRecipe(at)));

/** Returns the graph that results if the rules are applied to a graph. */
export function createShape(tree: Accessor<Tree>, recipe: Accessor<Recipe>): Accessor<Shaped> {
  return createWorked(
    createMemo(() => ({ tree: tree(), recipe: recipe() })),
    (ask) => ask.tree.flame.count <= AT_ONCE || isPlain(ask.recipe),
    (ask) => shapeTree(ask.tree, ask.recipe),
    async (ask) => {
      const born = performance.now();
      const { calls, shown, errors } = await work('shape', ask);
      const home = athome(ask.tree.flame, born);
      const mine = keepsFrames(ask.recipe) ? ask.tree : home(calls);
      return { calls: mine, shown: ask.recipe.invert ? home(shown) : mine, errors };
    },
  );
}

/** Returns the graphs of the callers and callees of a function. */
export function createSandwich(tree: Accessor<Tree>, name: Accessor<number>): Accessor<Sandwich> {
  return createWorked(
    createMemo(() => ({ tree: tree(), name: name() })),
    (ask) => ask.tree.flame.count <= AT_ONCE,
    (ask) => sandwichOf(ask.tree, ask.name),
    async (ask) => {
      const born = performance.now();
      const { callers, callees } = await work('sandwich', ask);
      const home = athome(ask.tree.flame, born);
      return { callers: home(callers), callees: home(callees) };
    },
  );
}

/** Restores names and clock of a graph from the worker, which has copies of the names and another clock. */
const athome = ({ names, files, mappings }: Flame, born: number) => (tree: Tree): Tree => ({ ...tree, flame: { ...tree.flame, names, files, mappings, born } });
