// Places the boxes of a call graph in rows, callers above, so that few calls cross and most are short. Cycles are allowed:
// a call that closes a cycle runs upwards.
//
// The row of a box is the length of the longest path from the top to the box; a box without callers is right above its highest callee.
// Bends of long calls become boxes without width. Sweeps, downwards and upwards in turn, order the boxes of each row by the mean position
// of their neighbours. Each box is placed near the mean position of its neighbours, and boxes that would overlap are moved apart.

export interface Box {
  width: number;
  height: number;
}

export interface Line {
  from: number;
  to: number;
}

export interface Point {
  x: number;
  y: number;
}

export interface GraphPlaces {
  /** Upper left corner of every box. */
  x: Float64Array;
  y: Float64Array;
  /** Points of every call, from the caller's box to the callee's. */
  paths: Point[][];
  /** The boxes of each row, from left to right. */
  rows: number[][];
  width: number;
  height: number;
}

const GAP = 20;
const BEND_GAP = 10;
const ROW_GAP = 56;
const SWEEPS = 8;
/** Maximum number of bends. A graph that would need more is drawn without bends, which only improve its look. */
const MOST_BENDS = 4000;

interface Grid {
  /** Widths of the boxes, then of the bends. */
  width: number[];
  row: number[];
  above: number[][];
  below: number[][];
  rows: number[][];
  x: Float64Array;
}

export function placeGraph(boxes: readonly Box[], lines: readonly Line[]): GraphPlaces {
  const down = downwards(boxes.length, lines);
  const row = rowsOf(boxes.length, down);
  const { grid, chains } = gridOf(boxes, down, row);
  order(grid);
  spread(grid);
  const least = grid.x.reduce((min, x) => Math.min(min, x), Number.POSITIVE_INFINITY);
  const left = (at: number): number => grid.x[at]! - (Number.isFinite(least) ? least : 0);

  const heights = grid.rows.map((members) => members.reduce((most, at) => Math.max(most, boxes[at]?.height ?? 0), 0));
  const top: number[] = [];
  heights.reduce((sum, height, at) => {
    top[at] = sum;
    return sum + height + ROW_GAP;
  }, 0);
  const x = Float64Array.from(boxes, (_, at) => left(at));
  const y = Float64Array.from(boxes, (box, at) => top[row[at]!]! + (heights[row[at]!]! - box.height) / 2);
  const middle = (at: number): number => left(at) + grid.width[at]! / 2;
  const [out, into] = ports(down, chains, middle, grid.width);
  const paths = down.map((line, index) => {
    const chain = chains[index]!;
    const points: Point[] = [{ x: out[index]!, y: y[line.from]! + boxes[line.from]!.height }];
    for (const bend of chain.slice(1, -1)) {
      const at = grid.row[bend]!;
      points.push({ x: middle(bend), y: top[at]! }, { x: middle(bend), y: top[at]! + heights[at]! });
    }
    points.push({ x: into[index]!, y: y[line.to]! });
    return line.turned ? points.reverse() : points;
  });
  return {
    x,
    y,
    paths,
    rows: grid.rows.map((members) => members.filter((at) => at < boxes.length)),
    width: boxes.reduce((most, box, at) => Math.max(most, x[at]! + box.width), 0),
    height: boxes.reduce((most, box, at) => Math.max(most, y[at]! + box.height), 0),
  };
}

type Downward = Line & { turned: boolean };

/** Returns the calls without cycles: a call that would close a cycle is reversed. */
function downwards(count: number, lines: readonly Line[]): Downward[] {
  const next: number[][] = Array.from({ length: count }, () => []);
  const called = new Uint8Array(count);
  lines.forEach(({ from, to }, index) => {
    next[from]!.push(index);
    called[to] = 1;
  });
  const turned = new Uint8Array(lines.length);
  /** 1 while a node is being visited, 2 when it is done. */
  const state = new Uint8Array(count);
  const visit = (first: number): void => {
    const open = [{ node: first, at: 0 }];
    state[first] = 1;
    while (open.length > 0) {
      const now = open[open.length - 1]!;
      const index = next[now.node]![now.at];
      now.at += 1;
      if (index === undefined) {
        state[now.node] = 2;
        open.pop();
        continue;
      }
      const { to } = lines[index]!;
      if (state[to] === 1) turned[index] = 1;
      else if (state[to] === 0) {
        state[to] = 1;
        open.push({ node: to, at: 0 });
      }
    }
  };
  for (let node = 0; node < count; node += 1) if (!called[node] && state[node] === 0) visit(node);
  for (let node = 0; node < count; node += 1) if (state[node] === 0) visit(node);
  return lines.map(({ from, to }, index) => (turned[index] ? { from: to, to: from, turned: true } : { from, to, turned: false }));
}

/** Returns the row of every box: one below its lowest caller. A box without callers is right above its highest callee. */
function rowsOf(count: number, lines: readonly Downward[]): Int32Array {
  const next: number[][] = Array.from({ length: count }, () => []);
  const waiting = new Int32Array(count);
  for (const { from, to } of lines) {
    next[from]!.push(to);
    waiting[to]! += 1;
  }
  const row = new Int32Array(count);
  const first = Array.from({ length: count }, (_, node) => node).filter((node) => waiting[node] === 0);
  const open = [...first];
  for (let at = 0; at < open.length; at += 1) {
    const node = open[at]!;
    for (const to of next[node]!) {
      row[to] = Math.max(row[to]!, row[node]! + 1);
      waiting[to]! -= 1;
      if (waiting[to] === 0) open.push(to);
    }
  }
  for (const node of first) {
    const least = next[node]!.reduce((min, to) => Math.min(min, row[to]!), Number.POSITIVE_INFINITY);
    if (Number.isFinite(least)) row[node] = least - 1;
  }
  return row;
}

function gridOf(boxes: readonly Box[], lines: readonly Downward[], row: Int32Array): { grid: Grid; chains: number[][] } {
  const grid: Grid = { width: boxes.map(({ width }) => width), row: [...row], above: [], below: [], rows: [], x: new Float64Array() };
  const bends = lines.reduce((sum, { from, to }) => sum + Math.max(0, row[to]! - row[from]! - 1), 0);
  const chains = lines.map(({ from, to }) => {
    const chain = [from];
    for (let at = row[from]! + 1; bends <= MOST_BENDS && at < row[to]!; at += 1) {
      chain.push(grid.width.length);
      grid.width.push(0);
      grid.row.push(at);
    }
    chain.push(to);
    return chain;
  });
  grid.above = grid.width.map(() => []);
  grid.below = grid.width.map(() => []);
  for (const chain of chains) {
    for (let at = 1; at < chain.length; at += 1) {
      grid.below[chain[at - 1]!]!.push(chain[at]!);
      grid.above[chain[at]!]!.push(chain[at - 1]!);
    }
  }
  const depth = grid.row.reduce((most, at) => Math.max(most, at + 1), 0);
  grid.rows = Array.from({ length: depth }, () => []);
  grid.row.forEach((at, node) => grid.rows[at]!.push(node));
  grid.x = new Float64Array(grid.width.length);
  return { grid, chains };
}

function order(grid: Grid): void {
  const place = new Float64Array(grid.width.length);
  const key = new Float64Array(grid.width.length);
  const number = (members: number[]): void => members.forEach((node, index) => { place[node] = index; });
  grid.rows.forEach(number);
  const sort = (members: number[], neighbours: number[][]): void => {
    for (const node of members) {
      const around = neighbours[node]!;
      key[node] = around.length === 0 ? place[node]! : around.reduce((sum, other) => sum + place[other]!, 0) / around.length;
    }
    members.sort((one, two) => key[one]! - key[two]! || place[one]! - place[two]!);
    number(members);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    if (sweep % 2 === 0) for (const members of grid.rows.slice(1)) sort(members, grid.above);
    else for (const members of grid.rows.slice(0, -1).reverse()) sort(members, grid.below);
  }
}

/** Moves the boxes of each row as close to the middle of their neighbours as their order and widths allow. */
function spread(grid: Grid): void {
  const gap = (one: number, two: number): number => (grid.width[one] === 0 && grid.width[two] === 0 ? BEND_GAP : GAP);
  const middle = (node: number): number => grid.x[node]! + grid.width[node]! / 2;
  for (const members of grid.rows) settle(members, grid, gap, (node) => -grid.width[node]! / 2);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const sides = sweep >= SWEEPS - 2 ? [grid.above, grid.below] : [sweep % 2 === 0 ? grid.above : grid.below];
    const wanted = (node: number): number => {
      const around = sides.flatMap((side) => side[node]!);
      return around.length === 0 ? grid.x[node]! : around.reduce((sum, other) => sum + middle(other), 0) / around.length - grid.width[node]! / 2;
    };
    for (const members of sweep % 2 === 0 ? grid.rows : [...grid.rows].reverse()) settle(members, grid, gap, wanted);
  }
}

/** Places a row by least squares. The offset of a box is the room that the boxes before it need. Boxes do not overlap if the difference between position and offset never decreases from left to right. Boxes that would overlap become one block, in which this difference is the same for all boxes. */
function settle(members: readonly number[], grid: Grid, gap: (one: number, two: number) => number, wanted: (node: number) => number): void {
  const offset = new Float64Array(members.length);
  const blocks: { sum: number; count: number; first: number }[] = [];
  members.forEach((node, index) => {
    const before = members[index - 1];
    if (before !== undefined) offset[index] = offset[index - 1]! + grid.width[before]! + gap(before, node);
    let block = { sum: wanted(node) - offset[index]!, count: 1, first: index };
    for (let last = blocks.at(-1); last && last.sum / last.count > block.sum / block.count; last = blocks.at(-1)) {
      blocks.pop();
      block = { sum: last.sum + block.sum, count: last.count + block.count, first: last.first };
    }
    blocks.push(block);
  });
  blocks.forEach((block, index) => {
    const end = blocks[index + 1]?.first ?? members.length;
    for (let at = block.first; at < end; at += 1) grid.x[members[at]!] = block.sum / block.count + offset[at]!;
  });
}

/** Returns the points at which calls leave and reach their boxes, spread over the width of the box in the order of their other ends. */
function ports(lines: readonly Downward[], chains: readonly number[][], middle: (node: number) => number, width: readonly number[]): [Float64Array, Float64Array] {
  const side = (end: 'from' | 'to', other: (chain: number[]) => number): Float64Array => {
    const places = new Float64Array(lines.length);
    const groups = new Map<number, number[]>();
    lines.forEach((line, index) => groups.set(line[end], [...(groups.get(line[end]) ?? []), index]));
    for (const [node, group] of groups) {
      group.sort((one, two) => middle(other(chains[one]!)) - middle(other(chains[two]!)) || one - two);
      const room = width[node]! * Math.min(0.8, group.length * 0.1);
      group.forEach((line, index) => { places[line] = middle(node) + room * ((index + 0.5) / group.length - 0.5); });
    }
    return places;
  };
  return [side('from', (chain) => chain[1]!), side('to', (chain) => chain.at(-2)!)];
}
