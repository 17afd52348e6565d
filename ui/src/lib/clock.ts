// The range that the URL names, resolved against the present: when the URL's range changes, when someone refreshes,
// and every so many seconds when that is switched on (not while the page is hidden).

import { createEffect, createMemo, createSignal, onCleanup, type Accessor } from 'solid-js';
import { state } from './router.ts';
import { resolveRange, type Range } from './time.ts';

export function createRange(): { range: Accessor<Range>; refresh: () => void } {
  const [tick, setTick] = createSignal(0);
  const from = createMemo(() => state().from);
  const until = createMemo(() => state().until);
  const seconds = createMemo(() => state().refresh);
  const refresh = (): void => void setTick((count) => count + 1);
  const range = createMemo(
    () => {
      tick();
      return resolveRange(from(), until(), Date.now());
    },
    undefined,
    { equals: (a, b) => a.start === b.start && a.end === b.end },
  );
  createEffect(() => {
    if (seconds() === 0) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && refresh(), seconds() * 1000);
    onCleanup(() => clearInterval(timer));
  });
  return { range, refresh };
}
