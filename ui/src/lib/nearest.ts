// Where data is when the asked range has none: the nearest stretch within the last month, found by two coarse questions.

import { selectSeries } from './api.ts';
import type { Range } from './time.ts';

const MONTH = 30 * 86_400_000;
const COARSE = 6 * 3600;
const FINE = 300;

/** A range as long as the asked one that holds the data nearest to it, or null when there is none. */
export async function nearestRange(type: string, selector: string, asked: Range, now: number, signal?: AbortSignal): Promise<Range | null> {
  const wide = await selectSeries({ type, selector, range: { start: now - MONTH, end: now }, step: COARSE }, signal);
  const middle = (asked.start + asked.end) / 2;
  const edge = closest(wide.flatMap(({ points }) => points.map(([ms]) => ms)), middle);
  if (edge === null) return null;
  const bucket = { start: edge - COARSE * 1000, end: edge };
  const narrow = await selectSeries({ type, selector, range: bucket, step: FINE }, signal);
  const at = closest(narrow.flatMap(({ points }) => points.map(([ms]) => ms)), middle) ?? edge;
  return around(at, asked);
}

function closest(times: readonly number[], wanted: number): number | null {
  let best: number | null = null;
  for (const time of times) if (best === null || Math.abs(time - wanted) < Math.abs(best - wanted)) best = time;
  return best;
}

/** The asked length, ending just after data that is older, beginning just before data that is newer. */
export function around(at: number, asked: Range): Range {
  const length = Math.max(FINE * 1000, asked.end - asked.start);
  if (at <= asked.start) return { start: at - length, end: at };
  if (at >= asked.end) return { start: at - FINE * 1000, end: at - FINE * 1000 + length };
  return { start: at - length / 2, end: at + length / 2 };
}
