// Reads the collector's streams: text entries, each followed by `|;|`, that arrive in chunks of any size.
// In: bytes. Out: whole entries. A stream that ends or fails is opened again, with an exponential backoff.

import { BASE } from '../lib/base.ts';

const SEPARATOR = '|;|';
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 15_000;

/** Assembles entries from chunks. Each call returns the entries that are complete, without empty ones. */
export class Entries {
  #rest = '';

  add(piece: string): string[] {
    const parts = (this.#rest + piece).split(SEPARATOR);
    this.#rest = parts.pop() ?? '';
    return parts.filter((part) => part.trim() !== '');
  }
}

/** Parses JSON; null if it is invalid. */
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
  /** The stream is interrupted and retries by itself. */
  | { at: 'waiting'; reason: string }
  /** The collector refused the request, so the stream does not retry. */
  | { at: 'refused'; status: number; reason: string };

export interface Listener {
  /** Called with entries in their order of arrival. */
  entries: (entries: string[]) => void;
  state: (state: StreamState) => void;
  /** Called after every chunk, even without a whole entry. */
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
        listener.state({ at: 'refused', status: response.status, reason: words || `the response has status ${response.status}` });
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
      reason = 'cannot reach the collector';
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
