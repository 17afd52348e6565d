import { describe, expect, it } from 'vitest';
import { beyondChance, chanceOfNoise, shareOf, studentTail } from '../../src/lib/statistics.ts';
import { cut, findChanges, type Sliced } from '../../src/models/changes.ts';
import { profileType } from '../../src/lib/profile-types.ts';
import { factor, placeSides } from '../../src/models/compare.ts';
import { lastTwo, versionLabel } from '../../src/models/versions.ts';

/** A repeatable random number generator: mulberry32. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

describe('Student\'s t', () => {
  it('matches the tails in tables', () => {
    expect(studentTail(12.706, 1)).toBeCloseTo(0.05, 4);
    expect(studentTail(2.145, 14)).toBeCloseTo(0.05, 4);
    expect(studentTail(4.140, 14)).toBeCloseTo(0.001, 5);
    expect(studentTail(0, 5)).toBe(1);
    expect(studentTail(1.96, 1e6)).toBeCloseTo(0.05, 4);
  });
});

describe('a share', () => {
  it('is the share of all slices together, and its variance ignores empty slices', () => {
    const share = shareOf([{ part: 10, all: 100 }, { part: 0, all: 0 }, { part: 60, all: 300 }]);
    expect(share).toMatchObject({ share: 70 / 400, slices: 2 });
    expect(shareOf([{ part: 1, all: 10 }]).variance).toBe(Number.POSITIVE_INFINITY);
    expect(shareOf([{ part: 1, all: 10 }, { part: 10, all: 100 }]).variance).toBeCloseTo(0, 12);
  });

  it('that is steady but different on both sides has changed', () => {
    const steady = (part: number) => shareOf([{ part, all: 100 }, { part, all: 100 }, { part, all: 100 }]);
    expect(chanceOfNoise(steady(10), steady(10))).toBe(1);
    expect(chanceOfNoise(steady(10), steady(11))).toBe(0);
    expect(chanceOfNoise(steady(10), shareOf([{ part: 9, all: 10 }]))).toBe(1);
  });
});

describe('many p-values', () => {
  it('have to be smaller the more tests there are', () => {
    expect(beyondChance([0.001, 0.2, 0.012, 0.9], 0.05)).toEqual([true, false, true, false]);
    expect(beyondChance([0.04, 0.9, 0.8, 0.7], 0.05)).toEqual([false, false, false, false]);
    expect(beyondChance([], 0.05)).toEqual([]);
  });
});

describe('changes', () => {
  /** Eight slices of a hundred functions whose values vary by a third; `more` is added to the first function. */
  const slices = (rand: () => number, more: number): Sliced[] => Array.from({ length: 8 }, () => {
    const values = new Map(Array.from({ length: 100 }, (_, index) => [`f${index}`, 100 * (2 / 3 + rand() * (2 / 3)) + (index === 0 ? more : 0)]));
    return { sum: [...values.values()].reduce((a, b) => a + b, 0), self: values, total: values };
  });

  it('are not found in noise', () => {
    let found = 0;
    for (let seed = 1; seed <= 200; seed += 1) {
      const rand = random(seed);
      const changes = findChanges(slices(rand, 0), slices(rand, 0));
      if (changes.kind !== 'tested') throw new Error(changes.kind);
      if (changes.real.self.size > 0) found += 1;
    }
    // At a false positive rate of one in a hundred, about two of 200 comparisons find a change. More than six would mean a wrong test.
    expect(found).toBeLessThanOrEqual(6);
  });

  it('are found in the noise, the largest first', () => {
    for (let seed = 1; seed <= 50; seed += 1) {
      const rand = random(seed);
      const changes = findChanges(slices(rand, 0), slices(rand, 150));
      if (changes.kind !== 'tested') throw new Error(changes.kind);
      expect(changes.rises[0]?.name).toBe('f0');
      expect(changes.real.total).toContain('f0');
    }
  });

  it('are not tested with fewer than three slices with values', () => {
    const [one] = slices(random(1), 0);
    expect(findChanges([one!, one!, { sum: 0, self: new Map(), total: new Map() }], slices(random(2), 0))).toEqual({ kind: 'too few' });
  });

  it('are tested on slices that make up the range', () => {
    const range = { start: 1_700_000_000_001, end: 1_700_000_600_002 };
    const parts = cut(range);
    expect(parts).toHaveLength(8);
    expect([parts[0]?.start, parts.at(-1)?.end]).toEqual([range.start, range.end]);
    for (let index = 1; index < parts.length; index += 1) expect(parts[index]?.start).toBe(parts[index - 1]?.end);
    expect(cut({ start: 0, end: 40_000 })).toHaveLength(2);
    expect(cut({ start: 0, end: 5000 })).toEqual([{ start: 0, end: 5000 }]);
  });
});

describe('the sides of a comparison', () => {
  const window = { start: 1000_000, end: 5000_000 };
  const [DAY, none] = [86_400_000, null];

  it('are the halves of the range by default', () => {
    expect(placeSides(window, 'halves', none, none)).toEqual({ left: { range: { start: 1000_000, end: 3000_000 }, window }, right: { range: { start: 3000_000, end: 5000_000 }, window } });
  });

  it('are a part and the time before it, within the range if possible', () => {
    const part = { start: 3000_000, end: 4000_000 };
    expect(placeSides(window, 'before', part, none).left).toEqual({ range: { start: 2000_000, end: 3000_000 }, window });
    expect(placeSides(window, 'halves', part, none).left.range).toEqual({ start: 2000_000, end: 3000_000 });
    expect(placeSides(window, 'before', none, none).left).toEqual({ range: { start: -3000_000, end: 1000_000 }, window: { start: -3000_000, end: 5000_000 } });
  });

  it('are the same time a day or a week earlier, each in a window of its own', () => {
    const { left } = placeSides(window, 'day', { start: 3000_000, end: 4000_000 }, none);
    expect(left).toEqual({ range: { start: 3000_000 - DAY, end: 4000_000 - DAY }, window: { start: window.start - DAY, end: window.end - DAY } });
    expect(placeSides(window, 'week', none, none).left.range.start).toBe(window.start - 7 * DAY);
  });

  it('are the same range with other filters, or the ranges that the user dragged', () => {
    expect(placeSides(window, 'same', none, { start: 0, end: 1 }).left.range).toEqual(window);
    const own = { start: -90_000_000, end: -89_000_000 };
    const { left } = placeSides(window, 'range', none, own);
    expect(left.range).toEqual(own);
    expect(left.window.start <= own.start && left.window.end >= own.end && left.window.end < window.start).toBe(true);
  });
});

describe('versions', () => {
  it('are found by the usual labels', () => {
    expect(versionLabel(['pod', 'service_git_ref', 'version'])).toBe('version');
    expect(versionLabel(['pod', 'service_git_ref'])).toBe('service_git_ref');
    expect(versionLabel(['pod', 'region'])).toBeUndefined();
  });

  it('are the last two by their first appearance, else by their version numbers', () => {
    const seen = (value: string, first: number) => ({ value, first });
    expect(lastTwo('version', [seen('1.9', 5), seen('1.10', 5), seen('1.2', 5)])).toEqual({ label: 'version', before: '1.9', after: '1.10' });
    expect(lastTwo('version', [seen('rollback', 9), seen('z', 1)])).toEqual({ label: 'version', before: 'z', after: 'rollback' });
    expect(lastTwo('version', [seen('1', 1)])).toBeNull();
  });
});

describe('a value per second', () => {
  const range = { start: 0, end: 600_000 };
  const cpu = { type: profileType('process_cpu:cpu:nanoseconds:cpu:nanoseconds'), selector: '{}', range };
  const memory = { ...cpu, type: profileType('memory:inuse_space:bytes:space:bytes') };
  /** Returns a chart with a number of points of 30 s, each with the value 4. */
  const chart = (query: typeof cpu, points: number) => ({ pending: () => false, data: () => ({ query, range, by: '', step: 30, mean: 4, max: 4, lines: [{ label: '', colour: '', points: Array.from({ length: points }, (_, at): [number, number] => [(at + 1) * 30_000, 4]) }] }) });
  const none = (pending: boolean) => ({ pending: () => pending, data: () => undefined });

  it('is an average over the time that has profiles', () => {
    expect(factor(cpu, 1, chart(cpu, 20))).toBeCloseTo(1e-9 / 600, 20);
    expect(factor(cpu, 1, chart(cpu, 19))).toBeCloseTo(1e-9 / 600, 20);
    expect(factor(cpu, 1, chart(cpu, 10))).toBeCloseTo(1e-9 / 300, 20);
  });

  it('of a gauge is the mean of the chart, and null without the chart', () => {
    expect(factor(memory, 100, chart(memory, 10))).toBe(4 / 100);
    expect(factor(memory, 0, chart(memory, 0))).toBe(0);
    expect([factor(memory, 100, none(true)), factor(memory, 100, none(false)), factor(memory, 100, chart(cpu, 10))]).toEqual([null, null, null]);
  });

  it('is null until the chart is loaded, and is an average over the whole range if the chart cannot be loaded', () => {
    expect(factor(cpu, 1, none(true))).toBeNull();
    expect(factor(cpu, 1, none(false))).toBeCloseTo(1e-9 / 600, 20);
  });
});
