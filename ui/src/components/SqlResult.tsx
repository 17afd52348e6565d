// The rows of a statement as a table, as lines, or as bars.

import { createMemo, For, Show } from 'solid-js';
import { formatWhole } from '../lib/format.ts';
import { cssColour } from '../lib/series.ts';
import { barsOf, cellText, columnsOf, linesOf } from '../lib/sql-shape.ts';
import type { SqlRow } from '../lib/sql.ts';
import { Chart } from './Chart.tsx';
import { Grid, type Column } from './Grid.tsx';

export function SqlTable(props: { rows: readonly SqlRow[] }) {
  const columns = createMemo((): Column<SqlRow>[] => columnsOf(props.rows).map((name) => {
    const right = props.rows.every((row) => row[name] === null || typeof row[name] === 'number');
    return { key: name, label: name, fixed: true, class: right ? 'number ellipsis' : 'ellipsis', title: (row) => cellText(row[name]), cell: (row) => cellText(row()[name]) };
  }));
  return <div class="sql-table" style={{ '--columns': `${columns().length}` }}><Grid label="Rows" class="sql-grid" columns={columns()} rows={props.rows} height={24} none="No rows" of={props.rows} /></div>;
}

export function SqlLines(props: { rows: readonly SqlRow[] }) {
  const shape = createMemo(() => linesOf(props.rows));
  return (
    <Show when={shape()} fallback={<p class="muted more">Lines need a column with times and one with numbers.</p>}>
      {(found) => (
        <div class="sql-lines">
          <Chart lines={found().lines} range={found().range} step={found().step} unit="count" title="Rows" actions={[]} />
          <div class="legend"><For each={found().lines}>{(line) => <span class="item"><i class="swatch" style={{ background: cssColour(line) }} /><span class="text">{line.label}</span></span>}</For></div>
        </div>
      )}
    </Show>
  );
}

export function SqlBars(props: { rows: readonly SqlRow[] }) {
  const shape = createMemo(() => barsOf(props.rows));
  const most = (): number => Math.max(1e-300, ...(shape()?.bars ?? []).map(({ value }) => Math.abs(value)));
  const text = (value: number): string => (Number.isInteger(value) ? formatWhole(value) : String(Number(value.toPrecision(4))));
  return (
    <Show when={shape()} fallback={<p class="muted more">Bars need a column with names and one with numbers.</p>}>
      {(found) => (
        <div class="sql-bars" tabindex="0" role="region" aria-label={`Bars of ${found().column}`}>
          <table>
            <tbody>
              <For each={found().bars}>
                {(bar) => (
                  <tr>
                    <th scope="row" title={bar.label}>{bar.label}</th>
                    <td class="number">{text(bar.value)}</td>
                    <td class="bar-cell"><i style={{ width: `${(Math.abs(bar.value) / most()) * 100}%` }} /></td>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </div>
      )}
    </Show>
  );
}
