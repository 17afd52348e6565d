// Keyboard shortcuts of the whole page. They do not work while the user types, and single keys can be switched off.

import { onCleanup, onMount } from 'solid-js';
import { singleKeys } from './preferences.ts';

/** The action of each key, named as in `KeyboardEvent.key`. */
export type KeyMap = Readonly<Record<string, () => void>>;

/** Listens for keys while the component is mounted. */
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
  // If the user types in a shadow tree, `event.target` is only the host of the tree, but the path begins with the editor itself.
  const target = (event.composedPath()[0] ?? null) as HTMLElement | null;
  return target !== null && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && (target as HTMLInputElement).type !== 'checkbox';
}
