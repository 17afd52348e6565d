// The range of the URL, resolved against the present. It is resolved again when the URL changes, at each refresh, and at the
// refresh interval while the page is visible.
// If the URL has no range, the range is the last hour, but does not begin before the first profile. So the chart of a new server
// has no empty part, and grows with time.

import { createEffect, createMemo, createSignal, onCleanup, untrack, type Accessor } from 'solid-js';
import { formatAge } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { began } from '../lib/nearest.ts';
import { DEFAULT_FROM, isRelative, resolveRange, type Range } from '../lib/time.ts';

const HOUR = 3_600_000;
/** Least length of a range; a shorter chart would have one or two points. */
const SHORTEST = 60_000;
const YOUNG_SECONDS = 5;

/** The range as in the URL. */
export interface RangeText {
  /** Empty for the last hour, or for the time since the first profile. */
  from: Accessor<string>;
  until: Accessor<string>;
  /** Seconds between refreshes, 0 for none; null for the default of the page. */
  refresh: Accessor<number | null>;
}

export interface RangeModel {
  /** The range. It is a new object at each refresh, even with the same ends, because late profiles may have arrived. */
  range: Accessor<Range>;
  refresh: () => void;
  /** Seconds between refreshes, 0 for none. */
  seconds: Accessor<number>;
  /** True if the range is relative to the present, so that the same link shows another range later. */
  moves: Accessor<boolean>;
  /** True if the range begins with the first profile. Then the chart begins there, too. */
  young: Accessor<boolean>;
  /** Name of a range that begins with the first profile: `Profiling for 40 s`. */
  since: Accessor<string | undefined>;
}

export function createRange({ from, until, refresh: asked }: RangeText): RangeModel {
  const [tick, setTick] = createSignal(0);
  const refresh = (): void => void setTick((count) => count + 1);
  const open = createMemo(() => from() === '' && until() === 'now');
  const first = createLoader<true, number | null | undefined>(() => (open() ? true : null), (_, signal) => began(HOUR, Date.now(), signal));
  /** Time of the first profile if it is less than an hour ago, else null. */
  const start = createMemo(() => {
    tick();
    const found = first.data() ?? null;
    return found !== null && found > Date.now() - HOUR ? found : null;
  });
  const range = createMemo((): Range => {
    tick();
    const now = Date.now();
    const oldest = start();
    if (oldest !== null) return { start: Math.min(oldest, now - SHORTEST), end: now };
    return resolveRange(from() || DEFAULT_FROM, until(), now);
  });
  // While nothing is stored, each refresh requests the time of the first profile again.
  createEffect(() => {
    if (tick() > 0 && untrack(() => open() && first.data() === undefined && !first.pending())) first.retry();
  });
  const seconds = createMemo(() => asked() ?? (start() === null ? 0 : YOUNG_SECONDS));
  createEffect(() => {
    if (seconds() === 0) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && refresh(), seconds() * 1000);
    onCleanup(() => clearInterval(timer));
  });
  const since = (): string | undefined => {
    const oldest = start();
    return oldest === null ? undefined : `Profiling for ${formatAge(range().end - oldest)}`;
  };
  const moves = (): boolean => from() === '' || isRelative(from()) || isRelative(until());
  return { range, refresh, seconds, moves, young: () => start() !== null, since };
}
