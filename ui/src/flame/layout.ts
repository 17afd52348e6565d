// A flame graph in typed arrays: Pyroscope's levels (groups of four, x delta-coded) become columns with one entry for each
// node, level by level and sorted by position. Parents and path hashes are computed once here; drawing only reads.

import type { FlameGraphMessage } from '../lib/api.ts';

export interface Flame {
  names: string[];
  /** File of each name, in the order of `names`; empty if the server sends none. */
  files: string[];
  mappings: string[];
  count: number;
  /** Index of the first node of each level, and the end after the last: levels + 1 entries. */
  levelStart: Int32Array;
  depth: number;
  /** Left edge of a node, in the unit of `total`. */
  start: Float64Array;
  total: Float64Array;
  self: Float64Array;
  name: Int32Array;
  /** -1 at the root. */
  parent: Int32Array;
  level: Int32Array;
  /** Hash of the path: a frame below the same callers has the same hash in every response. */
  path: Uint32Array;
  /** Line with the largest value, 0 if not known. */
  line: Float64Array;
  /** 1 for a node that stands for frames that the server did not send, because they are too small. */
  folded: Uint8Array;
  sum: number;
  /** Start of the layout by the clock of the page; the time until the first draw is measured from here. */
  born: number;
}

export function fnv1a32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x80) {
      hash = Math.imul(hash ^ code, 0x01000193);
    } else {
      // Beyond ASCII, the hash covers the UTF-8 bytes.
      for (const byte of new TextEncoder().encode(text.slice(index))) hash = Math.imul(hash ^ byte, 0x01000193);
      return hash >>> 0;
    }
  }
  return hash >>> 0;
}

/** Returns a flame graph with `count` nodes, all zero. */
export function emptyFlame(names: string[], files: string[], mappings: string[], count: number, depth: number): Flame {
  return {
    names,
    files,
    mappings,
    count,
    levelStart: new Int32Array(depth + 1),
    depth,
    start: new Float64Array(count),
    total: new Float64Array(count),
    self: new Float64Array(count),
    name: new Int32Array(count),
    parent: new Int32Array(count),
    level: new Int32Array(count),
    path: new Uint32Array(count),
    line: new Float64Array(count),
    folded: new Uint8Array(count),
    sum: 0,
    born: performance.now(),
  };
}

/** Returns the hash of each name. If the server sends files, functions with the same name in several files are different functions. */
export const nameHashes = (names: readonly string[], files: readonly string[]): Uint32Array => Uint32Array.from(names, (name, index) => fnv1a32(files[index] ? `${name}\n${files[index]}` : name));

/** Returns the path hash of a frame: `above` is the path hash of its caller, `hash` the hash of its name. `pathOfRoot` is the path hash of the root. */
export const pathBelow = (above: number, hash: number): number => Math.imul(Math.imul(above ^ hash, 0x01000193) ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
export const pathOfRoot = (hash: number): number => pathBelow(0x811c9dc5, hash);

/** Reads the wire format. Invalid input results in a smaller graph, never in an exception. */
export function layout(message: FlameGraphMessage): Flame {
  const levels = (message.levels ?? []).map(({ values }) => values ?? []);
  let count = 0;
  for (const values of levels) count += Math.floor(values.length / 4);
  const names = message.names ?? [];
  const flame = emptyFlame(names, message.files ?? [], message.mappings ?? [], count, levels.length);
  const hashes = nameHashes(names, flame.files);

  // A line of -1 marks a folded node. If a server does not send this mark, its folded nodes have the name `other` and no file or binary.
  const marks = message.lines?.some(({ values }) => values?.some((line) => Number(line) < 0)) ?? false;
  const folds = (name: number): boolean => names[name] === 'other' && !flame.files[name] && !flame.mappings[name];

  let node = 0;
  for (let depth = 0; depth < levels.length; depth += 1) {
    const values = levels[depth]!;
    const lines = message.lines?.[depth]?.values;
    flame.levelStart[depth] = node;
    let above = depth === 0 ? -1 : flame.levelStart[depth - 1]!;
    const aboveEnd = flame.levelStart[depth]!;
    let x = 0;
    for (let group = 0; group + 3 < values.length; group += 4) {
      x += Number(values[group]) || 0;
      const total = Math.max(0, Number(values[group + 1]) || 0);
      const name = Number(values[group + 3]) || 0;
      while (depth > 0 && above + 1 < aboveEnd && flame.start[above]! + flame.total[above]! <= x) above += 1;
      flame.start[node] = x;
      flame.total[node] = total;
      flame.self[node] = Number(values[group + 2]) || 0;
      flame.name[node] = name >= 0 && name < names.length ? name : 0;
      flame.parent[node] = above;
      flame.level[node] = depth;
      const line = lines ? Number(lines[group / 4]) || 0 : 0;
      flame.line[node] = Math.max(0, line);
      flame.folded[node] = Number(marks ? line < 0 : depth > 0 && folds(name) && Number(values[group + 2]) === total);
      const hash = hashes[flame.name[node]!] ?? 0;
      flame.path[node] = above < 0 ? pathOfRoot(hash) : pathBelow(flame.path[above]!, hash);
      x += total;
      node += 1;
    }
  }
  flame.levelStart[levels.length] = node;
  flame.sum = flame.count > 0 && flame.levelStart[1] === 1 ? flame.total[0]! : Number(message.total) || 0;
  return flame;
}

/** Returns the path of a frame as text for the URL. */
export const pathText = (flame: Flame, node: number): string => flame.path[node]!.toString(36);

/** Returns the frame for a path of the URL, the root for an empty text; -1 if there is none. */
export const findPath = (flame: Flame, text: string): number => (text === '' ? 0 : flame.path.indexOf(parseInt(text, 36)));

/** Returns the first node of a level that ends after `x`; the end of the level if there is none. */
export function firstEndingAfter(flame: Flame, level: number, x: number): number {
  let low = flame.levelStart[level]!;
  let high = flame.levelStart[level + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (flame.start[middle]! + flame.total[middle]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the node of a level at `x`, or -1. */
export function nodeAt(flame: Flame, level: number, x: number): number {
  if (level < 0 || level >= flame.depth) return -1;
  const node = firstEndingAfter(flame, level, x);
  return node < flame.levelStart[level + 1]! && flame.start[node]! <= x ? node : -1;
}

/** Returns the nodes from the root down to the node itself. */
export function ancestors(flame: Flame, node: number): number[] {
  const chain: number[] = [];
  for (let at = node; at >= 0; at = flame.parent[at]!) chain.push(at);
  return chain.reverse();
}

/** Returns the children of a node as a range of indices. */
export function children(flame: Flame, node: number): [number, number] {
  const level = flame.level[node]! + 1;
  if (level >= flame.depth) return [0, 0];
  const from = firstEndingAfter(flame, level, flame.start[node]!);
  let to = from;
  const end = flame.levelStart[level + 1]!;
  while (to < end && flame.parent[to] === node) to += 1;
  return [from, to];
}

/** Returns the first child of each node; its other children follow it. For a node without children, the value is the number of nodes. */
export function firstChildren(flame: Flame): Int32Array {
  const first = new Int32Array(flame.count).fill(flame.count);
  for (let node = flame.count - 1; node >= 0; node -= 1) if (flame.parent[node]! >= 0) first[flame.parent[node]!] = node;
  return first;
}

/** Returns the widest node of a name, -1 if there is none. */
export function widest(flame: Flame, name: number): number {
  let best = -1;
  for (let node = 0; node < flame.count; node += 1) if (flame.name[node] === name && (best < 0 || flame.total[node]! > flame.total[best]!)) best = node;
  return best;
}

/** Returns the share of a node that is in folded frames. */
export function foldedShare(flame: Flame, node: number): number {
  const total = flame.total[node] ?? 0;
  if (total <= 0) return 0;
  const from = flame.start[node]!;
  let sum = 0;
  for (let at = node + 1; at < flame.count; at += 1) {
    if (flame.folded[at] && flame.start[at]! >= from && flame.start[at]! < from + total) sum += flame.total[at]!;
  }
  return sum / total;
}
