// A Prometheus metric above a profile's chart, over the same time. A click on a point opens the profile of that time.

import { createEffect, createSignal, For, on, onMount, Show } from 'solid-js';
import { formatMoment, formatValue } from '../lib/format.ts';
import { cssColour } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import { around, type MetricModel } from '../models/metric.ts';
import { Chart } from './Chart.tsx';
import { Icon } from './Icon.tsx';

export interface MetricPanelProps {
  metric: MetricModel;
  query: string;
  /** The range of the profile's chart, which may begin later than the requested range. */
  range: Range;
  onQuery: (query: string) => void;
  /** Called to open the profile of a range. */
  onRange: (range: Range) => void;
  onClose: () => void;
}

export function MetricPanel(props: MetricPanelProps) {
  let field!: HTMLInputElement;
  const [typed, setTyped] = createSignal(props.query);
  const data = props.metric.data;
  createEffect(on(() => props.query, setTyped, { defer: true }));
  onMount(() => props.query === '' && field.focus());
  const open = (time: number): void => props.onRange(around(time, data.data()?.step ?? 15));
  return (
    <section class="panel metric" aria-label="Metric">
      <form class="panel-head" onSubmit={(event) => {
        event.preventDefault();
        props.onQuery(typed().trim());
      }}>
        <h2>Metric</h2>
        <input ref={field} class="field metric-query" aria-label="PromQL query" placeholder="rate(http_requests_total[1m])" spellcheck={false} autocomplete="off" value={typed()} onInput={(event) => setTyped(event.currentTarget.value)} />
        <button type="submit" class="button" disabled={typed().trim() === '' || typed().trim() === props.query}>Show</button>
        <Show when={data.data()?.peak}>
          {(peak) => <button type="button" class="button" title="Open the profile at the highest point" onClick={() => open(peak().time)}><span>Profile at the peak: <b>{formatValue(peak().value, 'count')}</b> at {formatMoment(peak().time, true)}</span></button>}
        </Show>
        <span class="spring" />
        <button type="button" class="button plain square" aria-label="Remove the metric" title="Remove the metric" onClick={() => props.onClose()}><Icon name="close" /></button>
      </form>
      <Show when={data.error()}>
        {(error) => <div class="banner" role="alert"><span>{data.data() ? 'The refresh failed, an older metric is shown: ' : ''}{error().message}</span><button type="button" class="button" onClick={data.retry}>Try again</button></div>}
      </Show>
      <Show when={props.query !== '' && (data.data() || !data.error())}>
        <Show when={data.data()} fallback={<div class="chart"><div class="skeleton chart-skeleton" /></div>}>
          {(found) => (
            <Show when={found().lines.length > 0} fallback={<div class="chart"><div class="chart-empty">The query has no data in this range</div></div>}>
              <div classList={{ stale: data.pending() }} aria-busy={data.pending()}>
                <Chart id="chart-metric" lines={found().lines} range={props.range} step={found().step} unit="count" title="Metric" actions={[{ label: 'Zoom', icon: 'search', run: (range) => props.onRange(range) }]} onPoint={open} />
                <Show when={found().lines.length > 1}>
                  <div class="legend">
                    <For each={found().lines}>{(line) => <span class="item"><i class="swatch" style={{ background: cssColour(line) }} />{line.label}</span>}</For>
                    <Show when={found().others > 0}><span class="item muted">{found().others} smaller lines are not shown</span></Show>
                  </div>
                </Show>
              </div>
            </Show>
          )}
        </Show>
      </Show>
    </section>
  );
}
