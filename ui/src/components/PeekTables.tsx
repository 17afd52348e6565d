// A function between a table of its callers and a table of its callees. Each row has the value of the calls between the
// function and this caller or callee. Enter or a click switches to the function of a row.

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
    number('value', 'Call', ({ value }) => amount(value), 'Value of the calls between the selected function and the function in this row'),
    number('share', 'Share', ({ value }) => share(value, found().total), 'Value of these calls as a share of the total of the selected function'),
    number('self', 'Self', ({ self }) => amount(self), 'Value of the function in this row without its callees, over all its calls'),
    number('total', 'Total', ({ total }) => amount(total), 'Value of the function in this row with its callees, over all its calls'),
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
      {table('Callers', 'Called by', () => found().callers, 'No callers: stacks begin with this function')}
      <div class="part-head">
        <h2 title={name()}>{name()}</h2>
        <span class="facts">
          <span>self <b>{amount(found().self)}</b> {share(found().self, props.tree.flame.sum)}</span>
          <span>total <b>{amount(found().total)}</b> {share(found().total, props.tree.flame.sum)}</span>
          {found().root > 0 && found().callers.length > 0 ? <span>as root <b>{amount(found().root)}</b></span> : ''}
        </span>
      </div>
      {table('Callees', 'Calls', () => found().callees, 'No callees in this profile')}
    </div>
  );
}
