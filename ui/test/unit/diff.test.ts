import { describe, expect, it } from 'vitest';
import { contrast, DARK, LIGHT } from '../../src/flame/colours.ts';
import { diffColour, diffScale, strength } from '../../src/flame/diff-colours.ts';
import { byFactors, byShare, diffRows, layoutDiff, pairAt, readDiffSort, signOf, sortDiffRows, writeDiffSort } from '../../src/flame/diff.ts';
import { nodeAt } from '../../src/flame/layout.ts';

// The totals of the frames, left | right: total 10 | 20 calls a 6 | 0, which is removed, and b 4 | 15; b calls itself 0 | 5, which is new.
const { flame, sides } = layoutDiff({
  names: ['total', 'a', 'b'],
  levels: [
    { values: [0, 10, 0, 0, 20, 5, 0] },
    { values: ['0', '6', '6', '5', '0', '0', '1', 0, 4, 4, 0, 15, 10, 2] },
    { values: [10, 0, 0, 15, 5, 5, 2] },
  ],
});
const [A, B, INNER] = [1, 2, 3];

describe('a difference', () => {
  it('keeps the values of both sides unchanged', () => {
    expect([...sides.left.total]).toEqual([10, 6, 4, 0]);
    expect([...sides.left.self]).toEqual([0, 6, 4, 0]);
    expect([...sides.right.total]).toEqual([20, 0, 15, 5]);
    expect([...sides.right.self]).toEqual([5, 0, 10, 5]);
    expect([sides.left.sum, sides.right.sum]).toEqual([10, 20]);
  });

  it('has the mean of the shares as its width, however much larger one side is', () => {
    expect(flame.sum).toBe(30);
    expect([...flame.total]).toEqual([30, 9, 17.25, 3.75]);
    expect(flame.start[B]).toBe(9 + 3.75);
    expect(flame.total[B]! / flame.sum).toBeCloseTo((4 / 10 + 15 / 20) / 2, 12);
    expect([...flame.parent]).toEqual([-1, 0, 0, B]);
    expect(nodeAt(flame, 2, flame.start[INNER]! + 1)).toBe(INNER);
  });

  it('has one row for each function, without counting a recursive call twice', () => {
    expect(diffRows(flame, sides)).toEqual([
      { name: 1, node: A, self: { left: 6, right: 0 }, total: { left: 6, right: 0 } },
      { name: 2, node: B, self: { left: 4, right: 15 }, total: { left: 4, right: 15 } },
    ]);
  });

  it('is measured by share or by value per second, with the sign of the change', () => {
    expect(byShare(sides)(pairAt(sides, B))).toEqual({ left: 0.4, right: 0.75 });
    expect(byFactors({ left: 1 / 10, right: 1 / 40 })(pairAt(sides, B))).toEqual({ left: 0.4, right: 0.375 });
    expect([A, B, INNER].map((node) => signOf(pairAt(sides, node)))).toEqual(['−', '', '+']);
    const empty = { left: { ...sides.left, sum: 0 }, right: sides.right };
    expect(byShare(empty)({ left: 0, right: 20 })).toEqual({ left: 0, right: 1 });
  });

  it('is sorted by any column; the largest rise of the own share comes first', () => {
    const rows = diffRows(flame, sides);
    const [share, rate] = [byShare(sides), byFactors({ left: 1, right: 0.1 })];
    const order = (sort: string): number[] => sortDiffRows(rows, flame.names, readDiffSort(sort), share, rate).map(({ name }) => name);
    expect(order('')).toEqual([2, 1]);
    expect(order('self.change')).toEqual([1, 2]);
    expect(order('-self.rate')).toEqual([2, 1]);
    expect(order('-self.left')).toEqual([1, 2]);
    expect(order('self.name')).toEqual([1, 2]);
    expect(order('no such order')).toEqual([2, 1]);
    for (const text of ['', '-total.change', 'self.name', '-self.right']) expect(writeDiffSort(readDiffSort(text))).toBe(text);
  });
});

describe('the colours of a difference', () => {
  it('follow the ratio, and are neutral for no change', () => {
    expect(strength({ left: 5, right: 5 })).toBe(0);
    expect(strength({ left: 100, right: 102 })).toBe(0);
    expect(strength({ left: 2, right: 4 })).toBe(0.5);
    expect(strength({ left: 4, right: 2 })).toBe(-0.5);
    expect(strength({ left: 0, right: 1 })).toBe(1);
    expect(strength({ left: 1, right: 0 })).toBe(-1);
    expect(strength({ left: 1, right: 1000 })).toBe(1);
    const scale = diffScale('red-green', false);
    expect(diffColour(scale, { left: 1, right: 1 })).toBe(scale[6]);
    expect(diffColour(scale, { left: 100, right: 105 })).toBe(scale[7]);
    expect(diffColour(scale, { left: 0, right: 1 })).toBe(scale[12]);
  });

  it('leave text readable on all of them', () => {
    for (const palette of ['red-green', 'orange-blue'] as const) {
      for (const [dark, { text }] of [[false, LIGHT], [true, DARK]] as const) {
        for (const colour of diffScale(palette, dark)) expect(contrast(colour, text), `${palette} ${dark} ${colour}`).toBeGreaterThanOrEqual(4.5);
      }
    }
  });
});
