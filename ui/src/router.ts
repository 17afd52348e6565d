// The URL is the only store of state: a view reads its keys with `createUrl` and changes them with `go`, and the Back button works.
// Only views and the frame around them use the router. Reusable parts receive properties and call event handlers.

import { batch, createMemo, createSignal } from 'solid-js';
import { BASE } from './lib/base.ts';
import { isLongLink, LONGEST_LINK } from './lib/links.ts';
import { decode, encode, type Change, type Reader, type Schema, type Values } from './lib/schema.ts';
import { say } from './lib/toast.ts';
import { ADDRESSES, addressOf, CARRIED, type Address } from './urls.ts';

const [pathname, setPathname] = createSignal(location.pathname);
/** The query string of the URL. */
const [query, setQuery] = createSignal(location.search);
export { query };

/** Returns the view that the URL names; undefined if there is none. */
export const here = (): Address | undefined => addressOf(pathname(), BASE, ADDRESSES);

/** The view that the logo opens. */
export const HOME: Address = ADDRESSES[0]!;

const KNOWN = new Set(['v', ...ADDRESSES.flatMap(({ keys }) => Object.keys(keys))]);

export interface Url<S extends Schema> {
  at: Reader<S>;
  go: Change<S>;
  /** Returns the address of the view with some values changed. */
  href: (patch: Partial<Values<S>>) => string;
}

/** Returns the values of a view's URL, and functions that change them. */
export function createUrl<S extends Schema>(address: Address<S>): Url<S> {
  // After a navigation, the old view exists for a moment. It keeps its values and does not read the keys of the new view.
  const values = createMemo<Values<S>>((before) => (here()?.path === address.path ? decode(address.keys, query()) : before), decode(address.keys, query()));
  const at = Object.fromEntries(Object.keys(address.keys).map((name) => [name, createMemo(() => values()[name as keyof S], undefined, { equals: (a, b) => address.keys[name]!.write(a) === address.keys[name]!.write(b) })])) as Reader<S>;
  // The change applies to the current URL, which may be newer than the values of this view.
  const href = (patch: Partial<Values<S>>): string => urlOf(address, { ...decode(address.keys, location.search), ...patch });
  return { at, href, go: (patch, { replace = false } = {}) => move(href(patch), replace) };
}

/** Returns the address of another view, with the carried keys of the URL and the given values. */
export function hrefTo<S extends Schema>(address: Address<S>, patch: Partial<Values<S>> = {}): string {
  const now = decode(address.keys, query());
  const none = decode(address.keys, '');
  const carried = Object.fromEntries(Object.keys(none).map((name) => [name, CARRIED.includes(name) ? now[name] : none[name]])) as Values<S>;
  return urlOf(address, { ...carried, ...patch });
}

/** Navigates to another view. */
export function visit<S extends Schema>(address: Address<S>, patch: Partial<Values<S>> = {}, { replace = false } = {}): void {
  move(hrefTo(address, patch), replace);
}

/** Follows a link inside the page, unless the user opens it in another tab or window. */
export function follow(event: MouseEvent & { currentTarget: HTMLAnchorElement }): void {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  move(event.currentTarget.pathname + event.currentTarget.search, false);
}

function urlOf<S extends Schema>(address: Address<S>, values: Values<S>): string {
  const others = [...new URLSearchParams(query())].filter(([name]) => !KNOWN.has(name)).map(([name, value]) => [name, value] as const);
  const written = encode(address.keys, values, others);
  return BASE + address.path + (written === '' ? '' : `?${written}`);
}

function move(target: string, replace: boolean): void {
  if (target === location.pathname + location.search) return;
  if (isLongLink(location.origin + target) && !isLongLink(location.href)) say(`The link has more than ${LONGEST_LINK} characters; some servers reject it`);
  if (replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  sync();
}

function sync(): void {
  batch(() => {
    setPathname(location.pathname);
    setQuery(location.search);
  });
}

addEventListener('popstate', sync);
