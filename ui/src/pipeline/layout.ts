// Places the nodes of a graph in columns, left to right along its edges, so that few edges cross and most are short.
// In: a number of nodes and the edges between them. Out: positions and the points of every edge. Cycles are allowed.
//
// Unconnected parts are laid out one by one and stacked. In each part, the column of a node is the length of the longest path that ends at it,
// and a node without input is moved next to the node that it feeds. Bends of long edges become small nodes, if there are not too
// many. Sweeps, to the right and to the left in turn, order the nodes of each column by the mean position of their neighbours. Each node is
// placed near the mean position of its neighbours, and nodes that would overlap are moved apart.

import type { Edge } from './model.ts';

export const NODE_WIDTH = 216;
export const NODE_HEIGHT = 64;
/** Room between columns, wide enough for the text of an edge. */
export const COLUMN_GAP = 136;
export const ROW_GAP = 24;
const BEND_HEIGHT = 12;
const PART_GAP = 48;
/** Maximum number of bends. A graph that would need more is drawn without them, because bends only improve its look. */
const MOST_BENDS = 6000;
const SWEEPS = 6;

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  /** Upper left corner of every node. */
  x: Float64Array;
  y: Float64Array;
  /** Points of every edge in the given order, from the right side of one node to the left side of another. */
  paths: Point[][];
  width: number;
  height: number;
  /** Nodes by column, each from top to bottom, over all parts. */
  columns: number[][];
}

interface Part {
  nodes: number[];
  edges: number[];
}

/** Returns the unconnected parts of the graph, the largest first. The nodes and edges of each part keep the given order. */
function partsOf(count: number, edges: readonly Edge[]): Part[] {
  const root = Int32Array.from({ length: count }, (_, index) => index);
  const find = (node: number): number => {
    let at = node;
    while (root[at] !== at) {
      root[at] = root[root[at]!]!;
      at = root[at]!;
    }
    return at;
  };
  for (const { from, to } of edges) root[find(from)] = find(to);
  const parts = new Map<number, Part>();
  for (let node = 0; node < count; node += 1) {
    const at = find(node);
    const part = parts.get(at);
    if (part) part.nodes.push(node);
    else parts.set(at, { nodes: [node], edges: [] });
  }
  edges.forEach(({ from }, index) => parts.get(find(from))!.edges.push(index));
  return [...parts.values()].sort((a, b) => b.nodes.length - a.nodes.length || a.nodes[0]! - b.nodes[0]!);
}

/** Returns the column of every node of a part: one more than the largest column of the nodes that feed it. Edges that close a cycle are ignored. */
export function columnsOf(count: number, edges: readonly Edge[]): Int32Array {
  const next: number[][] = Array.from({ length: count }, () => []);
  const waiting = new Int32Array(count);
  for (const { from, to } of edges) {
    next[from]!.push(to);
    waiting[to]! += 1;
  }
  const column = new Int32Array(count);
  const order: number[] = [];
  const done = new Uint8Array(count);
  const drain = (): void => {
    for (let at = order.length - queued; at < order.length; at += 1) {
      const node = order[at]!;
      for (const other of next[node]!) {
        if (done[other]) continue;
        column[other] = Math.max(column[other]!, column[node]! + 1);
        waiting[other]! -= 1;
        if (waiting[other] === 0) {
          done[other] = 1;
          order.push(other);
        }
      }
    }
    queued = 0;
  };
  let queued = 0;
  for (let node = 0; node < count; node += 1) {
    if (waiting[node] === 0 && !done[node]) {
      done[node] = 1;
      order.push(node);
      queued += 1;
    }
  }
  drain();
  // The remaining nodes are on a cycle or after one. The cycle is opened at its first node.
  for (let node = 0; node < count; node += 1) {
    if (done[node]) continue;
    done[node] = 1;
    order.push(node);
    queued = 1;
    drain();
  }
  // A node without input is in the column before the first node that it feeds.
  const fed = new Uint8Array(count);
  for (const { to } of edges) fed[to] = 1;
  for (let node = 0; node < count; node += 1) {
    if (fed[node] || next[node]!.length === 0) continue;
    let least = Number.MAX_SAFE_INTEGER;
    for (const other of next[node]!) least = Math.min(least, column[other]!);
    column[node] = Math.max(0, least - 1);
  }
  return column;
}

/** A part during its layout: its nodes, then the bends of its long edges. */
interface Grid {
  height: number[];
  column: number[];
  /** Neighbours of each node in the column to its left and in the column to its right. */
  before: number[][];
  behind: number[][];
  columns: number[][];
  y: Float64Array;
}

function gridOf(nodes: number, edges: readonly Edge[], column: Int32Array): { grid: Grid; chains: number[][] } {
  const grid: Grid = { height: Array<number>(nodes).fill(NODE_HEIGHT), column: Array.from(column), before: [], behind: [], columns: [], y: new Float64Array(0) };
  let bends = 0;
  for (const { from, to } of edges) bends += Math.max(0, column[to]! - column[from]! - 1);
  const bend = bends <= MOST_BENDS;
  const links: [number, number][] = [];
  const chains = edges.map(({ from, to }) => {
    const chain = [from];
    if (bend) {
      for (let at = column[from]! + 1; at < column[to]!; at += 1) {
        chain.push(grid.height.length);
        grid.height.push(BEND_HEIGHT);
        grid.column.push(at);
      }
    }
    chain.push(to);
    for (let index = 1; index < chain.length; index += 1) links.push([chain[index - 1]!, chain[index]!]);
    return chain;
  });
  const size = grid.height.length;
  grid.before = Array.from({ length: size }, () => []);
  grid.behind = Array.from({ length: size }, () => []);
  for (const [from, to] of links) {
    if (grid.column[from]! >= grid.column[to]!) continue;
    grid.behind[from]!.push(to);
    grid.before[to]!.push(from);
  }
  for (let node = 0; node < size; node += 1) (grid.columns[grid.column[node]!] ??= []).push(node);
  for (let at = 0; at < grid.columns.length; at += 1) grid.columns[at] ??= [];
  grid.y = new Float64Array(size);
  return { grid, chains };
}

/** Orders the nodes of each column by the mean position of their neighbours, in several sweeps back and forth. */
function order(grid: Grid): void {
  const place = new Float64Array(grid.height.length);
  const key = new Float64Array(grid.height.length);
  const number = (column: number[]): void => column.forEach((node, index) => (place[node] = index));
  grid.columns.forEach(number);
  const sort = (column: number[], neighbours: number[][]): void => {
    if (column.length < 2) return;
    for (const node of column) {
      const around = neighbours[node]!;
      let sum = 0;
      for (const other of around) sum += place[other]!;
      key[node] = around.length > 0 ? sum / around.length : place[node]!;
    }
    column.sort((a, b) => key[a]! - key[b]! || place[a]! - place[b]!);
    number(column);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    if (sweep % 2 === 0) for (let at = 1; at < grid.columns.length; at += 1) sort(grid.columns[at]!, grid.before);
    else for (let at = grid.columns.length - 2; at >= 0; at -= 1) sort(grid.columns[at]!, grid.behind);
  }
}

/** Moves the nodes of a column as near to their wanted positions as their order and heights allow (least squares). */
function settle(column: readonly number[], grid: Grid, wanted: (node: number) => number): void {
  if (column.length === 1) {
    grid.y[column[0]!] = wanted(column[0]!);
    return;
  }
  // The offset of a node is the height of the nodes above it. Nodes do not overlap if their positions minus their offsets ascend.
  // At first each node is a block. Blocks that would overlap are merged into one block.
  const starts: { sum: number; count: number; first: number }[] = [];
  const offset = new Float64Array(column.length);
  let down = 0;
  column.forEach((node, index) => {
    offset[index] = down;
    down += grid.height[node]! + ROW_GAP;
    let block = { sum: wanted(node) - offset[index]!, count: 1, first: index };
    for (let last = starts[starts.length - 1]; last && last.sum / last.count > block.sum / block.count; last = starts[starts.length - 1]) {
      starts.pop();
      block = { sum: last.sum + block.sum, count: last.count + block.count, first: last.first };
    }
    starts.push(block);
  });
  starts.forEach((block, index) => {
    const end = starts[index + 1]?.first ?? column.length;
    for (let at = block.first; at < end; at += 1) grid.y[column[at]!] = block.sum / block.count + offset[at]!;
  });
}

function rows(grid: Grid): void {
  const middle = (node: number): number => grid.y[node]! + grid.height[node]! / 2;
  for (const column of grid.columns) {
    let down = 0;
    for (const node of column) {
      grid.y[node] = down;
      down += grid.height[node]! + ROW_GAP;
    }
  }
  const towards = (...sides: number[][][]) => (node: number): number => {
    let sum = 0;
    let count = 0;
    for (const side of sides) {
      for (const other of side[node]!) {
        sum += middle(other);
        count += 1;
      }
    }
    return count > 0 ? sum / count - grid.height[node]! / 2 : grid.y[node]!;
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const forth = sweep % 2 === 0;
    const wanted = sweep >= SWEEPS - 2 ? towards(grid.before, grid.behind) : forth ? towards(grid.before) : towards(grid.behind);
    const columns = forth ? grid.columns : [...grid.columns].reverse();
    for (const column of columns) settle(column, grid, wanted);
  }
}

/** Returns the positions on the side of a node at which its edges begin or end, ordered by the position of the other end. */
function ports(edges: readonly Edge[], chains: readonly number[][], y: (node: number) => number, nodes: number): { out: Float64Array; into: Float64Array } {
  const out = new Float64Array(edges.length);
  const into = new Float64Array(edges.length);
  const spread = (groups: Map<number, number[]>, ports: Float64Array, towards: (edge: number) => number): void => {
    for (const [node, group] of groups) {
      group.sort((a, b) => towards(a) - towards(b) || a - b);
      // A small fan of edges uses only the middle of the side.
      const room = NODE_HEIGHT * Math.min(0.7, group.length * 0.12);
      group.forEach((edge, index) => {
        const share = group.length === 1 ? 0 : index / (group.length - 1) - 0.5;
        ports[edge] = y(node) + NODE_HEIGHT / 2 + share * room;
      });
    }
  };
  const from = new Map<number, number[]>();
  const to = new Map<number, number[]>();
  const push = (groups: Map<number, number[]>, node: number, edge: number): void => {
    const group = groups.get(node);
    if (group) group.push(edge);
    else groups.set(node, [edge]);
  };
  edges.forEach((edge, index) => {
    push(from, edge.from, index);
    push(to, edge.to, index);
  });
  const middle = (node: number): number => y(node) + (node < nodes ? NODE_HEIGHT : BEND_HEIGHT) / 2;
  spread(from, out, (edge) => middle(chains[edge]![1]!));
  spread(to, into, (edge) => middle(chains[edge]![chains[edge]!.length - 2]!));
  return { out, into };
}

/** Lays out a graph of `count` nodes. */
export function layout(count: number, edges: readonly Edge[]): Layout {
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const paths: Point[][] = edges.map(() => []);
  const columns: number[][] = [];
  let width = 0;
  let top = 0;
  const lone: number[] = [];
  for (const part of partsOf(count, edges)) {
    if (part.nodes.length === 1) {
      lone.push(part.nodes[0]!);
      continue;
    }
    const local = new Map(part.nodes.map((node, index) => [node, index]));
    const inner = part.edges.map((edge): Edge => ({ from: local.get(edges[edge]!.from)!, to: local.get(edges[edge]!.to)! }));
    const column = columnsOf(part.nodes.length, inner);
    const { grid, chains } = gridOf(part.nodes.length, inner, column);
    order(grid);
    rows(grid);
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    grid.y.forEach((value, node) => {
      least = Math.min(least, value);
      most = Math.max(most, value + grid.height[node]!);
    });
    const at = (node: number): number => grid.y[node]! - least + top;
    const left = (node: number): number => grid.column[node]! * (NODE_WIDTH + COLUMN_GAP);
    part.nodes.forEach((node, index) => {
      x[node] = left(index);
      y[node] = at(index);
      width = Math.max(width, x[node]! + NODE_WIDTH);
    });
    grid.columns.forEach((nodes, index) => {
      const here = (columns[index] ??= []);
      for (const node of nodes) if (node < part.nodes.length) here.push(part.nodes[node]!);
    });
    const { out, into } = ports(inner, chains, at, part.nodes.length);
    part.edges.forEach((edge, index) => {
      const chain = chains[index]!;
      const path: Point[] = [{ x: left(chain[0]!) + NODE_WIDTH, y: out[index]! }];
      for (const node of chain.slice(1, -1)) {
        const middle = at(node) + BEND_HEIGHT / 2;
        path.push({ x: left(node), y: middle }, { x: left(node) + NODE_WIDTH, y: middle });
      }
      path.push({ x: left(chain[chain.length - 1]!), y: into[index]! });
      paths[edge] = path;
    });
    top += most - least + PART_GAP;
  }
  // Unconnected nodes fill rows as wide as the connected nodes, or a square if there are none.
  if (lone.length > 0) {
    const step = NODE_WIDTH + ROW_GAP;
    const across = Math.max(1, Math.min(lone.length, Math.max(Math.floor((width + ROW_GAP) / step), Math.ceil(Math.sqrt(lone.length / 2)))));
    lone.forEach((node, index) => {
      x[node] = (index % across) * step;
      y[node] = top + Math.floor(index / across) * (NODE_HEIGHT + ROW_GAP);
      width = Math.max(width, x[node]! + NODE_WIDTH);
      (columns[index % across] ??= []).push(node);
    });
    top += Math.ceil(lone.length / across) * (NODE_HEIGHT + ROW_GAP) - ROW_GAP + PART_GAP;
  }
  for (let index = 0; index < columns.length; index += 1) columns[index] ??= [];
  return { x, y, paths, width, height: Math.max(0, top - PART_GAP), columns };
}

/** Returns the node nearest to `from` in a direction, for the arrow keys; -1 if there is none. */
export function neighbour(layout: Layout, from: number, direction: 'left' | 'right' | 'up' | 'down'): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  const horizontal = direction === 'left' || direction === 'right';
  const sign = direction === 'right' || direction === 'down' ? 1 : -1;
  for (let node = 0; node < layout.x.length; node += 1) {
    const across = layout.x[node]! - layout.x[from]!;
    const down = layout.y[node]! - layout.y[from]!;
    const along = (horizontal ? across : down) * sign;
    const aside = Math.abs(horizontal ? down : across);
    if (along < 1) continue;
    // A node straight ahead is better than a nearer node aside, so sideways distance costs three times as much.
    const cost = along + aside * 3;
    if (cost < least) {
      least = cost;
      best = node;
    }
  }
  return best;
}

/** Returns the node under a point, -1 for none. */
export function nodeAt(layout: Layout, x: number, y: number): number {
  for (let node = 0; node < layout.x.length; node += 1) {
    if (x >= layout.x[node]! && x < layout.x[node]! + NODE_WIDTH && y >= layout.y[node]! && y < layout.y[node]! + NODE_HEIGHT) return node;
  }
  return -1;
}
