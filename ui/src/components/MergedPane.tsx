// A flame graph of values: frames in the colours of their packages, with what they take and what share that is.

import { createMemo } from 'solid-js';
import { colourNames, DARK, LIGHT, packagePaint } from '../flame/colours.ts';
import type { Flame } from '../flame/layout.ts';
import { formatShare } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import type { FlameLook } from './FlameLook.ts';
import { FlamePane, type FlamePaneProps } from './FlamePane.tsx';
import { TopTable } from './TopTable.tsx';

export interface MergedPaneProps extends Omit<FlamePaneProps, 'look'> {
  /** A value with its unit. */
  amount: (value: number) => string;
}

export function MergedPane(props: MergedPaneProps) {
  const colours = createMemo(() => colourNames(props.flame.names, props.flame.mappings, props.flame.files, dark() ? DARK : LIGHT));
  const paint = createMemo(() => packagePaint(props.flame, colours()));
  const total = (node: number): number => props.flame.total[node] ?? 0;
  const self = (node: number): number => props.flame.self[node] ?? 0;
  const look: FlameLook = {
    get paint() {
      return paint();
    },
    values: (node) => <Values flame={props.flame} node={node} amount={props.amount} />,
    spoken: (node) => `total ${props.amount(total(node))}, ${formatShare(total(node) / props.flame.sum)}, self ${props.amount(self(node))}`,
    sum: (nodes) => {
      const sum = nodes.reduce((all, node) => all + total(node), 0);
      return { share: formatShare(sum / props.flame.sum), value: props.amount(sum) };
    },
    table: (state) => <TopTable {...state} flame={props.flame} colours={colours()} amount={props.amount} />,
  };
  return <FlamePane {...props} look={look} />;
}

function Values(props: { flame: Flame; node: number; amount: (value: number) => string }) {
  const share = (value: number, of: number): string => formatShare(of > 0 ? value / of : 0);
  const total = (): number => props.flame.total[props.node]!;
  const self = (): number => props.flame.self[props.node]!;
  const parent = (): number => props.flame.parent[props.node]!;
  return (
    <dl>
      <dt>Total</dt>
      <dd class="number">{props.amount(total())}</dd>
      <dd class="number">{share(total(), props.flame.sum)}</dd>
      <dd class="muted">of all{parent() > 0 ? `, ${share(total(), props.flame.total[parent()]!)} of its caller` : ''}</dd>
      <dt>Self</dt>
      <dd class="number">{props.amount(self())}</dd>
      <dd class="number">{share(self(), props.flame.sum)}</dd>
      <dd class="muted">of all{total() > 0 ? `, ${share(self(), total())} of itself` : ''}</dd>
    </dl>
  );
}
