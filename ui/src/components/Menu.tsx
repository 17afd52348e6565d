// A list of actions: in a popover behind a button, or at the pointer as a context menu.

import { For, onCleanup, onMount, Show } from 'solid-js';
import { Portal } from 'solid-js/web';
import { Icon } from './Icon.tsx';

export interface Action {
  label: string;
  hint?: string;
  /** Set for a choice in a group in which exactly one choice is active. */
  checked?: boolean;
  /** Set for an action that switches something on and off. */
  on?: boolean;
  disabled?: boolean;
  run: () => void;
}

export function Menu(props: { label: string; actions: readonly (Action | null)[]; close: () => void }) {
  let menu!: HTMLDivElement;
  const keys = (event: KeyboardEvent): void => {
    const items = [...menu.querySelectorAll<HTMLButtonElement>('button:not(:disabled)')];
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length]?.focus();
  };
  return (
    <div class="menu" role="menu" aria-label={props.label} ref={menu} onKeyDown={keys}>
      <For each={props.actions}>
        {(action) => (
          <Show when={action} fallback={<hr />}>
            {(item) => (
              <button
                type="button"
                class="option"
                role={item().on !== undefined ? 'menuitemcheckbox' : item().checked === undefined ? 'menuitem' : 'menuitemradio'}
                aria-checked={item().on ?? item().checked}
                disabled={item().disabled}
                tabindex="-1"
                onClick={() => {
                  props.close();
                  item().run();
                }}
              >
                <span class="text">{item().label}</span>
                <Show when={item().hint}><span class="key">{item().hint}</span></Show>
                <Show when={(item().on ?? item().checked) !== undefined}><Icon name="check" class="check" /></Show>
              </button>
            )}
          </Show>
        )}
      </For>
    </div>
  );
}

export function ContextMenu(props: { x: number; y: number; label: string; actions: readonly (Action | null)[]; close: () => void }) {
  let box!: HTMLDivElement;
  const before = document.activeElement as HTMLElement | null;
  const close = (): void => {
    props.close();
    before?.focus({ preventScroll: true });
  };
  onMount(() => {
    const size = box.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(props.x, innerWidth - size.width - 8))}px`;
    box.style.top = `${Math.max(8, Math.min(props.y, innerHeight - size.height - 8))}px`;
    box.querySelector<HTMLElement>('button:not(:disabled)')?.focus();
  });
  const outside = (event: PointerEvent): void => {
    if (!box.contains(event.target as Node)) props.close();
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' && event.key !== 'Tab') return;
    event.preventDefault();
    event.stopPropagation();
    close();
  };
  document.addEventListener('pointerdown', outside, true);
  document.addEventListener('keydown', keys, true);
  onCleanup(() => {
    document.removeEventListener('pointerdown', outside, true);
    document.removeEventListener('keydown', keys, true);
  });
  return (
    <Portal>
      <div class="popover" ref={box}>
        <Menu label={props.label} actions={props.actions} close={close} />
      </div>
    </Portal>
  );
}
