// What this browser remembers: theme, width of the split, whether the rail is open. Never anything that a link should carry.

import { createSignal, type Accessor } from 'solid-js';

export type Theme = 'system' | 'light' | 'dark';

function stored(key: string): string | null {
  try {
    return localStorage.getItem(`alluvium.${key}`);
  } catch {
    return null; // Storage may be forbidden; the page works without.
  }
}

export function remember(key: string, value: string): void {
  try {
    localStorage.setItem(`alluvium.${key}`, value);
  } catch {
    // As above.
  }
}

export function recallNumber(key: string, fallback: number): number {
  const value = Number(stored(key) ?? Number.NaN);
  return Number.isFinite(value) ? value : fallback;
}

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];
const system = matchMedia('(prefers-color-scheme: dark)');
const first = stored('theme');
const [theme, setThemeSignal] = createSignal<Theme>(THEMES.find((name) => name === first) ?? 'system');
const [systemDark, setSystemDark] = createSignal(system.matches);
system.addEventListener('change', () => setSystemDark(system.matches));

export { theme };
export const dark: Accessor<boolean> = () => (theme() === 'system' ? systemDark() : theme() === 'dark');

export function setTheme(next: Theme): void {
  remember('theme', next);
  setThemeSignal(next);
}

export function nextTheme(): void {
  setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]!);
}
