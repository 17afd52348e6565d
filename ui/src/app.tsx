// The frame around the views: rail, theme, keys that work everywhere, and the short messages at the bottom.

import { createEffect, createSignal, ErrorBoundary, onCleanup, onMount, Show, Suspense, type Component } from 'solid-js';
import { Dynamic } from 'solid-js/web';
import { Help } from './components/Help.tsx';
import type { IconName } from './components/Icon.tsx';
import { Failure, Notice } from './components/Notice.tsx';
import { Rail } from './components/Rail.tsx';
import type { Route } from './lib/base.ts';
import { isTyping, tell } from './lib/keys.ts';
import { nextTheme, theme } from './lib/preferences.ts';
import { go, HOME, route, state } from './lib/router.ts';
import { toast } from './lib/toast.ts';

/** A view of the page: where it is, how it is called, and what it shows. */
export interface View {
  route: Route;
  label: string;
  icon: IconName;
  component: Component;
}

export function App(props: { views: readonly View[] }) {
  const [help, setHelp] = createSignal(false);

  createEffect(() => {
    if (theme() === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme();
  });
  createEffect(() => {
    const what = route() === 'profile' ? state().service : route() === 'pipeline' ? state().sel || 'Pipeline' : '';
    document.title = what ? `${what} – Alluvium` : 'Alluvium';
  });

  const keys = (event: KeyboardEvent): void => {
    if (isTyping(event) || event.defaultPrevented) return;
    switch (event.key) {
      case '?':
        setHelp(true);
        break;
      case 't':
        nextTheme();
        break;
      case 'r':
        tell('refresh');
        break;
      case '[':
        document.querySelector<HTMLButtonElement>('button[aria-label="Earlier"]')?.click();
        break;
      case ']':
        document.querySelector<HTMLButtonElement>('button[aria-label="Later"]')?.click();
        break;
      default:
        return;
    }
    event.preventDefault();
  };
  onMount(() => {
    document.addEventListener('keydown', keys);
    onCleanup(() => document.removeEventListener('keydown', keys));
  });

  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Skip to the content</a>
      <Rail views={props.views} onHelp={() => setHelp(true)} />
      <ErrorBoundary fallback={(error: unknown, reset) => (
        <main class="view" id="main"><div class="fill"><Failure what="The page has a fault" error={error instanceof Error ? error : new Error(String(error))} retry={reset} /></div></main>
      )}>
      <Show
        when={props.views.find((view) => view.route === route())}
        fallback={
          <main class="view" id="main" tabindex="-1">
            <div class="fill">
              <Notice icon="compass" title="There is no such page" actions={<button type="button" class="button primary" onClick={() => go({}, { to: HOME })}>{props.views[0]!.label}</button>} />
            </div>
          </main>
        }
      >
        {(view) => <Suspense fallback={<main class="view" id="main" tabindex="-1" />}><Dynamic component={view().component} /></Suspense>}
      </Show>
      </ErrorBoundary>
      <Show when={help()}><Help routes={props.views.map((view) => view.route)} onClose={() => setHelp(false)} /></Show>
      <div class="toasts" role="status" aria-live="polite"><Show when={toast()}><div class="toast">{toast()}</div></Show></div>
    </div>
  );
}
