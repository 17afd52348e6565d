// A function between two tables: who calls it and what it calls, each with the value of that call. Enter or a click goes on
// to the function of a row.

import { createMemo, type Accessor } from 'solid-js';
import { shortName } from '../flame/packages.ts';
import { peek, type PeekRow } from '../flame/peek.ts';
import { formatShare } from '../lib/format.ts';
import { Grid, type Column } from './Grid.tsx';
import type { PartProps } from './PartProps.ts';

export function PeekTables(props: PartProps) {
  const found = createMemo(() => peek(props.tree.flame, props.name));
  const name = (): string => props.tree.flame.names[props.name] ?? '';
  const nameOf = (row: PeekRow): string => props.tree.flame.names[row.name] ?? '';
  const amount = (value: number): string => props.look.amount?.(value) ?? '';
  const share = (value: number, of: number): string => formatShare(of > 0 ? value / of : 0);
  const number = (key: string, label: string, text: (row: PeekRow) => string, title = ''): Column<PeekRow> => ({ key, label, class: 'number', fixed: true, cell: (row: Accessor<PeekRow>) => text(row()), title: () => title });
  const columns = (called: string): Column<PeekRow>[] => [
    {
      key: 'name',
      label: called,
      class: 'name-cell',
      fixed: true,
      title: nameOf,
      cell: (row) => <><i class="swatch" style={{ background: props.look.swatch(row().name) }} /><span class="text">{shortName(nameOf(row()))}</span></>,
    },
    number('value', 'Call', ({ value }) => amount(value), 'What the call has, with all that it leads to'),
    number('share', 'Share', ({ value }) => share(value, found().total), 'Of the function that is looked at'),
    number('self', 'Self', ({ self }) => amount(self), 'Of the function of this row, wherever it is called'),
    number('total', 'Total', ({ total }) => amount(total), 'Of the function of this row, wherever it is called'),
  ];
  const table = (label: string, head: string, rows: () => readonly PeekRow[], none: string) => (
    <Grid
      label={label}
      class="peek-grid"
      columns={columns(head)}
      rows={rows()}
      height={24}
      none={none}
      of={name()}
      hovered={(row) => row.name === props.hovered}
      onSelect={(row) => props.onWalk(nameOf(row))}
      onHover={(row) => props.onHover(row?.name ?? -1)}
      onMenu={(row, x, y) => props.onMenu(row.name, x, y)}
    />
  );
  return (
    <div class="peek">
      {table('Callers', 'Called by', () => found().callers, 'Nobody calls it: stacks begin with it')}
      <div class="part-head">
        <h2 title={name()}>{name()}</h2>
        <span class="facts">
          <span>self <b>{amount(found().self)}</b> {share(found().self, props.tree.flame.sum)}</span>
          <span>total <b>{amount(found().total)}</b> {share(found().total, props.tree.flame.sum)}</span>
          {found().root > 0 && found().callers.length > 0 ? <span>begins stacks of <b>{amount(found().root)}</b></span> : ''}
        </span>
      </div>
      {table('Callees', 'Calls', () => found().callees, 'It calls nothing that is seen')}
    </div>
  );
}
