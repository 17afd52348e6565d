// The values of a time chart as a table, the newest first, for readers who cannot see the chart.

import { createMemo } from 'solid-js';
import { formatMoment, formatValue, type Unit } from '../lib/format.ts';
import { alignLines, type Line } from '../lib/series.ts';
import { Grid, type Column } from './Grid.tsx';

interface Row {
  /** Unix time in milliseconds. */
  time: number;
  /** The value of each line, null where a line has none. */
  values: readonly (number | null)[];
}

export function ChartTable(props: { lines: readonly Line[]; step: number; unit: Unit; title: string }) {
  const rows = createMemo((): Row[] => {
    const [times = [], ...lines] = alignLines(props.lines, props.step);
    return times.map((time, at) => ({ time: (time ?? 0) * 1000, values: lines.map((line) => line[at] ?? null) })).reverse();
  });
  const columns = createMemo((): Column<Row>[] => [
    { key: 'time', label: 'Time', fixed: true, cell: (row) => formatMoment(row().time, true) },
    ...props.lines.map(({ label }, line): Column<Row> => ({
      key: `${line}`,
      label,
      fixed: true,
      class: 'number',
      cell: (row) => {
        const value = row().values[line] ?? null;
        return value === null ? '' : formatValue(value, props.unit);
      },
    })),
  ]);
  return (
    <div class="chart chart-table" style={{ '--columns': `${props.lines.length}` }}>
      <Grid label={`${props.title} over time`} columns={columns()} rows={rows()} height={24} none="No values" />
    </div>
  );
}
