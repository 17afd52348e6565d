// Puts the detailed response for one subtree into the whole graph. The frames that were folded there become visible, and all
// other frames stay unchanged.

import { emptyFlame, type Flame } from './layout.ts';

/** Returns the call site of a node for a request of its subtree: the names below the root, down to the node. */
export function callSite(flame: Flame, node: number): string[] {
  const names: string[] = [];
  for (let at = node; flame.parent[at]! >= 0; at = flame.parent[at]!) names.push(flame.names[flame.name[at]!]!);
  return names.reverse();
}

/**
 * Returns the whole graph with the subtree of `node` replaced by the subtree of `from` in `detail`. `from` is the index of the
 * same node in `detail`. `detail` contains only the stacks that pass through this node, with all their frames from the root on. If profiles
 * arrived between the two responses, the node is larger in `detail`. Then its callers grow, too, and the nodes to its right move.
 */
export function graft(whole: Flame, node: number, detail: Flame, from: number): Flame {
  const left = whole.start[node]!;
  const right = left + whole.total[node]!;
  const grown = detail.total[from]! - whole.total[node]!;
  const shift = left - detail.start[from]!;
  const callers = new Set<number>();
  for (let at = whole.parent[node]!; at >= 0; at = whole.parent[at]!) callers.add(at);

  const inWhole = (at: number): boolean => whole.level[at]! >= whole.level[node]! && whole.start[at]! >= left && whole.start[at]! + whole.total[at]! <= right;
  // A node without width at an edge of the subtree may be inside or outside of it, so its callers decide.
  const below = (flame: Flame, at: number, root: number): boolean => {
    let up = at;
    while (flame.level[up]! > flame.level[root]!) up = flame.parent[up]!;
    return up === root;
  };
  const kept: number[] = [];
  for (let at = 0; at < whole.count; at += 1) if (!(inWhole(at) && below(whole, at, node))) kept.push(at);
  const taken: number[] = [];
  for (let at = from; at < detail.count; at += 1) if (below(detail, at, from)) taken.push(at);

  const names = mergeNames(whole, detail);
  const depth = Math.max(whole.depth, detail.depth);
  const flame = emptyFlame(names.names, names.files, names.mappings, kept.length + taken.length, depth);
  flame.sum = whole.sum + grown;
  const placeInWhole = new Int32Array(whole.count).fill(-1);
  const placeInDetail = new Int32Array(detail.count).fill(-1);
  let next = 0;
  let nextKept = 0;
  let nextTaken = 0;
  for (let level = 0; level < depth; level += 1) {
    flame.levelStart[level] = next;
    const keptOfLevel: number[] = [];
    while (nextKept < kept.length && whole.level[kept[nextKept]!] === level) keptOfLevel.push(kept[nextKept++]!);
    const takenOfLevel: number[] = [];
    while (nextTaken < taken.length && detail.level[taken[nextTaken]!] === level) takenOfLevel.push(taken[nextTaken++]!);
    const put = (source: Flame, at: number, start: number, total: number, name: number, parent: number): void => {
      flame.start[next] = start;
      flame.total[next] = total;
      flame.self[next] = source.self[at]!;
      flame.name[next] = name;
      flame.parent[next] = parent;
      flame.level[next] = level;
      flame.path[next] = source.path[at]!;
      flame.line[next] = source.line[at]!;
      flame.folded[next] = source.folded[at]!;
      next += 1;
    };
    const putKept = (at: number): void => {
      placeInWhole[at] = next;
      const parent = whole.parent[at]!;
      put(whole, at, whole.start[at]! + (whole.start[at]! >= right && !callers.has(at) ? grown : 0), whole.total[at]! + (callers.has(at) ? grown : 0), whole.name[at]!, parent < 0 ? -1 : placeInWhole[parent]!);
    };
    const putTaken = (at: number): void => {
      placeInDetail[at] = next;
      const parent = at === from ? placeInWhole[whole.parent[node]!] ?? -1 : placeInDetail[detail.parent[at]!]!;
      put(detail, at, detail.start[at]! + shift, detail.total[at]!, names.of[detail.name[at]!]!, parent);
    };
    for (const at of keptOfLevel) if (whole.start[at]! < left || callers.has(at)) putKept(at);
    for (const at of takenOfLevel) putTaken(at);
    for (const at of keptOfLevel) if (!(whole.start[at]! < left || callers.has(at))) putKept(at);
  }
  flame.levelStart[depth] = next;
  return flame;
}

/** Returns the names of the whole graph and of the detail. `of` maps the indices of names in the detail to indices in the result. */
function mergeNames(whole: Flame, detail: Flame): { names: string[]; files: string[]; mappings: string[]; of: Int32Array } {
  const key = (flame: Flame, index: number): string => `${flame.names[index]}\n${flame.files[index] ?? ''}\n${flame.mappings[index] ?? ''}`;
  const names = [...whole.names];
  const files = names.map((_, index) => whole.files[index] ?? '');
  const mappings = names.map((_, index) => whole.mappings[index] ?? '');
  const known = new Map(names.map((_, index) => [key(whole, index), index]));
  const of = Int32Array.from(detail.names, (name, index) => {
    const found = known.get(key(detail, index));
    if (found !== undefined) return found;
    files.push(detail.files[index] ?? '');
    mappings.push(detail.mappings[index] ?? '');
    return names.push(name) - 1;
  });
  return { names, files, mappings, of };
}
