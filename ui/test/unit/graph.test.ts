import { describe, expect, it } from 'vitest';
import { callGraph } from '../../src/flame/call-graph.ts';
import { placeGraph, type Box, type Line } from '../../src/flame/graph-layout.ts';
import { INK } from '../../src/flame/colours.ts';
import { graphSvg } from '../../src/flame/graph-svg.ts';
import { layout } from '../../src/flame/layout.ts';
import { flameOf } from './stacks.ts';

const callsOf = (text: string, most = 80) => {
  const flame = flameOf(text);
  const graph = callGraph(flame, most);
  const name = (node: number): string => flame.names[graph.nodes[node]!.name]!;
  return {
    nodes: graph.nodes.map((node, at) => `${name(at)} ${node.self} ${node.total}${node.recursive ? ' again' : ''}`).sort(),
    calls: graph.calls.map(({ from, to, value, over }) => `${name(from)} ${over ? '..' : '->'} ${name(to)} ${value}`).sort(),
    without: graph.without,
  };
};

describe('a call graph', () => {
  it('has functions and calls with their values, each once', () => {
    expect(callsOf('main;a;x 5\nmain;b;x 7\nmain;b 1')).toEqual({
      nodes: ['a 0 5', 'b 1 8', 'main 0 13', 'x 12 12'],
      calls: ['a -> x 5', 'b -> x 7', 'main -> a 5', 'main -> b 8'],
      without: { nodes: 0, calls: 0 },
    });
  });

  it('counts a stack only once for a call that occurs in it twice, and marks a function that calls itself', () => {
    const { nodes, calls } = callsOf('a;b;a;b 6\nc;c;d 4');
    expect(nodes).toEqual(['a 0 6', 'b 6 6', 'c 0 4 again', 'd 4 4']);
    expect(calls).toEqual(['a -> b 6', 'b -> a 6', 'c -> d 4']);
  });

  it('omits and counts small functions, and connects the remaining functions', () => {
    const { nodes, calls, without } = callsOf('main;tiny 1\nmain;big 1000\nmain;way;leaf 400\nleaf 300', 3);
    expect(nodes).toEqual(['big 1000 1000', 'leaf 700 700', 'main 0 1401']);
    expect(calls).toEqual(['main -> big 1000', 'main .. leaf 400']);
    expect(without).toEqual({ nodes: 2, calls: 0 });
  });

  it('has no call through omitted functions if another path leads to the same function', () => {
    // `w` is too small to be kept; main reaches leaf through mid, too.
    const { calls, without } = callsOf('main;mid;leaf 600\nmain;w;leaf 300\nmain 200', 3);
    expect(calls).toEqual(['main -> mid 600', 'mid -> leaf 600']);
    expect(without).toEqual({ nodes: 1, calls: 1 });
  });

  it('ignores frames that stand for folded frames', () => {
    const flame = layout({ names: ['total', 'a', 'other'], levels: [{ values: [0, 10, 0, 0] }, { values: [0, 10, 4, 1] }, { values: [4, 6, 6, 2] }], lines: [{ values: [0] }, { values: [0] }, { values: [-1] }] });
    expect(callGraph(flame, 80).nodes).toEqual([{ name: 1, self: 4, total: 10, recursive: false }]);
  });

  it('of an empty graph is empty', () => {
    expect(callGraph(layout({ names: [], levels: [] }), 80)).toEqual({ nodes: [], calls: [], without: { nodes: 0, calls: 0 } });
  });
});

describe('the places of a call graph', () => {
  const boxes = (count: number): Box[] => Array.from({ length: count }, (_, at) => ({ width: 60 + (at % 5) * 30, height: 30 + (at % 3) * 10 }));
  const overlaps = (all: readonly Box[], lines: readonly Line[]): string[] => {
    const { x, y } = placeGraph(all, lines);
    const found: string[] = [];
    for (let one = 0; one < all.length; one += 1) {
      for (let two = 0; two < one; two += 1) {
        const apart = x[one]! + all[one]!.width <= x[two]! || x[two]! + all[two]!.width <= x[one]! || y[one]! + all[one]!.height <= y[two]! || y[two]! + all[two]!.height <= y[one]!;
        if (!apart) found.push(`${one} on ${two}`);
      }
    }
    return found;
  };

  it('have callers above, and no overlapping boxes', () => {
    const lines = [{ from: 0, to: 1 }, { from: 0, to: 2 }, { from: 1, to: 3 }, { from: 2, to: 3 }, { from: 0, to: 3 }];
    const { y, paths, rows } = placeGraph(boxes(4), lines);
    expect(rows).toEqual([[0], [1, 2], [3]]);
    for (const { from, to } of lines) expect(y[from]! + boxes(4)[from]!.height).toBeLessThan(y[to]!);
    paths.forEach((path, line) => {
      expect(path[0]!.y).toBe(y[lines[line]!.from]! + boxes(4)[lines[line]!.from]!.height);
      expect(path.at(-1)!.y).toBe(y[lines[line]!.to]);
    });
    expect(paths[4]!.length).toBe(4);
    expect(overlaps(boxes(4), lines)).toEqual([]);
  });

  it('survive cycles: the call that closes a cycle runs upwards', () => {
    const lines = [{ from: 0, to: 1 }, { from: 1, to: 2 }, { from: 2, to: 0 }, { from: 2, to: 1 }];
    const { y, paths } = placeGraph(boxes(3), lines);
    expect([...y].every((at, index) => index === 0 || at > y[index - 1]!)).toBe(true);
    expect(paths[2]![0]!.y).toBeGreaterThan(paths[2]!.at(-1)!.y);
    expect(overlaps(boxes(3), lines)).toEqual([]);
  });

  it('keep boxes apart in a graph with many calls', () => {
    let state = 7;
    const random = (below: number): number => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const lines = Array.from({ length: 400 }, () => ({ from: random(120), to: random(120) })).filter(({ from, to }) => from !== to);
    expect(overlaps(boxes(120), lines)).toEqual([]);
    const { width, height, paths, rows } = placeGraph(boxes(120), lines);
    expect(rows.flat().sort((one, two) => one - two)).toEqual(Array.from({ length: 120 }, (_, at) => at));
    for (const point of paths.flat()) expect(point.y >= 0 && point.y <= height && Number.isFinite(point.x) && width > 0).toBe(true);
  });

  it('exist for no boxes and for one box', () => {
    expect(placeGraph([], [])).toMatchObject({ width: 0, height: 0, rows: [] });
    expect(placeGraph(boxes(1), [])).toMatchObject({ width: 60, height: 30, rows: [[0]] });
  });
});

describe('the SVG of a call graph', () => {
  it('has every box and line, and names as text', () => {
    const flame = flameOf('main;<img src=x onerror=1> 5\nmain;b 7');
    const graph = callGraph(flame, 80);
    const boxes = graph.nodes.map(({ name }) => ({ name: flame.names[name]!, full: flame.names[name]!, size: 12, width: 100, height: 50 }));
    const places = placeGraph(boxes, graph.calls);
    const text = graphSvg({ graph, places, boxes, sum: flame.sum, colour: () => '#fff', ink: INK.light, title: 'a < b', amount: String, share: (share) => `${share * 100}%` });
    expect(text).toMatch(/^<svg [^]*<\/svg>\n$/);
    expect(text.match(/<rect /g)).toHaveLength(4);
    expect(text.match(/stroke-width=/g)).toHaveLength(2);
    expect(text).not.toContain('<img');
    expect(text).not.toContain('NaN');
    expect(text).toContain('a &#60; b');
  });
});
