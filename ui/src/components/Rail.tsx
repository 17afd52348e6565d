// The left rail: links to the views, the theme, the list of keys. On narrow screens it is a strip on top.

import { For, Show } from 'solid-js';
import { BASE } from '../lib/base.ts';
import { nextTheme, theme } from '../lib/preferences.ts';
import { Icon, type IconName } from './Icon.tsx';

export interface RailLink {
  label: string;
  icon: IconName;
  href: string;
  current: boolean;
}

type Click = MouseEvent & { currentTarget: HTMLAnchorElement };

export function Rail(props: { home: string; links: readonly RailLink[]; onFollow: (event: Click) => void; onHelp: () => void; onLogout?: (() => void) | undefined; unseen?: boolean }) {
  const themeIcon = (): IconName => ({ system: 'system', light: 'sun', dark: 'moon' } as const)[theme()];
  return (
    <nav class="rail" aria-label="Views">
      <a href={props.home} class="logo-link" aria-label="Alluvium" onClick={(event) => props.onFollow(event)}>
        <img class="logo" src={`${BASE}favicon.svg`} alt="" width="28" height="28" />
      </a>
      <For each={props.links}>
        {(link) => (
          <a class="rail-item" href={link.href} aria-label={link.label} aria-current={link.current ? 'page' : undefined} onClick={(event) => props.onFollow(event)}>
            <Icon name={link.icon} />
            <span class="tip" aria-hidden="true">{link.label}</span>
          </a>
        )}
      </For>
      <span class="space" />
      <Show when={props.onLogout}>
        {(leave) => (
          <button type="button" class="rail-item" aria-label="Log out" onClick={() => leave()()}>
            <Icon name="leave" />
            <span class="tip" aria-hidden="true">Log out</span>
          </button>
        )}
      </Show>
      <button type="button" class="rail-item" id="theme" aria-label={`Theme: ${theme()}`} onClick={nextTheme}>
        <Icon name={themeIcon()} />
        <span class="tip" aria-hidden="true">Theme: {theme()}</span>
      </button>
      <button type="button" class="rail-item" classList={{ unseen: props.unseen ?? false }} aria-label="Keyboard shortcuts" onClick={() => props.onHelp()}>
        <Icon name="help" />
        <span class="tip" aria-hidden="true">Keyboard shortcuts ?</span>
      </button>
    </nav>
  );
}
