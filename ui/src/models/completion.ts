// Completes an SQL statement with the labels of the store and their values. Each list is loaded once.

import { onCleanup } from 'solid-js';
import { labelNames, labelValues } from '../lib/api.ts';
import { completions, wordBefore, type Word } from '../lib/sql-words.ts';
import type { Range } from '../lib/time.ts';

/** Returns the completions at a cursor, and the start of the text that they replace. */
export type Complete = (text: string, cursor: number) => Promise<{ from: number; words: readonly Word[] }>;

export function createCompletion(range: () => Range): Complete {
  const known = new Map<string, Promise<readonly string[]>>();
  const stop = new AbortController();
  onCleanup(() => stop.abort());
  /** Loads a list once. A list that failed to load is requested again with the next letter. */
  const once = (what: string, ask: () => Promise<readonly string[]>): Promise<readonly string[]> => {
    const before = known.get(what);
    if (before) return before;
    const answer = ask().catch(() => {
      known.delete(what);
      return [];
    });
    known.set(what, answer);
    return answer;
  };
  return async (text, cursor) => {
    const { from, kind, of } = wordBefore(text, cursor);
    const labels = kind === 'label' ? await once('', () => labelNames('{}', range(), stop.signal)) : [];
    const values = of === '' ? [] : await once(of, () => labelValues(of, '{}', range(), stop.signal));
    return { from, words: completions(text, cursor, labels, values) };
  };
}
