// If the requested range has no data, finds the nearest range with data within the last month. A first request with long steps finds the
// nearest step, and a second one with shorter steps searches in it. Also finds the start of all data, if it is recent.

import { ApiError, profileTypes, selectSeries, storedRange } from './api.ts';
import { isCpu } from './profile-types.ts';
import type { Range } from './time.ts';

const MONTH = 30 * 86_400_000;
const COARSE = 6 * 3600;
const FINE = 300;
const CLOSE = 15;

/**
 * Returns a range of the requested length that contains the nearest data; null if there is none, undefined if the server
 * refuses the requests.
 */
export async function nearestRange(type: string, selector: string, asked: Range, now: number, signal?: AbortSignal): Promise<Range | null | undefined> {
  try {
    return await search(type, selector, asked, now, signal);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
  // The server may refuse a query over a month. It does not refuse this request for that reason, because the request names no range.
  const stored = await storedRange(signal).catch(() => null);
  if (!stored) return undefined;
  return around(Math.min(stored.end, Math.max(stored.start, (asked.start + asked.end) / 2)), asked);
}

/**
 * Returns the time of the first profile, to a few seconds, if it is less than `within` ago. Returns undefined if there is no
 * profile yet, and null if the first profile is older or the server refuses the requests.
 */
export async function began(within: number, now: number, signal?: AbortSignal): Promise<number | null | undefined> {
  try {
    const edge = now - within;
    if ((await profileTypes({ start: now - MONTH, end: edge }, signal)).length > 0) return null;
    const types = await profileTypes({ start: edge, end: now }, signal);
    const type = types.find(isCpu) ?? types[0];
    if (type === undefined) return undefined;
    const series = await selectSeries({ type, selector: '{}', range: { start: edge, end: now }, step: CLOSE }, signal);
    const first = Math.min(...series.flatMap(({ points }) => points.slice(0, 1).map(([ms]) => ms)));
    // A point is at the right edge of its step.
    return Number.isFinite(first) ? first - CLOSE * 1000 : undefined;
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

async function search(type: string, selector: string, asked: Range, now: number, signal?: AbortSignal): Promise<Range | null> {
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

/**
 * Returns a range of the requested length, but of at least five minutes. If `at` is before the requested range, the result ends at `at`.
 * If `at` is after the requested range, the result begins five minutes before `at`. Otherwise, `at` is in the middle of the result.
 */
export function around(at: number, asked: Range): Range {
  const length = Math.max(FINE * 1000, asked.end - asked.start);
  if (at <= asked.start) return { start: at - length, end: at };
  if (at >= asked.end) return { start: at - FINE * 1000, end: at - FINE * 1000 + length };
  return { start: at - length / 2, end: at + length / 2 };
}
