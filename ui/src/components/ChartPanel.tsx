// A chart with its head: the title, the mean and largest value, the label that splits the lines, and a switch to a table. The chart shows
// the range for which the lines were loaded. If newer lines cannot be loaded, the panel shows the error.

import { For, Show, type JSX } from 'solid-js';
import { formatRange, type Unit } from '../lib/format.ts';
import type { Loader } from '../lib/loader.ts';
import { cssColour } from '../lib/series.ts';
import type { ChartData } from '../models/chart.ts';
import { Amount } from './Amount.tsx';
import { Chart, type RangeAction } from './Chart.tsx';
import { ChartTable } from './ChartTable.tsx';
import { Icon } from './Icon.tsx';
import { Picker } from './Picker.tsx';

export interface ChartPanelProps {
  /** Title of the requested chart, shown until its data arrives. */
  title: string;
  chart: Loader<ChartData>;
  /** Labels that can split the lines. */
  labels: Loader<string[]>;
  by: string;
  table: boolean;
  /** Note beside the title. */
  note?: string | undefined;
  onBy: (label: string) => void;
  onTable: (table: boolean) => void;
  /** Further controls in the head. */
  tools?: JSX.Element;
  /** Actions for a selected range. */
  actions: readonly RangeAction[];
  /** Called with a label and one of its values when the user selects one line, to filter by this value. */
  onOnly: (label: string, value: string) => void;
}

export function ChartPanel(props: ChartPanelProps) {
  const data = props.chart.data;
  const unit = (): Unit => data()?.query.type.chartUnit ?? 'count';
  const title = (): string => data()?.query.type.chartTitle ?? props.title;
  const labels = () => [{ value: '', label: 'no label' }, ...(props.labels.data() ?? []).map((name) => ({ value: name, label: name }))];
  return (
    <section class="panel" aria-label="Over time">
      <div class="panel-head">
        <h2>{title()}</h2>
        <Show when={data()?.lines.length}>
          <div class="facts">
            <span>mean <Amount value={data()?.mean ?? 0} unit={unit()} /></span>
            <span>max <Amount value={data()?.max ?? 0} unit={unit()} /></span>
            <Show when={props.note}><span>{props.note}</span></Show>
          </div>
        </Show>
        <span class="spring" />
        {props.tools}
        <Picker label="Split by" placeholder="Find a label" value={props.by} shown={props.by || 'no label'} choices={labels()} loading={props.labels.pending()} error={props.labels.error()} onPick={(by) => props.onBy(by)} />
        <button type="button" class="button square" aria-label="Show chart as table" title="Show chart as table" aria-pressed={props.table} onClick={() => props.onTable(!props.table)}><Icon name="table" /></button>
      </div>
      <Show when={props.chart.error() && data()}>
        {(old) => (
          <div class="banner" role="alert">
            <span>Cannot load the chart: {props.chart.error()?.message}. The chart shows {formatRange(old().range)}.</span>
            <button type="button" class="button" onClick={props.chart.retry}>Try again</button>
          </div>
        )}
      </Show>
      <Show
        when={!props.chart.error() || data()}
        fallback={<div class="chart"><div class="chart-empty"><span role="alert">{props.chart.error()?.message} <button type="button" class="button" onClick={props.chart.retry}>Try again</button></span></div></div>}
      >
        <Show when={data()} fallback={<div class="chart"><div class="skeleton chart-skeleton" /></div>}>
          {(found) => (
            <div classList={{ stale: props.chart.pending() || props.chart.error() !== undefined }} aria-busy={props.chart.pending()}>
              <Show when={!props.table} fallback={<ChartTable lines={found().lines} step={found().step} unit={unit()} title={title()} />}>
                <Chart lines={found().lines} range={found().range} step={found().step} unit={unit()} title={title()} actions={props.actions} />
              </Show>
              <Show when={found().by !== ''}>
                <div class="legend" role="group" aria-label="Lines">
                  <For each={found().lines}>
                    {(line) => (
                      <button type="button" title={line.value === undefined ? '' : `Only ${found().by}=${line.value}`} disabled={line.value === undefined} onClick={() => props.onOnly(found().by, line.value ?? '')}>
                        <i class="swatch" style={{ background: cssColour(line) }} />
                        <span class="text">{line.label}</span>
                      </button>
                    )}
                  </For>
                </div>
              </Show>
            </div>
          )}
        </Show>
      </Show>
    </section>
  );
}
