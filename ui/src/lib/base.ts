// Where the page is deployed: `/` or any path prefix such as `/profile/`.
// The prefix is read off the address of this very script (`<base>/assets/x.js`), because the page's own address is
// ambiguous: `/profile` is the Profile view of a page at `/`, while `/profile/` is the Services view under a prefix.

export type Route = 'services' | 'profile' | 'pipeline';

/** Which program serves the page: the collector has the pipeline only, and calls it `/graph`, as Alloy does. */
export type Program = 'server' | 'collector';

/** The base path that a built script at `scriptUrl` belongs to; ends with a slash. */
export function baseOf(scriptUrl: string): string {
  const match = /^(.*\/)assets\/[^/]*$/.exec(new URL(scriptUrl).pathname);
  return match ? match[1]! : '/';
}

/** Which view a path names, or null when the path is none of ours. */
export function routeOf(pathname: string, base: string, program: Program = 'server'): Route | null {
  if (!pathname.startsWith(base)) return null;
  const rest = pathname.slice(base.length).replace(/\/$/, '');
  if (rest === 'pipeline' || rest === 'graph') return 'pipeline';
  if (program === 'collector') return rest === '' ? 'pipeline' : null;
  if (rest === '' || rest === 'index.html') return 'services';
  return rest === 'profile' ? 'profile' : null;
}

/** The path of a view. */
export function pathOf(route: Route, base: string, program: Program = 'server'): string {
  if (route === 'pipeline') return `${base}${program === 'collector' ? 'graph' : 'pipeline'}`;
  return route === 'services' ? base : `${base}profile`;
}

const here: string = import.meta.url;
export const BASE = baseOf(here);

const page: DOMStringMap = typeof document === 'undefined' ? {} : document.documentElement.dataset;
export const PROGRAM: Program = page.program === 'collector' ? 'collector' : 'server';
/** A collector runs in the process that serves the page. */
export const HAS_COLLECTOR: boolean = PROGRAM === 'collector' || page.collector === 'yes';
