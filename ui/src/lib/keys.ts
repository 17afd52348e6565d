// Keys that work everywhere on the page: not while someone types, and single keys only where they are not switched off.

import { onCleanup, onMount } from 'solid-js';
import { singleKeys } from './preferences.ts';

/** What each key does; the names are those of `KeyboardEvent.key`. */
export type KeyMap = Readonly<Record<string, () => void>>;

/** Listens as long as the component is there. */
export function createKeys(keys: () => KeyMap): void {
  const listen = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || isTyping(event) || (event.key.length === 1 && !singleKeys())) return;
    const action = keys()[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  onMount(() => document.addEventListener('keydown', listen));
  onCleanup(() => document.removeEventListener('keydown', listen));
}

function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return true;
  // An editor may be in a shadow tree, of which `target` tells only the host.
  const target = (event.composedPath()[0] ?? null) as HTMLElement | null;
  return target !== null && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && (target as HTMLInputElement).type !== 'checkbox';
}
