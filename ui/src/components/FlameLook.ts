// How a flame graph is drawn and told: one of values, or one of the difference of two. The pane around it is the same.

import type { JSX } from 'solid-js';
import type { Paint } from '../flame/draw.ts';
import type { Tree } from '../flame/tree.ts';

/** What the table beside a flame graph is told, and tells. */
export interface TableState {
  /** From the root to the leaves. */
  tree: Tree;
  sort: string;
  filter: string;
  /** Name index that is selected or pointed at elsewhere, -1 for none. */
  selected: number;
  hovered: number;
  /** Counts up when the selected row should come into view. */
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
  /** The values of a frame, for its tooltip. */
  values: (tree: Tree, node: number) => JSX.Element;
  /** The same for those who hear it. */
  spoken: (tree: Tree, node: number) => string;
  /** Of some frames, none of which is inside of another: their share and value. */
  sum: (tree: Tree, nodes: readonly number[]) => { share: string; value: string };
  table: (state: TableState) => JSX.Element;
  /** A value with its unit, where a frame has one; null where it has two. */
  amount: ((value: number) => string) | null;
  /** The colour of a name, where a name has one. */
  swatch: (name: number) => string;
}
