import { describe, expect, it } from 'vitest';
import { contrast, INK } from '../../src/flame/colours.ts';
import { callSite, graft } from '../../src/flame/graft.ts';
import { ancestors, children, findPath, fnv1a32, foldedShare, layout, nodeAt, pathText } from '../../src/flame/layout.ts';
import { compileSearch, searchFlame, SearchError, stepThrough } from '../../src/flame/search.ts';
import { sortRows, topRows } from '../../src/flame/top.ts';

// total(100) -> main(90) -> a(50) -> main(20)
//                        -> b(30)
//            -> gc(10)
const message = {
  names: ['total', 'main', 'gc', 'a', 'b'],
  levels: [
    { values: ['0', '100', '0', '0'] },
    { values: ['0', '90', '10', '1', '0', '10', '10', '2'] },
    { values: ['0', '50', '30', '3', '0', '30', '30', '4'] },
    { values: ['5', '20', '20', '1'] },
  ],
  total: '100',
  maxSelf: '30',
  lines: [{ values: ['0'] }, { values: ['12', '0'] }, { values: ['7', '8'] }, { values: ['13'] }],
};

describe('the layout', () => {
  const flame = layout(message);

  it('undoes the delta coding and finds parents', () => {
    expect(flame.count).toBe(6);
    expect([...flame.start]).toEqual([0, 0, 90, 0, 50, 5]);
    expect([...flame.total]).toEqual([100, 90, 10, 50, 30, 20]);
    expect([...flame.parent]).toEqual([-1, 0, 0, 1, 1, 3]);
    expect([...flame.line]).toEqual([0, 12, 0, 7, 8, 13]);
    expect(flame.sum).toBe(100);
  });

  it('finds the node at a position by binary search', () => {
    expect(nodeAt(flame, 0, 50)).toBe(0);
    expect(nodeAt(flame, 1, 89.9)).toBe(1);
    expect(nodeAt(flame, 1, 90)).toBe(2);
    expect(nodeAt(flame, 2, 49)).toBe(3);
    expect(nodeAt(flame, 2, 85)).toBe(-1);
    expect(nodeAt(flame, 3, 4)).toBe(-1);
    expect(nodeAt(flame, 3, 24.9)).toBe(5);
    expect(nodeAt(flame, 9, 1)).toBe(-1);
  });

  it('finds the callers and the callees of a node', () => {
    expect(ancestors(flame, 5)).toEqual([0, 1, 3, 5]);
    expect(children(flame, 1)).toEqual([3, 5]);
    expect(children(flame, 2)).toEqual([5, 5]);
    expect(children(flame, 5)).toEqual([0, 0]);
  });

  it('gives the same path the same hash in another response with other numbers', () => {
    const other = layout({ names: ['total', 'gc', 'a', 'main'], levels: [{ values: [0, 7, 0, 0] }, { values: [0, 3, 3, 1, 0, 4, 0, 3] }, { values: [3, 4, 4, 2] }] });
    expect(findPath(other, pathText(flame, 3))).toBe(3);
    expect(new Set(flame.path).size).toBe(flame.count);
    expect(findPath(flame, '')).toBe(0);
    expect(findPath(flame, 'nosuch')).toBe(-1);
  });

  it('survives invalid input', () => {
    expect(layout({ names: [], levels: [] }).count).toBe(0);
    const odd = layout({ names: ['total'], levels: [{ values: ['0', '5', 'x', '99', '1'] }, {}] });
    expect(odd.count).toBe(1);
    expect(odd.name[0]).toBe(0);
  });

  it('hashes UTF-8 by FNV-1a', () => {
    expect(fnv1a32('')).toBe(0x811c9dc5);
    expect(fnv1a32('a')).toBe(0xe40c292c);
    expect(fnv1a32('foobar')).toBe(0xbf9cf968);
    expect(fnv1a32('aé')).toBe([0x61, 0xc3, 0xa9].reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0);
  });
});

describe('the top table', () => {
  const flame = layout(message);

  it('counts a recursive function once', () => {
    const rows = topRows(flame);
    const main = rows.find(({ name }) => name === 1)!;
    expect(main).toEqual({ name: 1, self: 30, total: 90, node: 1 });
    expect(rows.some(({ name }) => name === 0)).toBe(false);
  });

  it('sorts by any column', () => {
    const names = (sort: string): string => sortRows(topRows(flame), flame.names, sort).map(({ name }) => flame.names[name]).join(' ');
    expect(names('-total')).toBe('main a b gc');
    expect(names('name')).toBe('a b gc main');
    expect(names('self')).toBe('gc b a main');
    expect(names('nonsense')).toBe(names('-self'));
  });
});

describe('search', () => {
  const flame = layout(message);

  it('sums the topmost matches only', () => {
    const found = searchFlame(flame, compileSearch('MAIN')!);
    expect(found.sum).toBe(90);
    expect(found.nodes).toEqual([1]);
    expect(found.distinct).toBe(1);
  });

  it('accepts a regular expression between slashes', () => {
    const found = searchFlame(flame, compileSearch('/^[ab]$/')!);
    expect(found.sum).toBe(80);
    expect(found.nodes).toEqual([3, 4]);
    expect(() => compileSearch('/(/')).toThrow(SearchError);
    expect(compileSearch('  ')).toBeNull();
  });

  it('does not match the synthetic root', () => {
    expect(searchFlame(flame, compileSearch('total')!).nodes).toEqual([]);
  });
});

describe('stepping through matches', () => {
  it('wraps around in both directions, and begins with the first or last match', () => {
    expect(stepThrough([4, 7, 9], -1, 1)).toBe(4);
    expect(stepThrough([4, 7, 9], -1, -1)).toBe(9);
    expect(stepThrough([4, 7, 9], 9, 1)).toBe(4);
    expect(stepThrough([4, 7, 9], 4, -1)).toBe(9);
    expect(stepThrough([4, 7, 9], 4, 1)).toBe(7);
    expect(stepThrough([], 4, 1)).toBe(-1);
  });
});

describe('folded frames', () => {
  it('are measured as a share of the zoomed frame', () => {
    const flame = layout({ names: ['total', 'a', 'b', 'other'], levels: [{ values: [0, 100, 0, 0] }, { values: [0, 60, 0, 1, 0, 40, 40, 2] }, { values: [0, 15, 15, 3] }] });
    expect(foldedShare(flame, 1)).toBe(0.25);
    expect(foldedShare(flame, 2)).toBe(0);
    expect(foldedShare(flame, 0)).toBe(0.15);
  });

  it('are recognized by the mark of the server; a function with the name other is not folded', () => {
    const values = [{ values: [0, 100, 0, 0] }, { values: [0, 60, 60, 1, 0, 40, 40, 2] }];
    const flame = layout({ names: ['total', 'other', 'other'], levels: values, lines: [{ values: [0] }, { values: [12, -1] }] });
    expect([...flame.folded]).toEqual([0, 0, 1]);
    expect([...flame.line]).toEqual([0, 12, 0]);
    expect(foldedShare(flame, 0)).toBe(0.4);
    const unmarked = layout({ names: ['total', 'other', 'other'], levels: values, files: ['', 'a.go', ''], lines: [{ values: [0] }, { values: [12, 0] }] });
    expect([...unmarked.folded]).toEqual([0, 0, 1]);
  });
});

describe('a subtree that was loaded separately', () => {
  // total(100) -> left(20), a(60) -> folded(60), right(20) -> r(20)
  const whole = layout({
    names: ['total', 'left', 'a', 'right', 'r', 'other'],
    levels: [{ values: [0, 100, 0, 0] }, { values: [0, 20, 20, 1, 0, 60, 0, 2, 0, 20, 0, 3] }, { values: [20, 60, 60, 5, 0, 20, 20, 4] }],
    lines: [{ values: [0] }, { values: [0, 0, 0] }, { values: [-1, 0] }],
  });
  const node = 2;
  // total(64) -> a(64) -> x(40) -> y(40), r(24): `a` has grown by four since the first response.
  const detail = layout({
    names: ['total', 'a', 'x', 'r', 'y'],
    levels: [{ values: [0, 64, 0, 0] }, { values: [0, 64, 0, 1] }, { values: [0, 40, 0, 2, 0, 24, 24, 3] }, { values: [0, 40, 40, 4] }],
    lines: [{ values: [0] }, { values: [0] }, { values: [0, 0] }, { values: [7] }],
  });
  const flame = graft(whole, node, detail, findPath(detail, pathText(whole, node)));
  const shown = (level: number): string[] => {
    const out: string[] = [];
    for (let at = flame.levelStart[level]!; at < flame.levelStart[level + 1]!; at += 1) out.push(`${flame.names[flame.name[at]!]} ${flame.start[at]}+${flame.total[at]} in ${flame.parent[at]! < 0 ? '-' : flame.names[flame.name[flame.parent[at]!]!]}`);
    return out;
  };

  it('is requested by the names from the root to its frame', () => {
    expect(callSite(whole, node)).toEqual(['a']);
    expect(callSite(whole, 0)).toEqual([]);
  });

  it('replaces the folded frames, and moves the frames to its right', () => {
    expect(shown(0)).toEqual(['total 0+104 in -']);
    expect(shown(1)).toEqual(['left 0+20 in total', 'a 20+64 in total', 'right 84+20 in total']);
    expect(shown(2)).toEqual(['x 20+40 in a', 'r 60+24 in a', 'r 84+20 in right']);
    expect(shown(3)).toEqual(['y 20+40 in x']);
    expect(flame.sum).toBe(104);
    expect([...flame.folded].some(Boolean)).toBe(false);
    expect(flame.line[flame.count - 1]).toBe(7);
  });

  it('keeps the paths by which links name frames', () => {
    for (let at = 0; at < whole.count; at += 1) if (!whole.folded[at]) expect(findPath(flame, pathText(whole, at))).toBeGreaterThanOrEqual(0);
    expect(nodeAt(flame, 3, 30)).toBe(findPath(flame, pathText(detail, detail.count - 1)));
  });
});

describe('text on greyed frames', () => {
  it('is readable', () => {
    for (const { faint, grey, mark, paper } of Object.values(INK)) {
      expect(contrast(faint, grey)).toBeGreaterThanOrEqual(4.5);
      expect(contrast(mark, paper)).toBeGreaterThanOrEqual(4.5);
    }
  });
});
