// A flame graph that is not a difference. Frames have the colours of their packages, and show their values and shares.

import { createMemo, Show } from 'solid-js';
import { colourNames, DARK, LIGHT, packagePaint } from '../flame/colours.ts';
import { ancestors, type Flame } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import type { Tree } from '../flame/tree.ts';
import { formatShare } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import type { FlameLook } from './FlameLook.ts';
import { FlamePane, type FlamePaneProps } from './FlamePane.tsx';
import { TopTable } from './TopTable.tsx';

export interface MergedPaneProps extends Omit<FlamePaneProps, 'look' | 'tree'> {
  flame: Flame;
  /** Formats a value with its unit. */
  amount: (value: number) => string;
}

export function MergedPane(props: MergedPaneProps) {
  const tree = createMemo<Tree>(() => ({ flame: props.flame, sides: null, reads: 'callees' }));
  const colours = createMemo(() => colourNames(props.flame.names, props.flame.mappings, props.flame.files, dark() ? DARK : LIGHT));
  const look: FlameLook = {
    paint: ({ flame }) => packagePaint(flame, colours()),
    values: (of, node) => <Values tree={of} node={node} amount={props.amount} />,
    spoken: ({ flame, reads }, node) => {
      const total = flame.total[node] ?? 0;
      const own = reads === 'callees' ? `, self ${props.amount(flame.self[node] ?? 0)}` : '';
      return `total ${props.amount(total)}, ${formatShare(total / flame.sum)}${own}`;
    },
    sum: ({ flame }, nodes) => {
      const sum = nodes.reduce((all, node) => all + (flame.total[node] ?? 0), 0);
      return { share: formatShare(flame.sum > 0 ? sum / flame.sum : 0), value: props.amount(sum) };
    },
    table: (state) => <TopTable {...state} flame={state.tree.flame} colours={colours()} amount={props.amount} />,
    amount: (value) => props.amount(value),
    swatch: (name) => colours()[name] ?? '',
  };
  return <FlamePane {...props} tree={tree()} look={look} />;
}

function Values(props: { tree: Tree; node: number; amount: (value: number) => string }) {
  const flame = (): Flame => props.tree.flame;
  const share = (value: number, of: number): string => formatShare(of > 0 ? value / of : 0);
  const total = (): number => flame().total[props.node]!;
  const self = (): number => flame().self[props.node]!;
  const parent = (): number => flame().parent[props.node]!;
  /** In an inverted graph, the name of the function whose value the frame shows: the leaf of the frame's stacks, or the root in a graph of the callers of one function. Empty if the frame is this function itself. */
  const callee = (): string => {
    const [, leaf] = ancestors(flame(), props.node);
    const node = props.tree.reads === 'callers of one' ? 0 : leaf;
    return node === undefined || node === props.node ? '' : (flame().names[flame().name[node]!] ?? '');
  };
  return (
    <dl>
      <Show when={props.tree.reads === 'callees'} fallback={
        <>
          <dt>{props.tree.reads === 'callers of one' ? 'Total' : 'Self'}</dt>
          <dd class="number">{props.amount(total())}</dd>
          <dd class="number">{share(total(), flame().sum)}</dd>
          <dd class="muted">of total{callee() === '' ? '' : `, in ${shortName(callee())}`}</dd>
        </>
      }>
        <dt>Total</dt>
        <dd class="number">{props.amount(total())}</dd>
        <dd class="number">{share(total(), flame().sum)}</dd>
        <dd class="muted">of total{parent() > 0 ? `, ${share(total(), flame().total[parent()]!)} of parent` : ''}</dd>
        <dt>Self</dt>
        <dd class="number">{props.amount(self())}</dd>
        <dd class="number">{share(self(), flame().sum)}</dd>
        <dd class="muted">of total{total() > 0 ? `, ${share(self(), total())} of this frame` : ''}</dd>
      </Show>
    </dl>
  );
}
