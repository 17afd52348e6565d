// Builds a flame graph from the frames of another flame graph: each function appears once below the same callers. The result maps the nodes
// of the source to the built nodes, so that other values of the same frames can be added to the result.

import { emptyFlame, nameHashes, pathBelow, pathOfRoot, type Flame } from './layout.ts';

/** A built flame graph. `of` contains, for each source node, the built node to which its self value was added; -1 if it was omitted. */
export interface Made {
  flame: Flame;
  of: Int32Array;
}

/** Order of the callees of a node: `name` sorts by name as the server does, `largest` sorts by total, the largest first. */
export type Order = 'name' | 'largest';

export class Builder {
  count = 1;
  readonly name: Int32Array;
  readonly parent: Int32Array;
  /** 1 for a node that stands for frames that the server did not send, because they are too small. */
  readonly folded: Uint8Array;
  private readonly self: Float64Array;
  private readonly line: Float64Array;
  /** For each node, the value of the largest frame so far. The line of this frame is the line of the node. */
  private readonly weight: Float64Array;
  /** Open hash table of nodes by parent and name; 0 is an empty slot. */
  private readonly known: Int32Array;
  private readonly of: Int32Array;
  private readonly source: Flame;

  /** Creates a builder with room for `capacity` nodes, including the root. By default, the root has the name of the source's root. */
  constructor(source: Flame, capacity: number, root = source.name[0] ?? 0) {
    this.source = source;
    this.name = new Int32Array(capacity);
    this.parent = new Int32Array(capacity);
    this.folded = new Uint8Array(capacity);
    this.self = new Float64Array(capacity);
    this.line = new Float64Array(capacity);
    this.weight = new Float64Array(capacity);
    this.known = new Int32Array(2 ** Math.ceil(Math.log2(2 * capacity + 1)));
    this.of = new Int32Array(source.count).fill(-1);
    this.name[0] = root;
    this.parent[0] = -1;
  }

  /** Returns the node below `parent` for a frame of the source, and adds it if necessary; -1 if there is no room. */
  below(parent: number, frame: number): number {
    const name = this.source.name[frame]!;
    const last = this.known.length - 1;
    let slot = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(name, 0x85ebca6b)) >>> 0;
    slot = (slot ^ (slot >>> 15)) & last;
    let at = this.known[slot]!;
    while (at > 0 && (this.parent[at] !== parent || this.name[at] !== name)) {
      slot = (slot + 1) & last;
      at = this.known[slot]!;
    }
    if (at === 0) {
      if (this.count >= this.name.length) return -1;
      at = this.count;
      this.count += 1;
      this.known[slot] = at;
      this.name[at] = name;
      this.parent[at] = parent;
      this.folded[at] = this.source.folded[frame]!;
    }
    this.hear(at, frame);
    return at;
  }

  /** Sets the line of the node to the line of a frame, if this frame is the largest of the frames for which the node stands. */
  hear(at: number, frame: number): void {
    const weight = this.source.total[frame]!;
    if (weight <= this.weight[at]! || this.source.name[frame] !== this.name[at]) return;
    this.weight[at] = weight;
    this.line[at] = this.source.line[frame]!;
  }

  /** Adds the own value of a frame to a node. */
  give(at: number, frame: number, value = this.source.self[frame]!): void {
    this.self[at]! += value;
    this.of[frame] = at;
  }

  /** Returns the flame graph. Its shares refer to `sum`, by default the sum of the source. */
  finish(order: Order, sum = this.source.sum): Made {
    const { count, name, parent, source } = this;
    const total = this.self.slice(0, count);
    const level = new Int32Array(count);
    let depth = 0;
    for (let at = 1; at < count; at += 1) {
      level[at] = level[parent[at]!]! + 1;
      depth = Math.max(depth, level[at]!);
    }
    for (let at = count - 1; at > 0; at -= 1) total[parent[at]!]! += total[at]!;

    const flame = emptyFlame(source.names, source.files, source.mappings, count, depth + 1);
    const rank = order === 'name' ? namesInOrder(source) : null;
    const first = (one: number, two: number): number => (rank ? this.folded[one]! - this.folded[two]! || rank[name[one]!]! - rank[name[two]!]! : total[two]! - total[one]! || one - two);
    const inside = childrenOf(parent, count);
    const hashes = nameHashes(source.names, source.files);
    const place = new Int32Array(count);
    const put = (made: number, at: number, start: number, above: number): void => {
      place[at] = made;
      flame.start[made] = start;
      flame.total[made] = total[at]!;
      flame.self[made] = this.self[at]!;
      flame.name[made] = name[at]!;
      flame.parent[made] = above;
      flame.level[made] = level[at]!;
      flame.line[made] = this.line[at]!;
      flame.folded[made] = this.folded[at]!;
      flame.path[made] = above < 0 ? pathOfRoot(hashes[name[at]!]!) : pathBelow(flame.path[above]!, hashes[name[at]!]!);
    };
    put(0, 0, 0, -1);
    let here = [0];
    let made = 1;
    for (let deep = 1; deep <= depth; deep += 1) {
      flame.levelStart[deep] = made;
      const next: number[] = [];
      for (const at of here) {
        const begin = inside.start[at]!;
        const end = inside.start[at + 1]!;
        if (begin === end) continue;
        const children = inside.nodes.subarray(begin, end);
        if (children.length > 1) children.sort(first);
        let start = flame.start[place[at]!]! + flame.self[place[at]!]!;
        for (const child of children) {
          put(made, child, start, place[at]!);
          start += total[child]!;
          made += 1;
          next.push(child);
        }
      }
      here = next;
    }
    flame.levelStart[depth + 1] = made;
    flame.sum = sum;
    return { flame, of: this.of.map((at) => (at < 0 ? -1 : place[at]!)) };
  }
}

/** Returns the children of all nodes in one array: those of `node` are at `start[node]` to `start[node + 1]`. */
function childrenOf(parent: Int32Array, count: number): { start: Int32Array; nodes: Int32Array } {
  const start = new Int32Array(count + 1);
  for (let at = 1; at < count; at += 1) start[parent[at]! + 1]! += 1;
  for (let at = 0; at < count; at += 1) start[at + 1]! += start[at]!;
  const nodes = new Int32Array(Math.max(0, count - 1));
  const next = start.slice();
  for (let at = 1; at < count; at += 1) {
    nodes[next[parent[at]!]!] = at;
    next[parent[at]!]! += 1;
  }
  return { start, nodes };
}

/** Returns the rank of each name, sorted by name and file. */
function namesInOrder({ names, files }: Flame): Int32Array {
  const order = Int32Array.from(names, (_, index) => index);
  const compare = (one: string, two: string): number => (one < two ? -1 : one > two ? 1 : 0);
  order.sort((one, two) => compare(names[one]!, names[two]!) || compare(files[one] ?? '', files[two] ?? '') || one - two);
  const rank = new Int32Array(names.length);
  order.forEach((name, at) => { rank[name] = at; });
  return rank;
}
