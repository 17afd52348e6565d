// What each picture beside the flame graph is given.

import type { Recipe } from '../flame/recipe.ts';
import type { Tree } from '../flame/tree.ts';
import type { Values } from '../lib/schema.ts';
import type { Query } from '../models/selection.ts';
import type { FLAME } from '../urls.ts';
import type { FlameLook } from './FlameLook.ts';

export interface PartProps {
  /** From the root to the leaves. */
  tree: Tree;
  /** What it is of. */
  of: string;
  /** What was done to it before. */
  recipe: Recipe;
  look: FlameLook;
  /** The function that is looked at, -1 when there is none. */
  name: number;
  /** Pointed at here or elsewhere, -1 for none. */
  hovered: number;
  /** The question whose stacks tell the lines of functions. */
  stacks: Query | null;
  /** How many nodes the call graph has. */
  nodes: Values<typeof FLAME>['nodes'];
  onNodes: (nodes: Values<typeof FLAME>['nodes']) => void;
  /** Goes on to another function. */
  onWalk: (name: string) => void;
  onHover: (name: number) => void;
  onMenu: (name: number, x: number, y: number) => void;
}
