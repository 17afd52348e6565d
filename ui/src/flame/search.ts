// The search in a flame graph: text (case-insensitive), /regular expression/ or =whole name. It finds the matching names, and the
// matching frames that are not below other matches. It sorts these frames by value, the largest first, and adds up their values.

import type { Flame } from './layout.ts';

export interface Found {
  /** 1 for each name that matches. */
  names: Uint8Array;
  /** Matching nodes that are not below other matches, the largest first. */
  nodes: number[];
  sum: number;
  /** Number of different names that match. */
  distinct: number;
}

export class SearchError extends Error {}

/** Compiles a search text; null for an empty search. */
export function compileSearch(text: string): ((name: string) => boolean) | null {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '/') return null;
  const regex = /^\/(.+)\/([imsu]*)$/.exec(trimmed);
  if (regex) {
    let pattern: RegExp;
    try {
      pattern = new RegExp(regex[1]!, regex[2] || 'i');
    } catch (error) {
      throw new SearchError(error instanceof Error ? error.message.replace(/^Invalid regular expression: /, '') : 'invalid regular expression');
    }
    return (name) => pattern.test(name);
  }
  if (trimmed.length > 1 && trimmed.startsWith('=')) return (name) => name.trim() === trimmed.slice(1).trim();
  const wanted = trimmed.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}

export function searchFlame(flame: Flame, matches: (name: string) => boolean): Found {
  const names = new Uint8Array(flame.names.length);
  let distinct = 0;
  for (let index = 0; index < names.length; index += 1) {
    if (matches(flame.names[index]!)) {
      names[index] = 1;
      distinct += 1;
    }
  }
  // The synthetic root is not a function.
  if (flame.count > 0 && flame.names[flame.name[0]!] === 'total' && names[flame.name[0]!]) {
    names[flame.name[0]!] = 0;
    distinct -= 1;
  }
  const covered = new Uint8Array(flame.count);
  const nodes: number[] = [];
  let sum = 0;
  for (let node = 0; node < flame.count; node += 1) {
    const parent = flame.parent[node]!;
    if (parent >= 0 && covered[parent]) {
      covered[node] = 1;
    } else if (names[flame.name[node]!]) {
      covered[node] = 1;
      nodes.push(node);
      sum += flame.total[node]!;
    }
  }
  nodes.sort((a, b) => flame.total[b]! - flame.total[a]! || a - b);
  return { names, nodes, sum, distinct };
}

/** Returns the match after `node` if `by` is 1, or before it if `by` is -1, and wraps around at the ends. If `node` is no match, returns the first or last match. */
export function stepThrough(nodes: readonly number[], node: number, by: 1 | -1): number {
  const at = nodes.indexOf(node);
  const next = at < 0 ? (by > 0 ? 0 : nodes.length - 1) : (at + by + nodes.length) % nodes.length;
  return nodes[next] ?? -1;
}
