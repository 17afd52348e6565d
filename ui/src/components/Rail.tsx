// The left rail: the views that there are, the theme, the keys. On narrow screens it is a strip on top.

import { For } from 'solid-js';
import type { View } from '../app.tsx';
import { BASE } from '../lib/base.ts';
import { nextTheme, theme } from '../lib/preferences.ts';
import { go, HOME, href, route } from '../lib/router.ts';
import { Icon, type IconName } from './Icon.tsx';

export function Rail(props: { views: readonly View[]; onHelp: () => void }) {
  // A table's filter and the zoom belong to one view; time and service are carried along.
  const forView = { filter: '', sort: '', sel: '', view: 'both' } as const;
  const themeIcon = (): IconName => ({ system: 'system', light: 'sun', dark: 'moon' } as const)[theme()];
  return (
    <nav class="rail" aria-label="Views">
      <a href={href(forView, HOME)} class="logo-link" aria-label="Alluvium" onClick={(event) => follow(event, () => go(forView, { to: HOME }))}>
        <img class="logo" src={`${BASE}favicon.svg`} alt="" width="28" height="28" />
      </a>
      <For each={props.views}>
        {(view) => (
          <a
            class="rail-item"
            href={href(forView, view.route)}
            aria-label={view.label}
            aria-current={route() === view.route ? 'page' : undefined}
            onClick={(event) => follow(event, () => go(forView, { to: view.route }))}
          >
            <Icon name={view.icon} />
            <span class="tip" aria-hidden="true">{view.label}</span>
          </a>
        )}
      </For>
      <span class="space" />
      <button type="button" class="rail-item" id="theme" aria-label={`Theme: ${theme()}`} onClick={nextTheme}>
        <Icon name={themeIcon()} />
        <span class="tip" aria-hidden="true">Theme: {theme()}</span>
      </button>
      <button type="button" class="rail-item" aria-label="Keys" onClick={() => props.onHelp()}>
        <Icon name="help" />
        <span class="tip" aria-hidden="true">Keys ?</span>
      </button>
    </nav>
  );
}

/** Follows a link inside the page, unless it shall open elsewhere. */
export function follow(event: MouseEvent, move: () => void): void {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  move();
}
