// One side of a comparison: its filters, its range, and a chart in which the user selects another range by dragging.

import { Show, type JSX } from 'solid-js';
import { formatRange, formatSpan, type Unit } from '../lib/format.ts';
import type { Matcher } from '../lib/selector.ts';
import { meanOf } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import type { Side } from '../models/compare.ts';
import { Amount } from './Amount.tsx';
import { Chart } from './Chart.tsx';
import { Filters } from './Filters.tsx';

export interface CompareSideProps {
  name: 'Baseline' | 'Comparison';
  side: Side;
  /** The largest value of both charts. */
  top: number;
  /** Controls before the filters. */
  children?: JSX.Element;
  onFilters: (matchers: Matcher[]) => void;
  onRange: (range: Range) => void;
}

export function CompareSide(props: CompareSideProps) {
  const { selection, range, window, chart } = props.side;
  const mean = (): { value: number; unit: Unit } | null => {
    const data = chart.data();
    const { start, end } = range();
    const points = data?.lines[0]?.points.filter(([ms]) => ms > start && ms - data.step * 1000 < end) ?? [];
    return data && points.length > 0 ? { value: meanOf(points), unit: data.query.type.chartUnit } : null;
  };
  return (
    <section class="panel side" aria-label={props.name}>
      <div class="panel-head">
        <h2>{props.name}</h2>
        {props.children}
        <Filters service={selection.service()} matchers={selection.matchers().list} range={window()} onChange={props.onFilters} />
      </div>
      <div class="facts side-facts">
        <span>{formatRange(range())}</span>
        <span>{formatSpan(range().end - range().start)}</span>
        <Show when={mean()}>{(found) => <span>mean <Amount value={found().value} unit={found().unit} /></span>}</Show>
      </div>
      <Show when={chart.error()}>
        {(error) => <div class="banner" role="alert"><span>Cannot load the chart: {error().message}</span><button type="button" class="button" onClick={chart.retry}>Try again</button></div>}
      </Show>
      <Show when={chart.data()} fallback={<div class="chart"><div class="skeleton chart-skeleton" /></div>}>
        {(found) => (
          <div classList={{ stale: chart.pending() || chart.error() !== undefined }} aria-busy={chart.pending()}>
            <Chart
              id={`chart-${props.name.toLowerCase()}`}
              lines={found().lines}
              range={found().range}
              step={found().step}
              unit={found().query.type.chartUnit}
              title={`${props.name}: ${found().query.type.chartTitle}`}
              top={props.top}
              marked={range().start > window().start || range().end < window().end ? range() : undefined}
              actions={[{ label: `Use as ${props.name.toLowerCase()}`, icon: 'compare', run: props.onRange }]}
            />
          </div>
        )}
      </Show>
    </section>
  );
}
