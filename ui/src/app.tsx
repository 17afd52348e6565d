// The frame around the views: the rail, the theme, the keys of all views, and the short messages at the bottom.

import { createEffect, createMemo, createSignal, ErrorBoundary, lazy, Show, Suspense, type Component } from 'solid-js';
import { Dynamic } from 'solid-js/web';
import { Help, type KeyHelp } from './components/Help.tsx';
import { Login } from './components/Login.tsx';
import { Failure, Notice } from './components/Notice.tsx';
import { Rail } from './components/Rail.tsx';
import type { TourProps } from './components/Tour.tsx';
import { createDrop } from './lib/dropped.ts';
import { formatMoment } from './lib/format.ts';
import { createKeys } from './lib/keys.ts';
import { nextTheme, setToured, theme, toured } from './lib/preferences.ts';
import { printing } from './lib/printing.ts';
import { decode } from './lib/schema.ts';
import { loggedIn, loginWanted, logout } from './lib/session.ts';
import { toast } from './lib/toast.ts';
import { follow, here, HOME, hrefTo, query, visit } from './router.ts';
import type { Route } from './routes.ts';
import { ADDRESSES, ADHOC, PIPELINE } from './urls.ts';

const EVERYWHERE: readonly KeyHelp[] = [['Switch the theme', ['t']], ['Show this list', ['?']]];

export interface AppProps {
  routes: readonly Route[];
  /** Loads the tour. Only the page of the server has a tour, and only this page accepts dropped files. */
  tour?: () => Promise<{ default: Component<TourProps> }>;
}

export function App(props: AppProps) {
  const [help, setHelp] = createSignal(false);
  const [touring, setTouring] = createSignal(false);
  const Tour = props.tour && lazy(props.tour);
  const tour = (): void => {
    setToured();
    setTouring(true);
  };
  const views = new Map(props.routes.map(({ address, view }) => [address, lazy(view)]));
  const route = createMemo(() => props.routes.find(({ address }) => address === here()));

  createEffect(() => {
    if (theme() === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme();
  });
  createEffect(() => {
    const { service = '', sel = '' } = decode(here()?.keys ?? {}, query()) as { service?: string; sel?: string };
    const what = here() === PIPELINE ? sel : service;
    document.title = [what, here() === HOME && here() !== PIPELINE ? '' : route()?.label, 'Alluvium'].filter(Boolean).join(' – ');
  });
  if (Tour) createDrop(() => visit(ADHOC));
  createKeys(() => ({ '?': () => setHelp(true), t: nextTheme }));

  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Skip to the content</a>
      <Rail home={hrefTo(HOME)} links={props.routes.map(({ address, label, icon }) => ({ label, icon, get href() { return hrefTo(address); }, get current() { return here() === address; } }))} onFollow={follow} onHelp={() => setHelp(true)} onLogout={loggedIn() ? () => void logout() : undefined} unseen={Tour !== undefined && !toured()} />
      <ErrorBoundary fallback={(error: unknown, reset) => (
        <main class="view" id="main"><div class="fill"><Failure what="The page has an internal error" error={error instanceof Error ? error : new Error(String(error))} retry={reset} /></div></main>
      )}>
        <Show
          when={route()}
          fallback={
            <main class="view" id="main" tabindex="-1">
              <div class="fill">
                <Notice icon="compass" title="This page does not exist" actions={<a class="button primary" href={hrefTo(HOME)} onClick={follow}>{props.routes[0]?.label}</a>} />
              </div>
            </main>
          }
        >
          {/* Suspense is only for the code of a view. Requests of views to the server do not suspend them. */}
          {(shown) => (
            <Show when={!loginWanted()} fallback={<main class="view" id="main" tabindex="-1"><div class="fill"><Login onDone={() => location.reload()} /></div></main>}>
              <Suspense fallback={<main class="view" id="main" tabindex="-1" />}><Dynamic component={views.get(shown().address)} /></Suspense>
            </Show>
          )}
        </Show>
      </ErrorBoundary>
      <Show when={help()}><Help keys={[...(route()?.keys ?? []), ...EVERYWHERE]} onTour={Tour && tour} onClose={() => setHelp(false)} /></Show>
      <Show when={touring() && Tour}>
        <Suspense><Dynamic component={Tour} href={(path) => hrefTo(ADDRESSES.find((address) => address.path === path) ?? HOME)} onFollow={follow} onClose={() => setTouring(false)} /></Suspense>
      </Show>
      <Show when={Tour && !toured() && here() === HOME}>
        <aside class="offer" aria-label="Tour">
          <span>New here?</span>
          <button type="button" class="button primary" onClick={tour}>Take a tour in five steps</button>
          <button type="button" class="button plain" onClick={setToured}>Dismiss</button>
        </aside>
      </Show>
      <p class="printed" aria-hidden="true">{printing() ? `${document.title} · ${formatMoment(Date.now())} · ${location.href}` : ''}</p>
      <div class="toasts" role="status" aria-live="polite"><Show when={toast()}><div class="toast">{toast()}</div></Show></div>
    </div>
  );
}
