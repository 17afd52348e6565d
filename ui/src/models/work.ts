// Asks the worker, which is started when there is something to do for the first time.

import { createMemo, type Accessor } from 'solid-js';
import type { Answered, Jobs } from '../flame/jobs.ts';
import { createLoader } from '../lib/loader.ts';

const waiting = new Map<number, { done: (result: never) => void; failed: (error: Error) => void }>();
let worker: Worker | undefined;
let asked = 0;

function start(): Worker {
  const started = new Worker(new URL('../flame/worker.ts', import.meta.url), { type: 'module', name: 'flame' });
  started.addEventListener('message', ({ data }: MessageEvent<Answered>) => {
    const asker = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.error === null) asker?.done(data.result as never);
    else asker?.failed(new Error(data.error));
  });
  // It could not be loaded, or it has died: all that is open is lost, and the next question starts another.
  started.addEventListener('error', (event) => {
    worker = undefined;
    for (const { failed } of waiting.values()) failed(new Error(`the worker of the page does not run${event.message ? `: ${event.message}` : ''}`));
    waiting.clear();
  });
  return started;
}

/** Does a job beside the page. What is handed over in `gives` is gone here. */
export function work<K extends keyof Jobs>(job: K, input: Parameters<Jobs[K]>[0], gives: Transferable[] = []): Promise<ReturnType<Jobs[K]>> {
  worker ??= start();
  const id = asked;
  asked += 1;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    worker?.postMessage({ id, job, input }, gives);
  });
}

/**
 * What is made of an input: here while that is little to do, else `beside` the page. Until it is there, one keeps what was
 * made before; the first is always made here, as is all when there is no worker.
 */
export function createWorked<I, T>(input: Accessor<I>, little: (input: I) => boolean, here: (input: I) => T, beside: (input: I) => Promise<T>): Accessor<T> {
  let made = false;
  const direct = createMemo<{ result: T } | null>(() => {
    const now = input();
    if (made && !little(now)) return null;
    made = true;
    return { result: here(now) };
  });
  const later = createLoader<I, { result: T }>(() => (direct() ? null : input()), async (now) => ({ result: await beside(now) }));
  return createMemo<T>((before) => (direct() ?? (later.error() ? { result: here(input()) } : later.data()) ?? { result: before! }).result);
}
