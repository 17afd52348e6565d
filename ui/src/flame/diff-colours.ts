// The colours of a difference: red for more, green for less, grey for no change; or orange and blue for colour-blind readers. The strength
// follows the ratio of the two values: a frame with twice the value has half the strength, and a frame with four times the value has the
// full strength. New frames and removed frames also have the full strength.

import type { Contrast } from '../lib/preferences.ts';
import { oklch } from './colours.ts';
import type { Pair } from './diff.ts';

/** Hues of more and of less. */
const HUES: Record<Contrast, readonly [more: number, less: number]> = { 'red-green': [25, 150], 'orange-blue': [65, 250] };
const STEPS = 6;
const FULL = 2;
/** A ratio counts as no change if the absolute value of its binary logarithm is smaller than this. 0.06 stands for a ratio of about 1.04. */
const NONE = 0.06;

/** Returns the strength of a change, from -1 for removed to 1 for new; 0 for no change. */
export function strength({ left, right }: Pair): number {
  if (left === right) return 0;
  const power = left <= 0 ? FULL : right <= 0 ? -FULL : Math.log2(right / left);
  return Math.abs(power) < NONE ? 0 : Math.max(-1, Math.min(1, power / FULL));
}

/** Returns the colours of the scale, from `-STEPS` for removed frames to `STEPS` for new frames. */
export function diffScale(palette: Contrast, dark: boolean): readonly string[] {
  const [more, less] = HUES[palette];
  return Array.from({ length: 2 * STEPS + 1 }, (_, index) => {
    const part = (index - STEPS) / STEPS;
    const size = Math.abs(part);
    const chroma = size === 0 ? 0.006 : 0.02 + 0.12 * size;
    return oklch(dark ? 0.36 + 0.1 * size : 0.9 - 0.11 * size, chroma, part === 0 ? 250 : part > 0 ? more : less);
  });
}

/** Returns the colour of a pair from the scale. Only a pair whose strength is 0 is grey. */
export function diffColour(scale: readonly string[], pair: Pair): string {
  const power = strength(pair);
  const step = Math.sign(power) * Math.ceil(Math.abs(power) * STEPS);
  return scale[STEPS + step] ?? '';
}
