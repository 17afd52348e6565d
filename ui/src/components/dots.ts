// How a dot stands for a profile: by its series alone, by the size of its value, or by its value as a colour. That colour goes
// from faint to strong in lightness, which every eye tells in order.

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

/** Pixels. The area of a dot is its share of the largest value. */
export function radiusOf(style: DotStyle, total: number, most: number): number {
  if (style !== 'size') return PLAIN + (style === 'value' ? 1 : 0);
  return Math.max(SMALLEST, LARGEST * Math.sqrt(Math.min(1, Math.max(0, total) / (most || 1))));
}

/** The colour of a share of the largest value; at least 3 : 1 on its paper. */
export function valueColour(share: number, dark: boolean): string {
  const part = Math.min(1, Math.max(0, share));
  const [faint, strong] = dark ? [0.54, 0.93] : [0.66, 0.3];
  return oklch(faint + (strong - faint) * part, 0.11, 230 + 70 * part);
}

/** A colour a series, the same for the same series. */
export function seriesColours(samples: readonly Sample[]): ReadonlyMap<string, string> {
  const series = [...new Set(samples.map((sample) => sample.series))].sort();
  return new Map(series.map((name, rank) => [name, lineColour(rank)]));
}

/** Labels but the service's name, in one line. */
export const labelText = ({ labels }: Pick<Sample, 'labels'>): string => Object.entries(labels).filter(([name]) => name !== 'service_name').map(([name, value]) => `${name}=${value}`).join(', ');
