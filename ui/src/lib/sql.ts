// Sends SQL statements and reads their rows from a stream of JSON. Also converts the parts of a selection to SQL conditions.

import { send } from './api.ts';
import type { Matcher } from './selector.ts';
import type { Range } from './time.ts';

export type Value = string | number | boolean | null | readonly unknown[] | { readonly [key: string]: unknown };
export type SqlRow = Readonly<Record<string, Value>>;

/** Maximum size of a shown result in bytes. A larger result must be downloaded. */
const MOST_BYTES = 64 * 2 ** 20;

const ask = (query: string, format: string, signal?: AbortSignal): Promise<Response> =>
  send(`api/v1/sql?format=${format}`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: query }, signal);

/** Runs a statement and returns its rows. Calls `told` with the number of received bytes. */
export async function sql(query: string, signal?: AbortSignal, told: (bytes: number) => void = () => undefined): Promise<SqlRow[]> {
  const response = await ask(query, 'json', signal);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  try {
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
      bytes += chunk.value.length;
      if (bytes > MOST_BYTES) throw new Error(`the result has more than ${MOST_BYTES / 2 ** 20} MiB; add a LIMIT, or download it`);
      text += decoder.decode(chunk.value, { stream: true });
      told(bytes);
    }
    return JSON.parse(text + decoder.decode()) as SqlRow[];
  } catch (error) {
    await reader?.cancel().catch(() => undefined);
    // The server aborts the response if the query fails after its first rows.
    if (error instanceof SyntaxError || (error instanceof TypeError && !signal?.aborted)) throw new Error('the server aborted the response: the query failed, or reached a limit, after its first rows', { cause: error });
    throw error;
  }
}

/** Runs a statement and returns its rows as a file. */
export const sqlFile = async (query: string, format: 'csv' | 'parquet', signal?: AbortSignal): Promise<Blob> => (await ask(query, format, signal)).blob();

export const quoted = (text: string): string => `'${text.replace(/'/g, "''")}'`;

/** Returns conditions on `time` for a range, with its start and without its end. */
export const during = ({ start, end }: Range, time = 'time'): string => `${time} >= to_timestamp_millis(${Math.floor(start)}) AND ${time} < to_timestamp_millis(${Math.ceil(end)})`;

/** Returns a matcher as a condition on the column `labels`. A missing label is the empty text. */
export function condition({ name, op, value }: Matcher, labels = 'labels'): string {
  const label = `coalesce(${labels}[${quoted(name)}], '')`;
  return op === '=' || op === '!=' ? `${label} ${op} ${quoted(value)}` : `${label} ${op === '=~' ? '~' : '!~'} ${quoted(`^(?:${value})$`)}`;
}
