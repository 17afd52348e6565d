// The table of a difference. For each function, it shows the shares on both sides, and the change in percentage points and in
// value per second. Changes that noise explains are dim.

import { createMemo, Show, type Accessor } from 'solid-js';
import { diffRows, readDiffSort, signOf, sortDiffRows, writeDiffSort, type DiffKey, type DiffRow, type DiffSort, type Measure, type Pair, type Sides } from '../flame/diff.ts';
import type { Flame } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import { formatShare, formatSigned, formatWhole } from '../lib/format.ts';
import { singleKeys } from '../lib/preferences.ts';
import { filterItems } from '../lib/suggest.ts';
import type { Changes } from '../models/changes.ts';
import type { TableState } from './FlameLook.ts';
import { Grid, type Column } from './Grid.tsx';
import { Icon } from './Icon.tsx';
import { Radios, type Radio } from './Radios.tsx';

export interface DiffTableProps extends TableState {
  flame: Flame;
  sides: Sides;
  share: Measure;
  rate: Measure | null;
  /** Formats a value per second with its unit. */
  amount: (value: number) => string;
  colour: (pair: Pair) => string;
  changes: Changes | undefined;
  /** True if the difference has no values per second. */
  onlyShares: boolean;
}

/** Tooltips of the columns of numbers. */
const MEANS: Partial<Record<DiffKey, string>> = {
  left: 'Share of total in the baseline',
  right: 'Share of total in the comparison',
  change: 'Change of the share in percentage points: from 10% to 12% is +2',
  rate: 'Change of the value per second',
};

const PARTS: readonly Radio<DiffSort['of']>[] = [{ value: 'self', label: 'Self: without callees', text: 'Self' }, { value: 'total', label: 'Total: with callees', text: 'Total' }];

export function DiffTable(props: DiffTableProps) {
  const sort = createMemo(() => readDiffSort(props.sort));
  const rows = createMemo(() => diffRows(props.flame, props.sides));
  // A function without a value on either side has no change to show.
  const present = createMemo(() => rows().filter(({ [sort().of]: { left, right } }) => left !== 0 || right !== 0));
  const sorted = createMemo(() => sortDiffRows(present(), props.flame.names, sort(), props.share, props.rate ?? props.share));
  const filtered = createMemo(() => {
    if (props.filter.trim() === '') return sorted();
    const hits = new Set(filterItems(sorted(), props.filter, nameOf));
    return sorted().filter((row) => hits.has(row));
  });
  const nameOf = (row: DiffRow): string => props.flame.names[row.name] ?? '';
  const pair = (row: DiffRow): Pair => row[sort().of];
  const points = (row: DiffRow): number => {
    const { left, right } = props.share(pair(row));
    return right - left;
  };
  const isNoise = (row: DiffRow): boolean => props.changes?.kind === 'tested' && !props.changes.real[sort().of].has(nameOf(row));
  const change = (row: DiffRow): string => {
    const rate = props.rate?.(pair(row));
    return rate ? formatSigned(rate.right - rate.left, props.amount) : '–';
  };
  const number = (key: DiffKey, label: string, text: (row: DiffRow) => string): Column<DiffRow> => ({
    key,
    label,
    class: 'number',
    cell: (row: Accessor<DiffRow>) => <span classList={{ zero: isNoise(row()) && key !== 'left' && key !== 'right' }}>{text(row())}</span>,
    title: (row) => (isNoise(row) && (key === 'change' || key === 'rate') ? 'Within the normal variation of this share' : (MEANS[key] ?? '')),
  });
  const columns: Column<DiffRow>[] = [
    {
      key: 'name',
      label: 'Function',
      class: 'name-cell',
      extra: () => (
        <span class="with-icon grow">
          <Icon name="search" />
          <input class="field" type="search" aria-label="Filter functions" placeholder={`Filter ${formatWhole(present().length)}`} value={props.filter} spellcheck={false} onInput={(event) => props.onFilter(event.currentTarget.value)} />
        </span>
      ),
      title: nameOf,
      cell: (row) => (
        <>
          <i class="swatch" style={{ background: props.colour(pair(row())) }} />
          <Show when={signOf(pair(row()))}>{(sign) => <span class="sign" title={sign() === '+' ? 'New' : 'Removed'}>{sign()}</span>}</Show>
          <span class="text">{shortName(nameOf(row()))}</span>
        </>
      ),
    },
    number('left', 'Before', (row) => formatShare(props.share(pair(row)).left)),
    number('right', 'After', (row) => formatShare(props.share(pair(row)).right)),
    number('change', 'Points', (row) => formatSigned(points(row) * 100, (value) => value.toFixed(2))),
    ...(props.onlyShares ? [] : [number('rate', 'Per second', change)]),
  ];
  return (
    <>
      <div class="table-tools"><Radios label="Compare functions by" value={sort().of} choices={PARTS} onChoose={(of) => props.onSort(writeDiffSort({ ...sort(), of }))} /></div>
      <Grid
        label="Changed functions"
        class={props.onlyShares ? 'diff-grid only-shares' : 'diff-grid'}
        columns={columns}
        rows={filtered()}
        height={24}
        sort={sort()}
        none="No function matches the filter"
        of={`${props.filter}\n${props.sort}`}
        reveal={{ index: () => filtered().findIndex((row) => row.name === props.selected), count: props.reveal }}
        selected={(row) => row.name === props.selected}
        hovered={(row) => row.name === props.hovered}
        onSort={(key) => {
          const now = sort();
          props.onSort(writeDiffSort({ of: now.of, key: key as DiffKey, down: now.key === key ? !now.down : key !== 'name' }));
        }}
        onSelect={(row) => props.onSelect(row.name)}
        onOpen={(row) => props.onZoom(row.node)}
        onHover={(row) => props.onHover(row?.name ?? -1)}
        onMenu={(row, x, y) => props.onMenu(row.name, row.node, x, y)}
        onKey={(key, row) => {
          if (key !== 'z' || !singleKeys()) return false;
          props.onZoom(row.node);
          return true;
        }}
      />
    </>
  );
}
