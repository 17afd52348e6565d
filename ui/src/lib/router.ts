// The URL as the one store: `state()` and `route()` follow it, `go()` changes it, the Back button works.

import { batch, createSignal } from 'solid-js';
import { BASE, pathOf, PROGRAM, routeOf, type Route } from './base.ts';
import { decodeState, encodeState, type UrlState } from './url-state.ts';

const [route, setRoute] = createSignal<Route | null>(routeOf(location.pathname, BASE, PROGRAM));
const [state, setState] = createSignal<UrlState>(decodeState(location.search));

export { route, state };

/** The view behind the logo. */
export const HOME: Route = PROGRAM === 'collector' ? 'pipeline' : 'services';

/** The address that a change would lead to. */
export function href(patch: Partial<UrlState>, to: Route | null = route()): string {
  const query = encodeState({ ...state(), ...patch });
  return pathOf(to ?? HOME, BASE, PROGRAM) + (query === '' ? '' : `?${query}`);
}

/** Changes the state (and the view); `replace` leaves no step for the Back button. */
export function go(patch: Partial<UrlState>, options: { to?: Route; replace?: boolean } = {}): void {
  const to = options.to ?? route() ?? HOME;
  const target = href(patch, to);
  if (target === location.pathname + location.search) return;
  if (options.replace) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  follow();
}

function follow(): void {
  batch(() => {
    setRoute(routeOf(location.pathname, BASE, PROGRAM));
    setState(decodeState(location.search));
  });
}

addEventListener('popstate', follow);
