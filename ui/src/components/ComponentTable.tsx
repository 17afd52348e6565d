// The components as a table with the data of the graph. It can be sorted by any column and filtered.

import { createMemo } from 'solid-js';
import { formatSpan, formatValue } from '../lib/format.ts';
import type { Component, Flows, HealthState } from '../pipeline/model.ts';
import { Grid, type Column } from './Grid.tsx';

const RANK: Record<HealthState, number> = { exited: 0, unhealthy: 1, unknown: 2, healthy: 3 };

export interface ComponentTableProps {
  components: readonly Component[];
  flows: Flows;
  selected: string;
  /** Column to sort by, with a leading `-` for descending order; empty for the order of the configuration. */
  sort: string;
  onSort: (sort: string) => void;
  onSelect: (id: string) => void;
}

interface Row {
  component: Component;
  in: number | null;
  out: number | null;
  targets: number;
}

const COMPARE: Record<string, (a: Row, b: Row) => number> = {
  name: (a, b) => a.component.id.localeCompare(b.component.id),
  health: (a, b) => RANK[a.component.health.state] - RANK[b.component.health.state],
  in: (a, b) => (a.in ?? -1) - (b.in ?? -1),
  out: (a, b) => (a.out ?? -1) - (b.out ?? -1),
  targets: (a, b) => a.targets - b.targets,
  since: (a, b) => b.component.health.updated - a.component.health.updated,
};

const rate = (value: number | null): string => (value === null ? '' : formatValue(value, 'count/s'));
const COLUMNS: readonly Column<Row>[] = [
  { key: 'name', label: 'Component', class: 'clip', title: ({ component }) => component.id, cell: (row) => row().component.localId },
  { key: 'health', label: 'Health', cell: (row) => <span class={`health-${row().component.health.state}`}>{row().component.health.state}</span> },
  { key: 'reason', label: 'Reason', class: 'clip muted reason', fixed: true, title: ({ component }) => component.health.message, cell: (row) => row().component.health.message },
  { key: 'targets', label: 'Targets', class: 'number', cell: (row) => (row().targets < 0 ? '' : formatValue(row().targets, 'count')) },
  { key: 'in', label: 'In', class: 'number', cell: (row) => rate(row().in) },
  { key: 'out', label: 'Out', class: 'number', cell: (row) => rate(row().out) },
  {
    key: 'since',
    label: 'Since',
    class: 'number muted since',
    cell: (row) => (row().component.health.updated > 0 ? formatSpan(Math.max(0, Date.now() - row().component.health.updated)) : ''),
  },
];

export function ComponentTable(props: ComponentTableProps) {
  const key = (): string => props.sort.replace(/^-/, '');
  const down = (): boolean => props.sort.startsWith('-');
  const rows = createMemo(() => {
    const all = props.components.map((component): Row => ({ component, ...props.flows.through(component.id), targets: props.flows.targetsOf(component.id) }));
    const by = COMPARE[key()];
    if (by) all.sort((a, b) => (down() ? -1 : 1) * by(a, b) || a.component.id.localeCompare(b.component.id));
    return all;
  });
  return (
    <Grid
      label="Components"
      class="component-table"
      columns={COLUMNS}
      rows={rows()}
      height={28}
      sort={{ key: key(), down: down() }}
      none="No component matches the filter"
      selected={({ component }) => component.id === props.selected}
      onSort={(column) => props.onSort(key() !== column ? column : down() ? '' : `-${column}`)}
      onSelect={({ component }) => props.onSelect(component.id)}
    />
  );
}
