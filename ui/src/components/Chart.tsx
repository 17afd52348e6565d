// The time chart: one line or one a value of a label, on uPlot. Hover shows all values at that time, a drag selects a
// range and offers what can be done with it. Gaps are gaps.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from 'solid-js';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatClock, formatMoment, formatSpan, formatValue, type Unit } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import { alignLines } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import { Icon } from './Icon.tsx';

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, exponent) => 2 ** exponent);

export interface Line {
  label: string;
  /** Value of the label that splits the chart; undefined for the rest of them. */
  value?: string;
  colour: string;
  points: readonly (readonly [number, number])[];
}

export interface ChartProps {
  lines: readonly Line[];
  range: Range;
  /** Seconds between points. */
  step: number;
  unit: Unit;
  title: string;
  onZoom: (range: Range) => void;
}

export function Chart(props: ChartProps) {
  let host!: HTMLDivElement;
  let plot: uPlot | undefined;
  const [selection, setSelection] = createSignal<{ left: number; range: Range }>();
  const [hover, setHover] = createSignal<{ index: number; x: number; y: number }>();
  const data = createMemo(() => alignLines(props.lines, props.step));

  const clear = (): void => {
    setSelection(undefined);
    plot?.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  };

  const build = (): void => {
    plot?.destroy();
    setSelection(undefined);
    setHover(undefined);
    const style = getComputedStyle(host);
    const colour = (name: string): string => {
      // Canvas does not resolve light-dark(); a probe element does.
      host.style.setProperty('outline-color', `var(${name})`);
      return style.outlineColor;
    };
    const muted = colour('--muted');
    const line = colour('--line');
    const font = `11px ${style.fontFamily}`;
    const single = props.lines.length === 1;
    const options: uPlot.Options = {
      width: Math.max(120, host.clientWidth),
      height: Math.max(80, host.clientHeight),
      legend: { show: false },
      padding: [8, 24, 0, 0],
      cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 4 }, points: { size: 6 } },
      scales: { x: { time: true, range: () => [props.range.start / 1000, props.range.end / 1000] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
      axes: [
        {
          stroke: muted, font, size: 26, gap: 4, space: 72,
          grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 },
          values: (_, splits, __, ___, increment) => splits.map((seconds) => {
            const date = new Date(seconds * 1000);
            const midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
            return increment >= 86_400 || midnight ? formatMoment(seconds * 1000).replace(/ [\d:]+$/, '') : formatClock(seconds * 1000, increment < 60);
          }),
        },
        {
          stroke: muted, font, size: 64, gap: 6, space: 28,
          // Bytes are counted in powers of two, and so are their ticks.
          ...(props.unit.startsWith('bytes') ? { incrs: POWERS_OF_TWO } : {}),
          grid: { stroke: line, width: 1 }, ticks: { show: false },
          values: (_, splits) => splits.map((value) => (value === 0 ? '0' : formatValue(value, props.unit))),
        },
      ],
      series: [
        {},
        ...props.lines.map((entry): uPlot.Series => {
          const stroke = entry.colour.startsWith('--') ? colour(entry.colour) : entry.colour;
          return {
            label: entry.label,
            stroke,
            width: 1.5,
            ...(single ? { fill: stroke.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)') } : {}),
            spanGaps: false,
            // A point alone between two holes would not be seen as a line.
            points: {
              show: true, size: 4, fill: stroke,
              filter: (self, series) => {
                const row = self.data[series]!;
                const alone: number[] = [];
                for (let index = 0; index < row.length; index += 1) if (row[index] != null && row[index - 1] == null && row[index + 1] == null) alone.push(index);
                return alone;
              },
            },
          };
        }),
      ],
      hooks: {
        setSelect: [
          (self) => {
            if (self.select.width < 4) return clear();
            const start = self.posToVal(self.select.left, 'x') * 1000;
            const end = self.posToVal(self.select.left + self.select.width, 'x') * 1000;
            const left = self.over.offsetLeft + self.select.left + self.select.width / 2;
            setSelection({ left: Math.max(110, Math.min(host.clientWidth - 110, left)), range: { start: Math.round(start), end: Math.round(Math.max(end, start + 1000)) } });
            setHover(undefined);
          },
        ],
        setCursor: [
          (self) => {
            const index = self.cursor.idx;
            if (index == null || (self.cursor.left ?? -1) < 0) return void setHover(undefined);
            const box = self.over.getBoundingClientRect();
            setHover({ index, x: box.left + self.cursor.left!, y: box.top });
          },
        ],
      },
    };
    plot = new uPlot(options, data() as uPlot.AlignedData, host);
  };

  onMount(() => {
    const observer = new ResizeObserver(() => plot?.setSize({ width: Math.max(120, host.clientWidth), height: Math.max(80, host.clientHeight) }));
    observer.observe(host);
    createEffect(on([data, () => props.unit, () => props.range, dark], () => queueMicrotask(build)));
    onCleanup(() => {
      observer.disconnect();
      plot?.destroy();
    });
  });

  const rows = createMemo(() => {
    const at = hover();
    if (!at) return [];
    return props.lines
      .map((line, index) => ({ line, value: data()[index + 1]?.[at.index] ?? null }))
      .filter((row): row is { line: Line; value: number } => row.value !== null)
      .sort((a, b) => b.value - a.value);
  });
  const tipX = (): number => {
    const x = hover()?.x ?? 0;
    return x > innerWidth - 300 ? x - 16 - 240 : x + 16;
  };

  return (
    <div
      class="chart"
      role="img"
      aria-label={`${props.title} over time, ${props.lines.length === 1 ? 'one line' : `${props.lines.length} lines`}`}
    >
      <div ref={host} class="chart-host" />
      <Show when={selection()}>
        {(chosen) => (
          <div class="selection" role="group" aria-label="Selected range" style={{ left: `${chosen().left}px` }}>
            <span class="span">{formatClock(chosen().range.start, true)} – {formatClock(chosen().range.end, true)} · {formatSpan(chosen().range.end - chosen().range.start)}</span>
            <button type="button" class="button primary" onClick={() => props.onZoom(chosen().range)}><Icon name="search" />Zoom</button>
            <button type="button" class="button plain" onClick={clear}>Clear</button>
          </div>
        )}
      </Show>
      <Show when={hover() && !selection() && rows().length > 0}>
        <div class="tooltip chart-tip" style={{ left: `${tipX()}px`, top: `${hover()!.y + 8}px` }}>
          <div class="muted">{formatMoment(data()[0]![hover()!.index]! * 1000, props.step < 60)}</div>
          <For each={rows()}>
            {(row) => (
              <div class="row">
                <i class="swatch" style={{ background: row.line.colour.startsWith('--') ? `var(${row.line.colour})` : row.line.colour }} />
                <span>{row.line.label}</span>
                <span class="number">{formatValue(row.value, props.unit)}</span>
              </div>
            )}
          </For>
        </div>
      </Show>
    </div>
  );
}
