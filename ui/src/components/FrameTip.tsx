// The tooltip of a frame: its name, its values, its file and binary. It is beside the pointer, never under it.

import { createEffect, Show, type JSX } from 'solid-js';
import type { Flame } from '../flame/layout.ts';

export function FrameTip(props: { flame: Flame; node: number; x: number; y: number; children: JSX.Element }) {
  let tip!: HTMLDivElement;
  const name = (): number => props.flame.name[props.node]!;
  const where = (): string => {
    const file = props.flame.files[name()] ?? '';
    const line = props.flame.line[props.node]!;
    return file === '' ? '' : line > 0 ? `${file}:${line}` : file;
  };
  const binary = (): string => props.flame.mappings[name()] ?? '';
  createEffect(() => {
    const { x, y } = props;
    void props.node;
    const size = tip.getBoundingClientRect();
    const left = x + 14 + size.width > innerWidth - 8 ? x - 14 - size.width : x + 14;
    const top = y + 18 + size.height > innerHeight - 8 ? y - 14 - size.height : y + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  });
  return (
    <div class="tooltip" role="tooltip" ref={tip}>
      <div class="name">{props.flame.names[name()]}</div>
      {props.children}
      <Show when={where() || binary()}>
        <div class="where">
          <Show when={where()}><div><code>{where()}</code></div></Show>
          <Show when={binary()}><div>in {binary()}</div></Show>
        </div>
      </Show>
      <Show when={props.flame.folded[props.node]}><div class="where">Sum of frames that are too small to be sent</div></Show>
    </div>
  );
}
