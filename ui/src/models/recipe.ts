// What the URL says of how a flame graph is shown, as a recipe; and the graphs that are made by it.

import { createMemo, type Accessor } from 'solid-js';
import type { Flame } from '../flame/layout.ts';
import { isPlain, keepsFrames, type Recipe } from '../flame/recipe.ts';
import { sandwichOf, shapeTree, type Sandwich, type Shaped, type Tree } from '../flame/tree.ts';
import type { Reader } from '../lib/schema.ts';
import type { FLAME } from '../urls.ts';
import { createWorked, work } from './work.ts';

export type RecipeText = Pick<Reader<typeof FLAME>, keyof Recipe>;

/** What decides which part of the graph has to be known. */
export type ShownText = RecipeText & Pick<Reader<typeof FLAME>, 'pane' | 'focus'>;

/** Graphs of more nodes are made into others beside the page: that takes more than a frame of the screen. */
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

/** What is shown is made of all frames: those that are small are needed, too. */
export const needsWhole = (at: RecipeText & Pick<ShownText, 'pane'>): Accessor<boolean> => createMemo(() => at.pane() !== 'flame' || !isPlain(readRecipe(at)));

/** The graph by its recipe. */
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

/** A function between its callers and callees. */
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

/** What comes from the worker has names of its own, and another clock. */
const athome = ({ names, files, mappings }: Flame, born: number) => (tree: Tree): Tree => ({ ...tree, flame: { ...tree.flame, names, files, mappings, born } });
