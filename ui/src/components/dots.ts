// The styles of the dots in the Samples view: coloured by series, sized by value, or coloured by value. Colours of values also
// differ in lightness: small values are faint and large values are strong, so that colour-blind readers can see the order.

import { oklch } from '../flame/colours.ts';
import { lineColour } from '../lib/series.ts';
import type { Sample } from '../models/samples.ts';
import type { Radio } from './Radios.tsx';

export type DotStyle = 'series' | 'size' | 'value';

export const DOT_STYLES: readonly Radio<DotStyle>[] = [
  { value: 'series', label: 'Dots coloured by their series', text: 'Series' },
  { value: 'size', label: 'Dots sized by their value', text: 'Size' },
  { value: 'value', label: 'Dots coloured by their value', text: 'Value' },
];

const PLAIN = 3;
const SMALLEST = 2;
export const LARGEST = 12;

/** Returns the radius in pixels. With the style `size`, the area of a dot is proportional to its value, down to a minimum radius. */
export function radiusOf(style: DotStyle, total: number, most: number): number {
  if (style !== 'size') return PLAIN + (style === 'value' ? 1 : 0);
  return Math.max(SMALLEST, LARGEST * Math.sqrt(Math.min(1, Math.max(0, total) / (most || 1))));
}

/** Returns the colour for a share of the largest value, with a contrast of at least 3 : 1 to its background. */
export function valueColour(share: number, dark: boolean): string {
  const part = Math.min(1, Math.max(0, share));
  const [faint, strong] = dark ? [0.54, 0.93] : [0.66, 0.3];
  return oklch(faint + (strong - faint) * part, 0.11, 230 + 70 * part);
}

/** Returns a colour for each series, always the same for the same series. */
export function seriesColours(samples: readonly Sample[]): ReadonlyMap<string, string> {
  const series = [...new Set(samples.map((sample) => sample.series))].sort();
  return new Map(series.map((name, rank) => [name, lineColour(rank)]));
}

/** Returns the labels except the service name, in one line. */
export const labelText = ({ labels }: Pick<Sample, 'labels'>): string => Object.entries(labels).filter(([name]) => name !== 'service_name').map(([name, value]) => `${name}=${value}`).join(', ');
