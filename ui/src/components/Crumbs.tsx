// The breadcrumb of a flame graph: the callers of the zoomed frame, and its value.

import { createMemo, For, Show } from 'solid-js';
import { ancestors } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import type { Tree } from '../flame/tree.ts';
import { formatWhole } from '../lib/format.ts';
import { Icon } from './Icon.tsx';

export function Crumbs(props: { tree: Tree; focus: number; zoomed: { share: string; value: string }; onZoom: (node: number) => void }) {
  const nameOf = (node: number): string => props.tree.flame.names[props.tree.flame.name[node] ?? -1] ?? '';
  const chain = createMemo(() => ancestors(props.tree.flame, props.focus));
  /** The root and the nearest callers; null stands for the omitted callers between them. */
  const crumbs = createMemo<(number | null)[]>(() => {
    const all = chain();
    return all.length <= 6 ? all : [0, null, ...all.slice(-4)];
  });
  return (
    <nav class="crumbs" aria-label="Callers of the zoomed frame">
      <ol>
        <For each={crumbs()}>
          {(node, index) => (
            <li>
              <Show when={index() > 0}><Icon name="right" /></Show>
              <Show when={node !== null} fallback={<span class="muted" title={chain().slice(1, -4).map((hidden) => nameOf(hidden)).join('\n')}>…</span>}>
                <Show when={node !== props.focus} fallback={<span class="here" aria-current="location" title={nameOf(node ?? 0)}>{shortName(nameOf(node ?? 0))}</span>}>
                  <button type="button" title={nameOf(node ?? 0)} onClick={() => props.onZoom(node ?? 0)}>{shortName(nameOf(node ?? 0))}</button>
                </Show>
              </Show>
            </li>
          )}
        </For>
      </ol>
      <span class="facts">
        <span><b>{props.zoomed.value}</b></span>
        <Show when={props.focus > 0} fallback={<span class="wide-only">{formatWhole(props.tree.flame.count)} frames</span>}>
          <span><b>{props.zoomed.share}</b><span class="wide-only"> of total</span></span>
          <button type="button" onClick={() => props.onZoom(0)}>Reset zoom</button>
        </Show>
      </span>
    </nav>
  );
}
