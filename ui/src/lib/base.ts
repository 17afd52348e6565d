// The base path of the page: `/` or any path prefix such as `/profile/`.
// It is derived from the address of this script (`<base>/assets/x.js`), because the address of the page is ambiguous. For example,
// `/profile` is the Profile view of a page at `/`, while `/profile/` is the Services view below a prefix.

/** The program that serves the page. The collector has only the pipeline, at the path `/graph` as in Alloy. */
export type Program = 'server' | 'collector';

/** Returns the base path for a built script at `scriptUrl`, with a slash at its end. */
export function baseOf(scriptUrl: string): string {
  return /^(.*\/)assets\/[^/]*$/.exec(new URL(scriptUrl).pathname)?.[1] ?? '/';
}

/** Returns the part of a path after the base, without a slash at its end; null if the path is not below the base. */
export function below(pathname: string, base: string): string | null {
  return pathname.startsWith(base) ? pathname.slice(base.length).replace(/\/$/, '') : null;
}

const here: string = import.meta.url;
export const BASE = baseOf(here);

const page: DOMStringMap = typeof document === 'undefined' ? {} : document.documentElement.dataset;
export const PROGRAM: Program = page.program === 'collector' ? 'collector' : 'server';
/** True if a collector runs in the process that serves the page. */
export const HAS_COLLECTOR: boolean = PROGRAM === 'collector' || page.collector === 'yes';
