// What this browser remembers: the theme, and whether single keys do something. Never anything that a link should carry.

import { createSignal, type Accessor } from 'solid-js';
import { printing } from './printing.ts';
import { recall, remember } from './stored.ts';

export type Theme = 'system' | 'light' | 'dark';

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];
const system = matchMedia('(prefers-color-scheme: dark)');
const first = recall('theme');
const [theme, setThemeSignal] = createSignal<Theme>(THEMES.find((name) => name === first) ?? 'system');
const [systemDark, setSystemDark] = createSignal(system.matches);
system.addEventListener('change', () => setSystemDark(system.matches));

export { theme };
/** On paper everything is light. */
export const dark: Accessor<boolean> = () => !printing() && (theme() === 'system' ? systemDark() : theme() === 'dark');

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'system';
  remember('theme', next);
  setThemeSignal(next);
}

/** Keys without Ctrl or Alt do something. Who speaks to the computer, or has a keyboard that repeats, switches them off. */
const [singleKeys, setSingleKeysSignal] = createSignal(recall('keys') !== 'off');
export { singleKeys };

export function setSingleKeys(on: boolean): void {
  remember('keys', on ? 'on' : 'off');
  setSingleKeysSignal(on);
}

/** Somebody has seen the tour, or does not want to. */
const [toured, setTouredSignal] = createSignal(recall('tour') === 'seen');
export { toured };

export function setToured(): void {
  remember('tour', 'seen');
  setTouredSignal(true);
}

/** The colours of more and of less: red and green, or two that everyone can tell apart. */
export type Contrast = 'red-green' | 'orange-blue';
const [contrast, setContrastSignal] = createSignal<Contrast>(recall('contrast') === 'orange-blue' ? 'orange-blue' : 'red-green');
export { contrast };

export function setContrast(next: Contrast): void {
  remember('contrast', next);
  setContrastSignal(next);
}
