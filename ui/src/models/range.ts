// The range that the URL names, resolved against the present: when the URL's range changes, when someone refreshes,
// and every so many seconds when that is switched on (not while the page is hidden).
// A URL that names none gets the last hour, or what there is of it: a server that has just started shows a full chart,
// which grows by itself.

import { createEffect, createMemo, createSignal, onCleanup, untrack, type Accessor } from 'solid-js';
import { formatAge } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { began } from '../lib/nearest.ts';
import { DEFAULT_FROM, isRelative, resolveRange, type Range } from '../lib/time.ts';

const HOUR = 3_600_000;
/** A chart of less would be of one or two points. */
const SHORTEST = 60_000;
const YOUNG_SECONDS = 5;

/** How the URL names a range. */
export interface RangeText {
  /** Empty for the last hour of what there is. */
  from: Accessor<string>;
  until: Accessor<string>;
  /** Seconds between refreshes, 0 for none; null leaves it to the page. */
  refresh: Accessor<number | null>;
}

export interface RangeModel {
  /** A new object at each refresh, also of a range whose ends stand still: late profiles may have come. */
  range: Accessor<Range>;
  refresh: () => void;
  /** Seconds between refreshes, 0 for none. */
  seconds: Accessor<number>;
  /** The URL names it relative to the present, so that the same link shows another range later. */
  moves: Accessor<boolean>;
  /** It is of all there is: a chart begins with the first value. */
  young: Accessor<boolean>;
  /** What the range is called when it begins with the first profile: `Profiling since 40 s`. */
  since: Accessor<string | undefined>;
}

export function createRange({ from, until, refresh: asked }: RangeText): RangeModel {
  const [tick, setTick] = createSignal(0);
  const refresh = (): void => void setTick((count) => count + 1);
  const open = createMemo(() => from() === '' && until() === 'now');
  const first = createLoader<true, number | null | undefined>(() => (open() ? true : null), (_, signal) => began(HOUR, Date.now(), signal));
  /** When profiling began, while that is less than an hour ago. */
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
  // Until something is stored, the first profile is waited for.
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
    return oldest === null ? undefined : `Profiling since ${formatAge(range().end - oldest)}`;
  };
  const moves = (): boolean => from() === '' || isRelative(from()) || isRelative(until());
  return { range, refresh, seconds, moves, young: () => start() !== null, since };
}
