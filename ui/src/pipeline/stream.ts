// Reads the collector's streams: entries of text, each followed by `|;|`, that come in pieces of any size.
// In: bytes. Out: whole entries. A stream that ends or fails is opened again, each time after a longer wait.

import { BASE } from '../lib/base.ts';

const SEPARATOR = '|;|';
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;

/** Puts pieces together; each call gives the entries that have become whole. Empty ones are left out. */
export class Entries {
  #rest = '';

  add(piece: string): string[] {
    const parts = (this.#rest + piece).split(SEPARATOR);
    this.#rest = parts.pop() ?? '';
    return parts.filter((part) => part.trim() !== '');
  }
}

/** JSON that may be broken: null then. */
export function parse(entry: string): unknown {
  try {
    return JSON.parse(entry);
  } catch {
    return null;
  }
}

export type StreamState =
  | { at: 'opening' }
  | { at: 'open' }
  /** Tried again by itself. */
  | { at: 'waiting'; reason: string }
  /** Not tried again: the server says no. */
  | { at: 'refused'; status: number; reason: string };

export interface Listener {
  /** Entries in the order in which they came. */
  entries: (entries: string[]) => void;
  state: (state: StreamState) => void;
  /** Called after every piece, whole entries or not. */
  alive?: () => void;
}

/** Follows `path` (below the page's base) until `signal` is aborted. */
export async function follow(path: string, listener: Listener, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    listener.state({ at: 'opening' });
    let reason = 'the stream ended';
    try {
      const response = await fetch(BASE + path, { signal, headers: { accept: 'text/plain' } });
      if (!response.ok || !response.body) {
        const words = (await response.text().catch(() => '')).trim().slice(0, 400);
        listener.state({ at: 'refused', status: response.status, reason: words || `the answer was status ${response.status}` });
        return;
      }
      listener.state({ at: 'open' });
      const entries = new Entries();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        wait = FIRST_WAIT_MS;
        const whole = entries.add(value);
        if (whole.length > 0) listener.entries(whole);
        listener.alive?.();
      }
    } catch {
      reason = 'the collector does not answer';
    }
    if (signal.aborted) return;
    listener.state({ at: 'waiting', reason });
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, wait);
      signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
    });
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}
