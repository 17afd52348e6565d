// The properties of the views that replace the flame graph: callers and callees, peek, call graph, lines.

import type { Recipe } from '../flame/recipe.ts';
import type { Tree } from '../flame/tree.ts';
import type { Values } from '../lib/schema.ts';
import type { Query } from '../models/selection.ts';
import type { FLAME } from '../urls.ts';
import type { FlameLook } from './FlameLook.ts';

export interface PartProps {
  /** The graph of calls from the root to the leaves, after the rules in `recipe` were applied. */
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
  /** The query whose merged profile contains the source lines of functions; null if there is no such query. */
  stacks: Query | null;
  /** Maximum number of nodes of the call graph. */
  nodes: Values<typeof FLAME>['nodes'];
  onNodes: (nodes: Values<typeof FLAME>['nodes']) => void;
  /** Switches to another function. */
  onWalk: (name: string) => void;
  onHover: (name: number) => void;
  onMenu: (name: number, x: number, y: number) => void;
}
