// A request to the server as a signal. The request is sent again when its input changes, and cancelled when a newer request supersedes it.
// The old response stays until the new one arrives.

import { createEffect, createSignal, on, onCleanup, untrack, type Accessor } from 'solid-js';

export interface Loader<T> {
  /** The last successful response. */
  data: Accessor<T | undefined>;
  /** The error of the last request; undefined if it succeeded. */
  error: Accessor<Error | undefined>;
  /** True while a request is running. */
  pending: Accessor<boolean>;
  retry: () => void;
}

/** Sends a request whenever `input` changes. If the input is null, no request is sent, and the last response is discarded. */
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
