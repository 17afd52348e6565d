// How a link tells a function: by its name, or, where that would make the link longer than servers take, by its beginning and a
// hash, or as a rule by its beginning, its length and its end.

import { fnv1a32 } from './layout.ts';

/** Names of up to this many UTF-16 units are told whole. */
export const LONGEST_NAME = 500;
/** Code points that are kept of either end of a longer one. */
const KEPT = 60;

const isLong = (name: string): boolean => name.length > LONGEST_NAME;

/** The text of a function as `sel` has it. */
export function nameText(name: string): string {
  return isLong(name) ? `${headOf(name)}…${fnv1a32(name).toString(36)}` : name;
}

/** The index of the name that the text tells, -1 for none. */
export function findName(names: readonly string[], text: string): number {
  const whole = names.indexOf(text);
  return whole >= 0 || !text.includes('…') ? whole : names.findIndex((name) => isLong(name) && nameText(name) === text);
}

/** The rule, or the search, that one function and no other meets; of a long name, any that has its length and its ends. */
export function exactly(name: string): string {
  if (!isLong(name)) return `=${name}`;
  const [head, tail] = [headOf(name), Array.from(name.slice(-2 * KEPT - 1)).slice(-KEPT).join('')];
  return `/^${literally(head)}.{${name.length - head.length - tail.length}}${literally(tail)}$/s`;
}

const headOf = (name: string): string => Array.from(name.slice(0, 2 * KEPT + 1)).slice(0, KEPT).join('');

/** Text as an expression that has no line break in it. */
const literally = (text: string): string => text
  .replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  .replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu, (char) => [...Array(char.length).keys()].map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''));
