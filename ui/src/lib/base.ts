// Where the page is deployed: `/` or any path prefix such as `/profile/`.
// The prefix is read off the address of this very script (`<base>/assets/x.js`), because the page's own address is
// ambiguous: `/profile` is the Profile view of a page at `/`, while `/profile/` is the Services view under a prefix.

/** Which program serves the page: the collector has the pipeline only, and calls it `/graph`, as Alloy does. */
export type Program = 'server' | 'collector';

/** The base path that a built script at `scriptUrl` belongs to; ends with a slash. */
export function baseOf(scriptUrl: string): string {
  return /^(.*\/)assets\/[^/]*$/.exec(new URL(scriptUrl).pathname)?.[1] ?? '/';
}

/** What is behind the base in a path, without a slash at its end; null when the path is not below the base. */
export function below(pathname: string, base: string): string | null {
  return pathname.startsWith(base) ? pathname.slice(base.length).replace(/\/$/, '') : null;
}

const here: string = import.meta.url;
export const BASE = baseOf(here);

const page: DOMStringMap = typeof document === 'undefined' ? {} : document.documentElement.dataset;
export const PROGRAM: Program = page.program === 'collector' ? 'collector' : 'server';
/** A collector runs in the process that serves the page. */
export const HAS_COLLECTOR: boolean = PROGRAM === 'collector' || page.collector === 'yes';
