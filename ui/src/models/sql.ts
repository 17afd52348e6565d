// The running SQL statement: its rows, its progress and its duration; and the history of statements in this browser.

import { createSignal, onCleanup, type Accessor } from 'solid-js';
import { sql, type SqlRow } from '../lib/sql.ts';
import { recall, remember } from '../lib/stored.ts';

export interface Ran {
  query: string;
  rows: readonly SqlRow[];
  /** Duration of the statement in milliseconds. */
  took: number;
}

export interface Run {
  last: Accessor<Ran | undefined>;
  error: Accessor<Error | undefined>;
  /** Time since the start in milliseconds, and number of received bytes; null if no statement runs. */
  progress: Accessor<{ since: number; bytes: number } | null>;
  run: (query: string) => void;
  cancel: () => void;
  history: Accessor<readonly string[]>;
}

const KEPT = 30;
const TICK_MS = 200;

function readHistory(): string[] {
  try {
    const found: unknown = JSON.parse(recall('sql') ?? '[]');
    return Array.isArray(found) ? found.filter((one): one is string => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

export function createRun(): Run {
  const [last, setLast] = createSignal<Ran>();
  const [error, setError] = createSignal<Error>();
  const [progress, setProgress] = createSignal<{ since: number; bytes: number } | null>(null);
  const [history, setHistory] = createSignal<readonly string[]>(readHistory());
  let running: AbortController | undefined;

  const cancel = (): void => {
    running?.abort();
    running = undefined;
    setProgress(null);
  };
  const run = (query: string): void => {
    cancel();
    const mine = new AbortController();
    running = mine;
    const begin = performance.now();
    let bytes = 0;
    setProgress({ since: 0, bytes });
    const timer = setInterval(() => running === mine && setProgress({ since: performance.now() - begin, bytes }), TICK_MS);
    const kept = [query, ...history().filter((other) => other !== query)].slice(0, KEPT);
    setHistory(kept);
    remember('sql', JSON.stringify(kept));
    sql(query, mine.signal, (now) => {
      bytes = now;
    }).then(
      (rows) => {
        if (running !== mine) return;
        setError(undefined);
        setLast({ query, rows, took: performance.now() - begin });
        cancel();
      },
      (reason: unknown) => {
        if (running !== mine) return;
        setError(reason instanceof Error ? reason : new Error(String(reason)));
        cancel();
      },
    ).finally(() => clearInterval(timer));
  };
  onCleanup(cancel);
  return { last, error, progress, run, cancel, history };
}
