// The look of a flame graph: its colours, its texts and its table. Plain values and differences have different looks in the same pane.

import type { JSX } from 'solid-js';
import type { Paint } from '../flame/draw.ts';
import type { Tree } from '../flame/tree.ts';

/** The state that the table shares with its flame graph, and its events. */
export interface TableState {
  /** The graph from the root to the leaves, never the inverted one. */
  tree: Tree;
  sort: string;
  filter: string;
  /** Indices of the selected name and of the name that is hovered in the flame graph; -1 for none. */
  selected: number;
  hovered: number;
  /** A counter. When it changes, the selected row is scrolled into view. */
  reveal: number;
  onSort: (sort: string) => void;
  onFilter: (filter: string) => void;
  onSelect: (name: number) => void;
  onZoom: (node: number) => void;
  onHover: (name: number) => void;
  onMenu: (name: number, node: number, x: number, y: number) => void;
}

export interface FlameLook {
  paint: (tree: Tree) => Paint;
  /** Returns the values of a frame for its tooltip. */
  values: (tree: Tree, node: number) => JSX.Element;
  /** Returns the values of a frame as text for screen readers. */
  spoken: (tree: Tree, node: number) => string;
  /** Returns the share and value of several frames, none of which is below another. */
  sum: (tree: Tree, nodes: readonly number[]) => { share: string; value: string };
  table: (state: TableState) => JSX.Element;
  /** Formats a value with its unit; null if a frame has two values, as in a difference. */
  amount: ((value: number) => string) | null;
  /** Returns the colour of a name; empty in a difference. */
  swatch: (name: number) => string;
}
