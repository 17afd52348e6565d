// The text of a function in a link: its name, or, if the name is too long for a link, its beginning and a hash. A search or a
// rule that hides or selects frames identifies a long name by its beginning, its length and its end.

import { fnv1a32 } from './layout.ts';

/** Maximum length of a name that is written in full, in UTF-16 units. */
export const LONGEST_NAME = 500;
/** Number of code points that are kept of either end of a longer name. */
const KEPT = 60;

const isLong = (name: string): boolean => name.length > LONGEST_NAME;

/** Returns the text of a function for the URL parameter `sel`. */
export function nameText(name: string): string {
  return isLong(name) ? `${headOf(name)}…${fnv1a32(name).toString(36)}` : name;
}

/** Returns the index of the name for a text of `sel`, -1 for none. */
export function findName(names: readonly string[], text: string): number {
  const whole = names.indexOf(text);
  return whole >= 0 || !text.includes('…') ? whole : names.findIndex((name) => isLong(name) && nameText(name) === text);
}

/** Returns a search text for exactly this name. The text for a long name also matches other names of the same length with the same beginning and end. */
export function exactly(name: string): string {
  if (!isLong(name)) return `=${name}`;
  const [head, tail] = [headOf(name), Array.from(name.slice(-2 * KEPT - 1)).slice(-KEPT).join('')];
  return `/^${literally(head)}.{${name.length - head.length - tail.length}}${literally(tail)}$/s`;
}

const headOf = (name: string): string => Array.from(name.slice(0, 2 * KEPT + 1)).slice(0, KEPT).join('');

/** Escapes text for a regular expression. Line breaks and other invisible characters are escaped, too. */
const literally = (text: string): string => text
  .replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (char) => [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''));
