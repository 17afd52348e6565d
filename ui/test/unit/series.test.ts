import { afterEach, describe, expect, it, vi } from 'vitest';
import { around } from '../../src/lib/nearest.ts';
import { profileType } from '../../src/lib/profile-types.ts';
import { alignLines, chartSeries, meanOf, sumOf, sumPoints, typicalSpacing, wholeSteps } from '../../src/lib/series.ts';

afterEach(() => vi.unstubAllGlobals());

/** Answers every request with the same series and remembers the requests. */
function answer(series: unknown): Record<string, unknown>[] {
  const asked: Record<string, unknown>[] = [];
  vi.stubGlobal('fetch', async (_: string, options: { body: string }) => {
    asked.push(JSON.parse(options.body) as Record<string, unknown>);
    return new Response(JSON.stringify({ series }));
  });
  return asked;
}

const labels = (pairs: Record<string, string>): { name: string; value: string }[] => Object.entries(pairs).map(([name, value]) => ({ name, value }));
const range = { start: 1_700_000_007_000, end: 1_700_003_607_000 };

describe('charts', () => {
  it('divide counters by the step', async () => {
    const asked = answer([{ labels: [], points: [{ timestamp: '1700000040000', value: 60e9 }, { timestamp: '1700000070000', value: 30e9 }] }]);
    const { lines, step } = await chartSeries(profileType('process_cpu:cpu:nanoseconds:cpu:nanoseconds'), '{}', range, [], 180);
    expect(step).toBe(30);
    expect(lines[0]!.points).toEqual([[1_700_000_040_000, 2], [1_700_000_070_000, 1]]);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({ start: '1699999980000', end: '1700003580000', step: 30, aggregation: 0, groupBy: [] });
  });

  it('average a gauge within a process and sum it over processes', async () => {
    const asked = answer([
      { labels: labels({ region: 'eu', pod: 'a' }), points: [{ timestamp: '60000', value: 5 }] },
      { labels: labels({ region: 'eu', pod: 'b' }), points: [{ timestamp: '60000', value: 7 }] },
      { labels: labels({ region: 'us', pod: 'c' }), points: [{ timestamp: '60000', value: 1 }] },
    ]);
    const { lines } = await chartSeries(profileType('memory:inuse_space:bytes:space:bytes'), '{}', range, ['region'], 180);
    expect(asked[0]).toMatchObject({ aggregation: 1, step: 60 });
    expect(lines).toEqual([{ labels: { region: 'eu' }, points: [[60_000, 12]] }, { labels: { region: 'us' }, points: [[60_000, 1]] }]);
  });

  it('request longer steps if profiles are rare', async () => {
    const asked = answer([{ labels: [], points: [1, 2, 3].map((minute) => ({ timestamp: String(minute * 300_000), value: 1 })) }]);
    expect((await chartSeries(profileType('process_cpu:cpu:nanoseconds:cpu:nanoseconds'), '{}', range, [], 180)).step).toBe(300);
    expect(asked.map(({ step }) => step)).toEqual([30, 300]);
  });

  it('keep gaps', () => {
    const rows = alignLines([{ points: [[0, 1], [15_000, 2], [90_000, 3]] }, { points: [[15_000, 9]] }], 15);
    expect(rows).toEqual([[0, 15, 30, 90], [1, 2, null, 3], [null, 9, null, null]]);
  });

  it('sum and average points, measure their spacing, and round ranges to whole steps', () => {
    expect(sumPoints([{ points: [[1, 2], [2, 3]] }, { points: [[2, 4]] }])).toEqual([[1, 2], [2, 7]]);
    expect(meanOf([[1, 2], [2, 4]])).toBe(3);
    expect(meanOf([])).toBe(0);
    expect(sumOf([[1, 2], [2, 4]])).toBe(6);
    expect(typicalSpacing([[[0, 1], [15_000, 1], [30_000, 1], [300_000, 1]]])).toBe(15);
    expect(wholeSteps({ start: 17_000, end: 61_000 }, 15)).toEqual({ start: 15_000, end: 60_000 });
    expect(wholeSteps({ start: 1, end: 2 }, 15)).toEqual({ start: 0, end: 15_000 });
  });
});

describe('the nearest range', () => {
  it('has the requested length', () => {
    const asked = { start: 10_000_000, end: 13_600_000 };
    expect(around(5_000_000, asked)).toEqual({ start: 1_400_000, end: 5_000_000 });
    expect(around(20_000_000, asked)).toEqual({ start: 19_700_000, end: 23_300_000 });
    expect(around(11_000_000, asked)).toEqual({ start: 9_200_000, end: 12_800_000 });
  });
});
