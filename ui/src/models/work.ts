// Sends jobs to the worker, which is started with the first job.

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
  // The worker could not be loaded, or it died. All open jobs fail, and the next job starts another worker.
  started.addEventListener('error', (event) => {
    worker = undefined;
    for (const { failed } of waiting.values()) failed(new Error(`the worker of the page failed${event.message ? `: ${event.message}` : ''}`));
    waiting.clear();
  });
  return started;
}

/** Runs a job in the worker. The objects in `gives` are transferred to it and cannot be used here any more. */
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
 * Returns the result for an input. If `little` returns true for the input, `here` computes the result, otherwise `beside` computes it in
 * the worker. Until the worker is done, the previous result stays. `here` always computes the first result, and all results if the worker fails.
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
