// The state of a view is in its URL and nowhere else. A schema lists the keys of a view's URL. Each key converts
// its text to a value, and back. Default values are omitted, so that links stay short.

import type { Accessor } from 'solid-js';
import type { Range } from './time.ts';

/** One key of a URL. */
export interface Key<T> {
  /** Reads a value. Empty or invalid text gives the default. */
  read: (text: string) => T;
  /** Writes a value; empty for the default. */
  write: (value: T) => string;
}

// oxlint-disable-next-line typescript/no-explicit-any -- a schema has keys of any type; `Values` gives each value its own type
export type Schema = Readonly<Record<string, Key<any>>>;

/** The values of a URL with this schema. */
export type Values<S extends Schema> = { [K in keyof S]: S[K] extends Key<infer T> ? T : never };

/** The values as signals. Each changes only with its own value. */
export type Reader<S extends Schema> = { readonly [K in keyof S]: Accessor<Values<S>[K]> };

/** Changes values. With `replace`, the Back button skips the change. */
export type Change<S extends Schema> = (patch: Partial<Values<S>>, options?: { replace?: boolean }) => void;

export const text = (fallback = ''): Key<string> => ({
  read: (written) => written || fallback,
  write: (value) => (value === fallback ? '' : value),
});

/** One of several words; the first is the default. */
export const oneOf = <const T extends string>(...words: readonly [T, ...T[]]): Key<T> => ({
  read: (written) => words.find((word) => word === written) ?? words[0],
  write: (value) => (value === words[0] ? '' : value),
});

/** Refresh interval in seconds: `30s`; null if the link has none, 0 for never, else at least 5. */
export const interval: Key<number | null> = {
  read: (written) => {
    const seconds = /^(\d{1,6})s?$/.exec(written)?.[1];
    return seconds === undefined ? null : Number(seconds) === 0 ? 0 : Math.max(5, Number(seconds));
  },
  write: (seconds) => (seconds === null ? '' : `${seconds}s`),
};

/** Text, or null if the view uses the text of another key instead. In the URL, `{}` stands for the empty text. */
export const other: Key<string | null> = {
  read: (written) => (written === '' ? null : written === '{}' ? '' : written),
  write: (value) => (value === null ? '' : value === '' ? '{}' : value),
};

/** Id of a span, 16 hexadecimal digits; empty for none. */
export const spanId: Key<string> = {
  read: (written) => (/^[0-9a-f]{16}$/i.test(written) ? written.toLowerCase() : ''),
  write: (value) => value,
};

/** Two times in milliseconds, `1700000000000~1700003600000`; null for none. */
export const span: Key<Range | null> = {
  read: (written) => {
    const [, start, end] = /^(\d{9,16})~(\d{9,16})$/.exec(written) ?? [];
    return Number(end) - Number(start) >= 1000 ? { start: Number(start), end: Number(end) } : null;
  },
  write: (range) => (range === null ? '' : `${Math.round(range.start)}~${Math.round(range.end)}`),
};

/** Yes or no; `1` is yes. */
export const flag: Key<boolean> = { read: (written) => written === '1', write: (value) => (value ? '1' : '') };

/** A list of texts, `one;two`. A `;` inside a text is escaped by a backslash; backslashes before a `;` or at the end are doubled. */
export const list: Key<readonly string[]> = {
  read: (written) => {
    const texts: string[] = [];
    let text = '';
    let from = 0;
    for (const { 0: all, 1: slashes = '', 2: end, index } of written.matchAll(/(\\*)(;|$)/g)) {
      text += written.slice(from, index) + slashes.slice(0, Math.floor(slashes.length / 2));
      from = index + all.length;
      if (end === ';' && slashes.length % 2 === 1) {
        text += ';';
        continue;
      }
      if (text !== '') texts.push(text);
      text = '';
    }
    return texts;
  },
  write: (texts) => texts.filter((text) => text !== '').map((text) => text.replace(/(\\*)(;|$)/g, (_, slashes: string, end: string) => `${slashes}${slashes}${end === ';' ? '\\;' : ''}`)).join(';'),
};

/** Decodes the query string of a URL. */
export function decode<S extends Schema>(schema: S, query: string): Values<S> {
  const params = new URLSearchParams(query);
  return Object.fromEntries(Object.entries(schema).map(([name, key]) => [name, key.read(params.get(name) ?? '')])) as Values<S>;
}

/** Encodes a query string without the `?`: first the values of the view, then the other keys unchanged. */
export function encode<S extends Schema>(schema: S, values: Values<S>, others: readonly (readonly [string, string])[] = []): string {
  const params = new URLSearchParams();
  for (const [name, key] of Object.entries(schema)) {
    const written = key.write(values[name]);
    if (written !== '') params.append(name, written);
  }
  for (const [name, value] of others) params.append(name, value);
  const written = params.toString();
  if (written === '') return '';
  // `:` `,` `/` and `~` are allowed in a query string, and make links readable.
  return `v=1&${written}`.replace(/%3A/g, ':').replace(/%2C/g, ',').replace(/%2F/g, '/').replace(/%7E/g, '~');
}
