// The legend of the dots and cells in the Samples view.

import { createMemo, For, Match, Show, Switch } from 'solid-js';
import { formatValue, formatWhole } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import { MOST_DOTS, type SampleData } from '../models/samples.ts';
import { labelText, radiusOf, seriesColours, valueColour, type DotStyle } from './dots.ts';

/** Maximum number of series that the legend names. */
const NAMED = 6;
const PARTS = [0, 0.25, 0.5, 0.75, 1] as const;

export function DotLegend(props: { data: SampleData; style: DotStyle }) {
  const colours = createMemo(() => seriesColours(props.data.samples));
  const named = createMemo(() => {
    const first = new Map(props.data.samples.map((sample) => [sample.series, sample]));
    return [...colours()].slice(0, NAMED).map(([series, colour]) => ({ colour, text: labelText(first.get(series) ?? { labels: {} }) || 'no labels' }));
  });
  const value = (part: number): string => formatValue(props.data.most * part, props.data.type.unit);
  const fullest = (): number => props.data.cells.reduce((most, { count }) => Math.max(most, count), 1);
  return (
    <div class="legend dot-legend" role="group" aria-label="Legend">
      <Switch>
        <Match when={props.data.cells.length > 0}>
          <span class="item">profiles in a cell: 1 <span class="scale"><For each={PARTS}>{(part) => <i class="heat" style={{ opacity: 0.15 + 0.85 * Math.sqrt(part) }} />}</For></span> {formatWhole(fullest())}</span>
          <span class="muted">more than {formatWhole(MOST_DOTS)} profiles are shown as a heat map; zoom in for dots</span>
        </Match>
        <Match when={props.style === 'size'}>
          <For each={[0.05, 0.25, 1]}>
            {(part) => {
              const radius = radiusOf('size', part, 1);
              return <span class="item"><svg width={radius * 2 + 2} height={radius * 2 + 2} aria-hidden="true"><circle cx={radius + 1} cy={radius + 1} r={radius} /></svg>{value(part)}</span>;
            }}
          </For>
          <span class="muted">the area of a dot shows its value, the colour its series</span>
        </Match>
        <Match when={props.style === 'value'}>
          <span class="item">{value(0)} <span class="scale"><For each={PARTS}>{(part) => <i style={{ background: valueColour(part, dark()) }} />}</For></span> {value(1)}</span>
          <span class="muted">a stronger colour means a larger value</span>
        </Match>
        <Match when={colours().size > 0}>
          <For each={named()}>{({ colour, text }) => <span class="item" title={text}><i class="swatch" style={{ background: colour }} /><span class="text">{text}</span></span>}</For>
          <Show when={colours().size > NAMED}><span class="muted">{formatWhole(colours().size - NAMED)} more series</span></Show>
        </Match>
      </Switch>
    </div>
  );
}
