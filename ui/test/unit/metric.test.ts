import { describe, expect, it } from 'vitest';
import { lineName, readLines } from '../../src/lib/prometheus.ts';
import { around, peakOf } from '../../src/models/metric.ts';

describe('a response of Prometheus', () => {
  it('becomes lines of points with times in milliseconds, without NaN and infinite values', () => {
    const lines = readLines({ data: { result: [
      { metric: { __name__: 'up', job: 'a' }, values: [[10, '1.5'], [25.5, 'NaN'], [40, '+Inf'], [55, '2']] },
      { metric: {}, values: [[10, 'NaN']] },
    ] } });
    expect(lines).toEqual([{ labels: { __name__: 'up', job: 'a' }, points: [[10_000, 1.5], [55_000, 2]] }]);
    expect(readLines({})).toEqual([]);
  });

  it('names its lines as PromQL does', () => {
    expect(lineName({ __name__: 'up', job: 'a"b', instance: 'x' })).toBe('up{instance="x", job="a\\"b"}');
    expect(lineName({ __name__: 'up' })).toBe('up');
    expect(lineName({})).toBe('value');
  });
});

describe('the peak', () => {
  it('is the highest point of all lines, the first of equal ones', () => {
    expect(peakOf([{ points: [[1, 2], [2, 9]] }, { points: [[3, 9], [1, 1]] }])).toEqual({ time: 2, value: 9 });
    expect(peakOf([])).toBeNull();
  });

  it('opens a range that is long enough for profiles', () => {
    expect(around(1_000_000, 1)).toEqual({ start: 970_000, end: 1_030_000 });
    expect(around(1_000_000, 60)).toEqual({ start: 880_000, end: 1_120_000 });
  });
});
