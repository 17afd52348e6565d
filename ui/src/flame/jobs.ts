// The jobs of the worker: work that takes longer than a frame of the screen.

import { readLines, type FunctionLines } from '../lib/pprof-lines.ts';
import { callGraph, type CallGraph } from './call-graph.ts';
import { placeGraph, type Box, type GraphPlaces, type Line } from './graph-layout.ts';
import type { Flame } from './layout.ts';
import type { Recipe } from './recipe.ts';
import { sandwichOf, shapeTree, type Sandwich, type Shaped, type Tree } from './tree.ts';

export const JOBS = {
  graph: ({ flame, most }: { flame: Flame; most: number }): CallGraph => callGraph(flame, most),
  places: ({ boxes, lines }: { boxes: Box[]; lines: Line[] }): GraphPlaces => placeGraph(boxes, lines),
  lines: (profile: ArrayBuffer): FunctionLines[] => readLines(new Uint8Array(profile)),
  sandwich: ({ tree, name }: { tree: Tree; name: number }): Sandwich => sandwichOf(tree, name),
  shape: ({ tree, recipe }: { tree: Tree; recipe: Recipe }): Shaped => shapeTree(tree, recipe),
};

export type Jobs = typeof JOBS;

/** The messages to the worker, and its responses. */
export type Asked = { [K in keyof Jobs]: { id: number; job: K; input: Parameters<Jobs[K]>[0] } }[keyof Jobs];
export type Answered = { id: number; error: string | null; result: unknown };
