// The flame graph of a difference with its table. The colour of a frame shows its change, by share or by value per second, and
// its tooltip shows both sides.

import { createMemo, For, Show, type JSX } from 'solid-js';
import { diffColour, diffScale } from '../flame/diff-colours.ts';
import { pairAt, signOf, type Measure, type Pair, type Sides } from '../flame/diff.ts';
import type { Paint } from '../flame/draw.ts';
import type { Flame } from '../flame/layout.ts';
import type { Tree } from '../flame/tree.ts';
import { formatPair, formatShare, formatSigned } from '../lib/format.ts';
import { contrast, dark, setContrast, type Contrast } from '../lib/preferences.ts';
import type { Changes } from '../models/changes.ts';
import { DiffTable } from './DiffTable.tsx';
import type { FlameLook } from './FlameLook.ts';
import { FlamePane, type FlamePaneProps } from './FlamePane.tsx';
import { Radios, type Radio } from './Radios.tsx';

export type DiffBy = 'share' | 'rate';

export interface DiffPaneProps extends Omit<FlamePaneProps, 'look' | 'tools' | 'legend' | 'tree'> {
  flame: Flame;
  sides: Sides;
  by: DiffBy;
  /** Switches between shares and values per second. Absent if only shares can be compared. */
  onBy?: (by: DiffBy) => void;
  share: Measure;
  /** Null while the factors that convert values to values per second are not known. */
  rate: Measure | null;
  /** Formats a value per second with its unit. */
  amount: (value: number) => string;
  /** The changes that are more than noise; undefined until they are known. */
  changes: Changes | undefined;
}

const WAYS: readonly Radio<DiffBy>[] = [
  { value: 'share', label: 'Compare by share of total', text: 'Share' },
  { value: 'rate', label: 'Compare by value per second', text: 'Per second' },
];
const PALETTES: readonly Radio<Contrast>[] = [
  { value: 'red-green', label: 'More is red, less is green', text: 'Red, green' },
  { value: 'orange-blue', label: 'More is orange, less is blue, for colour-blind readers', text: 'Orange, blue' },
];

/** Returns the colours and signs of the frames of a difference. */
export function diffPaint(sides: Sides, measure: Measure, palette: Contrast, night: boolean): Paint {
  const scale = diffScale(palette, night);
  return { colour: (node) => diffColour(scale, measure(pairAt(sides, node))), sign: (node) => signOf(pairAt(sides, node)) };
}

export function DiffPane(props: DiffPaneProps) {
  const measure = (): Measure => (props.by === 'rate' && props.rate) || props.share;
  const scale = createMemo(() => diffScale(contrast(), dark()));
  const tree = createMemo<Tree>(() => ({ flame: props.flame, sides: props.sides, reads: 'callees' }));
  const sidesOf = (of: Tree): Sides => of.sides ?? props.sides;
  const sum = (of: Tree, nodes: readonly number[]): Pair => nodes.reduce((all, node) => {
    const pair = pairAt(sidesOf(of), node);
    return { left: all.left + pair.left, right: all.right + pair.right };
  }, { left: 0, right: 0 });
  const rates = (pair: Pair): string => (props.rate ? formatPair(props.rate(pair), props.amount) : '–');
  const look: FlameLook = {
    paint: (of) => diffPaint(sidesOf(of), measure(), contrast(), dark()),
    values: (of, node) => <Values tree={of} sides={sidesOf(of)} node={node} share={props.share} rate={props.rate} amount={props.amount} />,
    spoken: (of, node) => `${formatPair(props.share(pairAt(sidesOf(of), node)), formatShare)}, ${rates(pairAt(sidesOf(of), node))}`,
    sum: (of, nodes) => ({ share: formatPair(props.share(sum(of, nodes)), formatShare), value: rates(sum(of, nodes)) }),
    table: (state) => <DiffTable {...state} flame={state.tree.flame} sides={sidesOf(state.tree)} share={props.share} rate={props.rate} amount={props.amount} colour={(pair) => diffColour(scale(), measure()(pair))} changes={props.changes} onlyShares={props.onBy === undefined} />,
    amount: null,
    swatch: () => '',
  };
  const legend = (): JSX.Element => (
    <div class="diff-legend" role="group" aria-label="Colours">
      <span>less</span>
      <span class="scale" aria-hidden="true"><For each={scale()}>{(colour) => <i style={{ background: colour }} />}</For></span>
      <span>more</span>
      <span class="muted wide-only">{props.by === 'rate' ? 'value per second' : 'share of total'}; the width of a frame is the mean of its shares · + new, − removed</span>
      <span class="spring" />
      <Radios label="Colours of the difference" value={contrast()} choices={PALETTES} onChoose={setContrast} />
    </div>
  );
  return <FlamePane {...props} tree={tree()} look={look} tools={<Show when={props.onBy}>{(onBy) => <Radios label="Compared by" value={props.by} choices={WAYS} onChoose={onBy()} />}</Show>} legend={legend()} />;
}

function Values(props: { tree: Tree; sides: Sides; node: number; share: Measure; rate: Measure | null; amount: (value: number) => string }) {
  const own = (): Pair => ({ left: props.sides.left.self[props.node] ?? 0, right: props.sides.right.self[props.node] ?? 0 });
  const row = (label: string, pair: Pair) => {
    const { left, right } = props.share(pair);
    const rate = props.rate?.(pair);
    return (
      <tr>
        <th scope="row">{label}</th>
        <td>{formatShare(left)}</td>
        <td>{formatShare(right)}</td>
        <td><b>{formatSigned((right - left) * 100, (points) => points.toFixed(2))}</b></td>
        <td>{rate ? props.amount(rate.left) : '–'}</td>
        <td>{rate ? props.amount(rate.right) : '–'}</td>
      </tr>
    );
  };
  const sign = (): string => ({ '+': 'New: not in the baseline', '−': 'Removed: not in the comparison', '': '' })[signOf(pairAt(props.sides, props.node))];
  return (
    <>
      <table class="tip-table number">
        <thead><tr><th /><th scope="col" colspan="3">share before, after, points</th><th scope="col" colspan="2">value before, after</th></tr></thead>
        <tbody>
          {row(props.tree.reads === 'callers of leaves' ? 'Self' : 'Total', pairAt(props.sides, props.node))}
          {props.tree.reads === 'callees' ? row('Self', own()) : ''}
        </tbody>
      </table>
      <div class="where">{sign()}</div>
    </>
  );
}
