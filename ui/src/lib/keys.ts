// Keys that work everywhere on the page; not while someone types.

export function isTyping(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target as HTMLElement | null;
  if (document.querySelector('dialog[open]')) return true;
  return target !== null && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && (target as HTMLInputElement).type !== 'checkbox';
}

/** Tells the view that is shown what was asked for by a key of the frame. */
export function tell(what: 'refresh'): void {
  document.dispatchEvent(new CustomEvent('alluvium', { detail: what }));
}
