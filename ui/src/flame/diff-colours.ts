// The colours of a difference: more is red, less is green, the same is grey; or orange and blue, which everyone can tell
// apart. Strength follows how many times as much it is: twice is half, four times is full, as is what is new or gone.

import type { Contrast } from '../lib/preferences.ts';
import { oklch } from './colours.ts';
import type { Pair } from './diff.ts';

/** Hues of more and of less. */
const HUES: Record<Contrast, readonly [more: number, less: number]> = { 'red-green': [25, 150], 'orange-blue': [65, 250] };
const STEPS = 6;
const FULL = 2;
/** A change of less than this, as a power of two, is none: four in a hundred. */
const NONE = 0.06;

/** From -1, gone, to 1, new; 0 for no change. */
export function strength({ left, right }: Pair): number {
  if (left === right) return 0;
  const power = left <= 0 ? FULL : right <= 0 ? -FULL : Math.log2(right / left);
  return Math.abs(power) < NONE ? 0 : Math.max(-1, Math.min(1, power / FULL));
}

/** The colours from -STEPS to STEPS. */
export function diffScale(palette: Contrast, dark: boolean): readonly string[] {
  const [more, less] = HUES[palette];
  return Array.from({ length: 2 * STEPS + 1 }, (_, index) => {
    const part = (index - STEPS) / STEPS;
    const size = Math.abs(part);
    const chroma = size === 0 ? 0.006 : 0.02 + 0.12 * size;
    return oklch(dark ? 0.36 + 0.1 * size : 0.9 - 0.11 * size, chroma, part === 0 ? 250 : part > 0 ? more : less);
  });
}

/** A colour of the scale: what changed at all is never grey. */
export function diffColour(scale: readonly string[], pair: Pair): string {
  const power = strength(pair);
  const step = Math.sign(power) * Math.ceil(Math.abs(power) * STEPS);
  return scale[STEPS + step] ?? '';
}
