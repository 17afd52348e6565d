import { describe, expect, it } from 'vitest';
import { labelText, LARGEST, radiusOf, seriesColours, valueColour } from '../../src/components/dots.ts';
import { contrast, INK } from '../../src/flame/colours.ts';
import { readSample } from '../../src/models/samples.ts';

const sample = (series: string) => readSample({ time: '2026-01-31T12:00:00.000000Z', series, total: 1, labels: { service_name: 'shop', pod: series } });

describe('a dot', () => {
  it('has an area in proportion to its value, and is never too small to see', () => {
    expect(radiusOf('size', 100, 100)).toBe(LARGEST);
    expect(radiusOf('size', 25, 100)).toBe(LARGEST / 2);
    expect(radiusOf('size', 0, 100)).toBe(2);
    expect(radiusOf('size', 5, 0)).toBe(LARGEST);
    expect([1, 100].map((total) => radiusOf('series', total, 100))).toEqual([3, 3]);
  });

  it.each([['light', false], ['dark', true]] as const)('is visible on a %s background, and stronger for a larger value', (name, dark) => {
    const seen = [0, 0.1, 0.25, 0.5, 0.75, 1].map((share) => contrast(valueColour(share, dark), INK[name].paper));
    expect(seen[0]).toBeGreaterThanOrEqual(3);
    for (let at = 1; at < seen.length; at += 1) expect(seen[at]! / seen[at - 1]!).toBeGreaterThan(1.04);
  });

  it('has the colour of its series, and the text of its labels', () => {
    const colours = seriesColours(['b', 'a', 'b'].map(sample));
    expect([...colours.keys()]).toEqual(['a', 'b']);
    expect(colours.get('a')).not.toBe(colours.get('b'));
    expect(labelText(sample('a'))).toBe('pod=a');
  });
});
