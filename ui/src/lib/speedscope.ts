// Writes stacks in the file format of speedscope: each frame once, and each stack as indices of frames with its value. Also
// returns the address of the speedscope that is served with this page.

import { pprofPath } from './addresses.ts';
import { BASE } from './base.ts';
import type { Stack } from './pprof-read.ts';
import type { ProfileType } from './profile-types.ts';
import type { Range } from './time.ts';

const UNITS: Record<ProfileType['unit'], string> = { ns: 'nanoseconds', bytes: 'bytes', count: 'none' };

export function speedscope(stacks: readonly Stack[], name: string, unit: ProfileType['unit']): string {
  const frames: { name: string }[] = [];
  const index = new Map<string, number>();
  const samples = stacks.map(({ names }) => names.map((frame) => {
    let at = index.get(frame);
    if (at === undefined) {
      at = frames.push({ name: frame }) - 1;
      index.set(frame, at);
    }
    return at;
  }));
  const weights = stacks.map(({ value }) => value);
  return JSON.stringify({
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    exporter: 'alluvium',
    name,
    shared: { frames },
    profiles: [{ type: 'sampled', name, unit: UNITS[unit], startValue: 0, endValue: weights.reduce((sum, weight) => sum + weight, 0), samples, weights }],
  });
}

/** Returns the address at which speedscope loads and shows all stacks of a query. */
export function speedscopeLink(type: string, selector: string, range: Range, title: string): string {
  return `${BASE}speedscope/index.html#profileURL=${encodeURIComponent(pprofPath(type, selector, range))}&title=${encodeURIComponent(title)}`;
}
