// A short message at the bottom of the page, for messages that belong to no other part of the page ("Copied").

import { createSignal } from 'solid-js';

const [toast, setToast] = createSignal('');
let timer: ReturnType<typeof setTimeout> | undefined;

export { toast };

export function say(text: string): void {
  clearTimeout(timer);
  setToast(text);
  timer = setTimeout(() => setToast(''), 2500);
}
