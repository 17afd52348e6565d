// The worker: runs one job after the other, and returns the result or the error of each.

import { JOBS, type Answered, type Asked } from './jobs.ts';

addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  const answer = (error: string | null, result: unknown): void => postMessage({ id: data.id, error, result } satisfies Answered);
  try {
    const job = JOBS[data.job] as (input: unknown) => unknown;
    answer(null, job(data.input));
  } catch (error) {
    answer(error instanceof Error ? error.message : String(error), null);
  }
});
