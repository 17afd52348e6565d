// The top table: functions with their self and total values. It can be sorted by any column and filtered, and has the data of
// the flame graph for readers who cannot see it.

import { createMemo, type Accessor } from 'solid-js';
import type { Flame } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import { readSort, sortRows, topRows, type TopRow } from '../flame/top.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { singleKeys } from '../lib/preferences.ts';
import { filterItems } from '../lib/suggest.ts';
import type { TableState } from './FlameLook.ts';
import { Grid, type Column } from './Grid.tsx';
import { Icon } from './Icon.tsx';

export interface TopTableProps extends TableState {
  flame: Flame;
  colours: readonly string[];
  /** Formats a value with its unit. */
  amount: (value: number) => string;
}

export function TopTable(props: TopTableProps) {
  const rows = createMemo(() => topRows(props.flame));
  const sorted = createMemo(() => sortRows(rows(), props.flame.names, props.sort));
  const filtered = createMemo(() => filterKeepingOrder(sorted(), props.filter, props.flame.names));
  const name = (row: TopRow): string => props.flame.names[row.name] ?? '';
  const share = (value: number): number => (props.flame.sum > 0 ? value / props.flame.sum : 0);
  // Bars are relative to the largest value of their column, because in a long tail all shares are small.
  const most = createMemo(() => rows().reduce((max, row) => ({ self: Math.max(max.self, row.self), total: Math.max(max.total, row.total) }), { self: 1e-12, total: 1e-12 }));

  const value = (key: 'self' | 'total', label: string): Column<TopRow>[] => [
    { key, label, class: 'number', cell: (row: Accessor<TopRow>) => <span classList={{ zero: row()[key] === 0 }}>{props.amount(row()[key])}</span> },
    {
      key: `${key} share`,
      label: '%',
      class: `number share ${key}-share`,
      fixed: true,
      cell: (row) => <><i style={{ width: `${(row()[key] / most()[key]) * 100}%` }} /><span classList={{ zero: row()[key] === 0 }}>{formatShare(share(row()[key]))}</span></>,
    },
  ];
  const columns: Column<TopRow>[] = [
    {
      key: 'name',
      label: 'Function',
      class: 'name-cell',
      extra: () => (
        <span class="with-icon grow">
          <Icon name="search" />
          <input class="field" type="search" aria-label="Filter functions" placeholder={`Filter ${formatWhole(rows().length)}`} value={props.filter} spellcheck={false} onInput={(event) => props.onFilter(event.currentTarget.value)} />
        </span>
      ),
      title: name,
      cell: (row) => <><i class="swatch" style={{ background: props.colours[row().name] }} /><span class="text">{shortName(name(row()))}</span></>,
    },
    ...value('self', 'Self'),
    ...value('total', 'Total'),
  ];
  return (
    <Grid
      label="Top functions"
      columns={columns}
      rows={filtered()}
      height={24}
      sort={readSort(props.sort)}
      none="No function matches the filter"
      of={`${props.filter}\n${props.sort}`}
      reveal={{ index: () => filtered().findIndex((row) => row.name === props.selected), count: props.reveal }}
      selected={(row) => row.name === props.selected}
      hovered={(row) => row.name === props.hovered}
      onSort={(key) => {
        const { key: now, down } = readSort(props.sort);
        const sort = now === key ? `${down ? '' : '-'}${key}` : key === 'name' ? 'name' : `-${key}`;
        props.onSort(sort === '-self' ? '' : sort);
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
  );
}

function filterKeepingOrder(rows: readonly TopRow[], filter: string, names: readonly string[]): readonly TopRow[] {
  if (filter.trim() === '') return rows;
  const hits = new Set(filterItems(rows, filter, ({ name }) => names[name] ?? ''));
  return rows.filter((row) => hits.has(row));
}
