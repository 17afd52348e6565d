// Flame graphs as text, for tests.

import { layout, type Flame } from '../../src/flame/layout.ts';

/** Returns a flame graph of stacks such as `a;b;c 3`, with callees sorted by name as the server does. */
export function flameOf(text: string): Flame {
  interface Node { name: string; self: number; children: Map<string, Node> }
  const make = (name: string): Node => ({ name, self: 0, children: new Map() });
  const root = make('total');
  for (const line of text.trim().split('\n')) {
    const [, stack, value] = /^\s*(.*) (\d+)\s*$/.exec(line)!;
    let at = root;
    for (const name of stack!.split(';')) {
      if (!at.children.has(name)) at.children.set(name, make(name));
      at = at.children.get(name)!;
    }
    at.self += Number(value);
  }
  const total = (node: Node): number => [...node.children.values()].reduce((sum, child) => sum + total(child), node.self);
  const names = ['total'];
  const levels: { values: number[] }[] = [];
  let row = [{ node: root, x: 0 }];
  while (row.length > 0) {
    const values: number[] = [];
    const next: typeof row = [];
    let end = 0;
    for (const { node, x } of row) {
      if (!names.includes(node.name)) names.push(node.name);
      values.push(x - end, total(node), node.self, names.indexOf(node.name));
      end = x + total(node);
      let inner = x + node.self;
      for (const child of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
        next.push({ node: child, x: inner });
        inner += total(child);
      }
    }
    levels.push({ values });
    row = next;
  }
  return layout({ names, levels });
}

/** Returns the stacks whose own value is not 0, as sorted texts. */
export function stacksOf(flame: Flame): string[] {
  const out: string[] = [];
  for (let node = 0; node < flame.count; node += 1) {
    if (flame.self[node] === 0) continue;
    const stack: string[] = [];
    for (let at = node; flame.parent[at]! >= 0; at = flame.parent[at]!) stack.push(flame.names[flame.name[at]!]!);
    out.push(`${stack.reverse().join(';')} ${flame.self[node]}`);
  }
  return out.sort();
}
