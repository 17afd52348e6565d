// The properties of the views that replace the flame graph: callers and callees, peek, call graph, lines.

import type { Recipe } from '../flame/recipe.ts';
import type { Tree } from '../flame/tree.ts';
import type { Values } from '../lib/schema.ts';
import type { Query } from '../models/selection.ts';
import type { FLAME } from '../urls.ts';
import type { FlameLook } from './FlameLook.ts';

export interface PartProps {
  /** The graph from the root to the leaves, to which the rules in `recipe` are already applied. */
  tree: Tree;
  /** Text that identifies the shown profile. If it changes, a view scrolls back to its start. */
  of: string;
  /** The rules for the flame graph. */
  recipe: Recipe;
  look: FlameLook;
  /** The function that the view shows: index of its name in `tree`, -1 for none. */
  name: number;
  /** The function under the pointer: index of its name in `tree`, -1 for none. */
  hovered: number;
  /** The query that returns the lines of functions. */
  stacks: Query | null;
  /** Maximum number of nodes of the call graph. */
  nodes: Values<typeof FLAME>['nodes'];
  onNodes: (nodes: Values<typeof FLAME>['nodes']) => void;
  /** Switches to another function. */
  onWalk: (name: string) => void;
  onHover: (name: number) => void;
  onMenu: (name: number, x: number, y: number) => void;
}
