// Single profiles as rows: time, value, labels.

import { explainUnit, formatMoment, formatValue, formatWhole } from '../lib/format.ts';
import type { Sample, SampleData } from '../models/samples.ts';
import { labelText } from './dots.ts';
import { Grid, type Column } from './Grid.tsx';

export function SampleTable(props: { data: SampleData; opened: string; onOpen: (sample: Sample) => void }) {
  const columns: Column<Sample>[] = [
    { key: 'time', label: 'Time', fixed: true, cell: (row) => formatMoment(row().time, true) },
    { key: 'total', label: 'Value', fixed: true, class: 'number', title: () => explainUnit(props.data.type.unit), cell: (row) => formatValue(row().total, props.data.type.unit) },
    { key: 'count', label: 'Stacks', fixed: true, class: 'number', cell: (row) => formatWhole(row().count) },
    { key: 'duration', label: 'Duration', fixed: true, class: 'number', title: () => explainUnit('ns'), cell: (row) => (row().duration > 0 ? formatValue(row().duration, 'ns') : '') },
    { key: 'labels', label: 'Labels', fixed: true, class: 'ellipsis', title: labelText, cell: (row) => labelText(row()) },
  ];
  return <Grid label="Profiles" class="sample-grid" columns={columns} rows={props.data.samples} height={24} none={props.data.cells.length > 0 ? 'Too many profiles for a table: click a cell of the heat map above to zoom in' : 'No profiles'} selected={(row) => row.key === props.opened} onSelect={props.onOpen} />;
}
