// Where the page is deployed: `/` or any path prefix such as `/profile/`.
// The prefix is read off the address of this very script (`<base>/assets/x.js`), because the page's own address is
// ambiguous: `/profile` is the Profile view of a page at `/`, while `/profile/` is the Services view under a prefix.

export type Route = 'services' | 'profile';

/** The base path that a built script at `scriptUrl` belongs to; ends with a slash. */
export function baseOf(scriptUrl: string): string {
  const match = /^(.*\/)assets\/[^/]*$/.exec(new URL(scriptUrl).pathname);
  return match ? match[1]! : '/';
}

/** Which view a path names, or null when the path is none of ours. */
export function routeOf(pathname: string, base: string): Route | null {
  if (!pathname.startsWith(base)) return null;
  const rest = pathname.slice(base.length).replace(/\/$/, '');
  if (rest === '' || rest === 'index.html') return 'services';
  return rest === 'profile' ? 'profile' : null;
}

/** The path of a view. */
export function pathOf(route: Route, base: string): string {
  return route === 'services' ? base : `${base}profile`;
}

const here: string = import.meta.url;
export const BASE = baseOf(here);
