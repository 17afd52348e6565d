// A button that opens a panel below itself. The panel stays inside the window, closes on Escape and on a click
// elsewhere, and returns the focus to the button.

import { createEffect, createSignal, onCleanup, Show, type JSX } from 'solid-js';
import { Portal } from 'solid-js/web';

export interface PopoverProps {
  /** Name of the panel for screen readers, and of the button unless `named` is true. */
  label: string;
  /** True if screen readers use the text of the button as its name. */
  named?: boolean;
  class?: string;
  /** Content of the button. */
  trigger: JSX.Element;
  /** Content of the panel. */
  children: (close: () => void) => JSX.Element;
  haspopup?: 'menu' | 'listbox' | 'dialog';
  align?: 'left' | 'right';
  title?: string;
  disabled?: boolean;
  id?: string;
}

export function Popover(props: PopoverProps) {
  const [open, setOpen] = createSignal(false);
  let button!: HTMLButtonElement;

  const close = (): void => {
    if (!open()) return;
    const inside = document.activeElement?.closest('.popover');
    setOpen(false);
    if (inside || document.activeElement === document.body) button.focus();
  };

  return (
    <>
      <button
        type="button"
        ref={button}
        id={props.id}
        class={props.class ?? 'button'}
        aria-label={props.named ? undefined : props.label}
        aria-haspopup={props.haspopup ?? 'dialog'}
        aria-expanded={open()}
        title={props.title}
        disabled={props.disabled}
        onClick={() => (open() ? close() : setOpen(true))}
      >
        {props.trigger}
      </button>
      <Show when={open()}>
        <Portal>
          <Panel anchor={button} align={props.align ?? 'left'} label={props.label} close={close}>
            {props.children(close)}
          </Panel>
        </Portal>
      </Show>
    </>
  );
}

function Panel(props: { anchor: HTMLElement; align: 'left' | 'right'; label: string; close: () => void; children: JSX.Element }) {
  let panel!: HTMLDivElement;
  const place = (): void => {
    const at = props.anchor.getBoundingClientRect();
    const size = panel.getBoundingClientRect();
    const left = props.align === 'left' ? at.left : at.right - size.width;
    panel.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
    const below = innerHeight - at.bottom - 12;
    if (below < Math.min(size.height, 240) && at.top > below) {
      panel.style.maxHeight = `${at.top - 12}px`;
      panel.style.top = `${Math.max(8, at.top - 4 - Math.min(size.height, at.top - 12))}px`;
    } else {
      panel.style.maxHeight = `${below}px`;
      panel.style.top = `${at.bottom + 4}px`;
    }
  };
  createEffect(() => {
    place();
    const first = panel.querySelector<HTMLElement>('[autofocus], input, [role=menuitem], button');
    first?.focus();
  });
  const observer = new ResizeObserver(place);
  createEffect(() => observer.observe(panel));
  const outside = (event: PointerEvent): void => {
    const target = event.target as Node;
    if (!panel.contains(target) && !props.anchor.contains(target)) props.close();
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    props.close();
  };
  document.addEventListener('pointerdown', outside, true);
  document.addEventListener('keydown', keys, true);
  addEventListener('resize', place);
  onCleanup(() => {
    observer.disconnect();
    document.removeEventListener('pointerdown', outside, true);
    document.removeEventListener('keydown', keys, true);
    removeEventListener('resize', place);
  });
  return (
    <div class="popover" role="dialog" aria-label={props.label} ref={panel} onFocusOut={(event) => {
      // If the focus moves out of the panel, the panel closes. A click inside the panel does not close it, even on an element that cannot have the focus.
      const to = event.relatedTarget as Node | null;
      if (to && !panel.contains(to)) props.close();
    }}>
      {props.children}
    </div>
  );
}
