// The frame around the views: rail, theme, keys that work everywhere, and the short messages at the bottom.

import { createEffect, createSignal, ErrorBoundary, Match, onCleanup, onMount, Show, Switch } from 'solid-js';
import { Help } from './components/Help.tsx';
import { Failure, Notice } from './components/Notice.tsx';
import { Rail } from './components/Rail.tsx';
import { isTyping, tell } from './lib/keys.ts';
import { nextTheme, theme } from './lib/preferences.ts';
import { go, route, state } from './lib/router.ts';
import { toast } from './lib/toast.ts';
import { Profile } from './views/Profile.tsx';
import { Services } from './views/Services.tsx';

export function App() {
  const [help, setHelp] = createSignal(false);

  createEffect(() => {
    if (theme() === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme();
  });
  createEffect(() => {
    const service = route() === 'profile' ? state().service : '';
    document.title = service ? `${service} – Alluvium` : 'Alluvium';
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
      <Rail onHelp={() => setHelp(true)} />
      <ErrorBoundary fallback={(error: unknown, reset) => (
        <main class="view" id="main"><div class="fill"><Failure what="The page has a fault" error={error instanceof Error ? error : new Error(String(error))} retry={reset} /></div></main>
      )}>
      <Switch>
        <Match when={route() === 'services'}><Services /></Match>
        <Match when={route() === 'profile'}><Profile /></Match>
        <Match when={true}>
          <main class="view" id="main" tabindex="-1">
            <div class="fill">
              <Notice icon="compass" title="There is no such page" actions={<button type="button" class="button primary" onClick={() => go({}, { to: 'services' })}>Services</button>} />
            </div>
          </main>
        </Match>
      </Switch>
      </ErrorBoundary>
      <Show when={help()}><Help onClose={() => setHelp(false)} /></Show>
      <div class="toasts" role="status" aria-live="polite"><Show when={toast()}><div class="toast">{toast()}</div></Show></div>
    </div>
  );
}
