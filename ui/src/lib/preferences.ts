// The preferences that this browser remembers, such as the theme. They never include state that belongs in a link.

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
/** True if the page is dark. In print, it is always light. */
export const dark: Accessor<boolean> = () => !printing() && (theme() === 'system' ? systemDark() : theme() === 'dark');

export function nextTheme(): void {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length] ?? 'system';
  remember('theme', next);
  setThemeSignal(next);
}

/** Whether single-key shortcuts are on. Users of speech input, or of a keyboard that repeats keys, switch them off. */
const [singleKeys, setSingleKeysSignal] = createSignal(recall('keys') !== 'off');
export { singleKeys };

export function setSingleKeys(on: boolean): void {
  remember('keys', on ? 'on' : 'off');
  setSingleKeysSignal(on);
}

/** Whether the user has seen or declined the tour. */
const [toured, setTouredSignal] = createSignal(recall('tour') === 'seen');
export { toured };

export function setToured(): void {
  remember('tour', 'seen');
  setTouredSignal(true);
}

/** The colours of a difference: red and green, or orange and blue for colour-blind readers. */
export type Contrast = 'red-green' | 'orange-blue';
const [contrast, setContrastSignal] = createSignal<Contrast>(recall('contrast') === 'orange-blue' ? 'orange-blue' : 'red-green');
export { contrast };

export function setContrast(next: Contrast): void {
  remember('contrast', next);
  setContrastSignal(next);
}
