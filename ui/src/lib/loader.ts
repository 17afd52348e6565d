// A question to the server as a signal: asked again when its input changes, cancelled when superseded; the old
// answer stays until the new one is there.

import { createEffect, createSignal, on, onCleanup, untrack, type Accessor } from 'solid-js';

export interface Loader<T> {
  /** The last good answer. */
  data: Accessor<T | undefined>;
  /** Why the last question failed; empty while all is well. */
  error: Accessor<Error | undefined>;
  /** A question is on its way. */
  pending: Accessor<boolean>;
  retry: () => void;
}

/** Asks whenever `input` changes; an input of null asks nothing and forgets the answer. */
export function createLoader<I, T>(input: Accessor<I | null>, ask: (input: I, signal: AbortSignal) => Promise<T>): Loader<T> {
  const [data, setData] = createSignal<T>();
  const [error, setError] = createSignal<Error>();
  const [pending, setPending] = createSignal(false);
  const [attempt, setAttempt] = createSignal(0);
  let running: AbortController | undefined;

  createEffect(
    on([input, attempt], ([wanted]) => {
      running?.abort();
      if (wanted === null) {
        running = undefined;
        setData(undefined);
        setError(undefined);
        setPending(false);
        return;
      }
      const mine = new AbortController();
      running = mine;
      setPending(true);
      untrack(() => ask(wanted, mine.signal)).then(
        (answer) => {
          if (mine.signal.aborted) return;
          setError(undefined);
          setData(() => answer);
          setPending(false);
        },
        (reason: unknown) => {
          if (mine.signal.aborted) return;
          setError(reason instanceof Error ? reason : new Error(String(reason)));
          setPending(false);
        },
      );
    }),
  );
  onCleanup(() => running?.abort());
  return { data, error, pending, retry: () => setAttempt((count) => count + 1) };
}
