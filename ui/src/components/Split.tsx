// Two parts side by side, with a divider that can be dragged or moved by the arrow keys. The browser remembers the divider's position.

import { createSignal, Show, type JSX } from 'solid-js';
import { recallNumber, remember } from '../lib/stored.ts';

const DEFAULT_SHARE = 0.6;

export function Split(props: { left: JSX.Element; right: JSX.Element; showLeft: boolean; showRight: boolean }) {
  const [share, setShare] = createSignal(Math.min(0.85, Math.max(0.15, recallNumber('split', DEFAULT_SHARE))));
  const [dragging, setDragging] = createSignal(false);
  let box!: HTMLDivElement;
  const set = (next: number): void => {
    const bounded = Math.min(0.85, Math.max(0.15, next));
    setShare(bounded);
    remember('split', bounded.toFixed(3));
  };
  const both = (): boolean => props.showLeft && props.showRight;
  return (
    <div class="split" ref={box}>
      <Show when={props.showLeft}>
        <div class="part flame-part" style={{ width: both() ? `${share() * 100}%` : '100%' }}>{props.left}</div>
      </Show>
      <Show when={both()}>
        <div
          class="divider"
          role="separator"
          tabindex="0"
          aria-orientation="vertical"
          aria-label="Width of the flame graph"
          aria-valuemin="15"
          aria-valuemax="85"
          aria-valuenow={Math.round(share() * 100)}
          data-drag={dragging()}
          onPointerDown={(event) => {
            event.preventDefault();
            event.currentTarget.setPointerCapture(event.pointerId);
            setDragging(true);
          }}
          onPointerMove={(event) => {
            if (!dragging()) return;
            const at = box.getBoundingClientRect();
            set((event.clientX - at.left) / at.width);
          }}
          onPointerUp={() => setDragging(false)}
          onPointerCancel={() => setDragging(false)}
          onDblClick={() => set(DEFAULT_SHARE)}
          onKeyDown={(event) => {
            const by = { ArrowLeft: -0.03, ArrowRight: 0.03 }[event.key];
            if (by === undefined) return;
            event.preventDefault();
            set(share() + by);
          }}
        />
      </Show>
      <Show when={props.showRight}>
        <div class="part table-part" style={{ width: both() ? `${(1 - share()) * 100}%` : '100%' }}>{props.right}</div>
      </Show>
    </div>
  );
}
