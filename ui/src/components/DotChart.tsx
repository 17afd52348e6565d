// Single profiles as dots over time, coloured by series, or sized or coloured by value. Many profiles become a heat map. A click
// on a dot opens its profile. A click on a cell of the heat map zooms to the time of the cell. The table below has the same data.

import { createMemo, createSignal, Show } from 'solid-js';
import { axisFormat, formatClock, formatDay, formatMoment, formatValue, formatWhole } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import type { Range } from '../lib/time.ts';
import { zone } from '../lib/zone.ts';
import { ROWS, type Cell, type Sample, type SampleData } from '../models/samples.ts';
import { createCanvas, type Size } from './canvas.ts';
import { labelText, radiusOf, seriesColours, valueColour, type DotStyle } from './dots.ts';

export interface DotChartProps {
  data: SampleData;
  style: DotStyle;
  /** Key of the opened profile. */
  opened: string;
  onOpen: (sample: Sample) => void;
  onZoom: (range: Range) => void;
}

const [LEFT, RIGHT, TOP, BOTTOM] = [72, 16, 14, 22];
/** Distance in pixels at which the pointer still hits a dot. */
const NEAR = 9;

export function DotChart(props: DotChartProps) {
  let box!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  const [hover, setHover] = createSignal<{ sample?: Sample; cell?: Cell; x: number; y: number }>();
  const colours = createMemo(() => seriesColours(props.data.samples));
  // Small dots are drawn over large ones.
  const ordered = createMemo(() => (props.style === 'size' ? [...props.data.samples].sort((a, b) => b.total - a.total) : props.data.samples));
  const most = (): number => props.data.most || 1;
  const x = (time: number, { width }: Size): number => LEFT + ((time - props.data.range.start) / (props.data.range.end - props.data.range.start)) * (width - LEFT - RIGHT);
  const y = (total: number, { height }: Size): number => height - BOTTOM - (total / most()) * (height - TOP - BOTTOM);
  const cellBox = (cell: Cell, size: Size) => {
    const row = (size.height - TOP - BOTTOM) / ROWS;
    const left = Math.max(LEFT, x(cell.time, size));
    return { left, top: size.height - BOTTOM - (cell.row + 1) * row, width: Math.max(2, Math.min(size.width - RIGHT, x(cell.time + props.data.step * 1000, size)) - left), height: row };
  };

  const paint = (context: CanvasRenderingContext2D, size: Size): void => {
    const style = getComputedStyle(box);
    const colour = (name: string): string => {
      box.style.setProperty('text-decoration-color', `var(${name})`);
      return getComputedStyle(box).textDecorationColor;
    };
    const [paper, line, muted, accent, text] = ['--paper', '--line', '--muted', '--accent', '--text'].map(colour) as [string, string, string, string, string];
    context.fillStyle = paper;
    context.fillRect(0, 0, size.width, size.height);
    context.font = `11px ${style.fontFamily}`;
    context.textBaseline = 'middle';
    const format = axisFormat(most(), props.data.type.unit);
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(most() * part, size)) + 0.5;
      context.fillStyle = line;
      context.fillRect(LEFT, at, size.width - LEFT - RIGHT, 1);
      context.fillStyle = muted;
      context.textAlign = 'right';
      context.fillText(format(Number((most() * part).toPrecision(3))), LEFT - 6, at);
    }
    const { start, end } = props.data.range;
    const ticks = Math.max(1, Math.floor((size.width - LEFT - RIGHT) / 110));
    context.textAlign = 'center';
    for (let tick = 0; tick < ticks; tick += 1) {
      const time = start + ((tick + 0.5) * (end - start)) / ticks;
      context.fillText(end - start > 2 * 86_400_000 ? formatDay(time) : formatClock(time, end - start < 300_000), x(time, size), size.height - BOTTOM / 2);
    }
    const fullest = props.data.cells.reduce((max, { count }) => Math.max(max, count), 1);
    for (const cell of props.data.cells) {
      const at = cellBox(cell, size);
      context.globalAlpha = 0.15 + 0.85 * Math.sqrt(cell.count / fullest);
      context.fillStyle = accent;
      context.fillRect(at.left, at.top, at.width, at.height);
    }
    context.globalAlpha = 1;
    const dot = (sample: Sample, more: number): void => {
      context.beginPath();
      context.arc(x(sample.time, size), y(sample.total, size), radiusOf(props.style, sample.total, most()) + more, 0, 2 * Math.PI);
      context.fillStyle = props.style === 'value' ? valueColour(sample.total / most(), dark()) : (colours().get(sample.series) ?? accent);
      context.fill();
    };
    context.globalAlpha = props.style === 'size' ? 0.75 : 1;
    for (const sample of ordered()) dot(sample, 0);
    context.globalAlpha = 1;
    for (const sample of [props.data.samples.find(({ key }) => key === props.opened), hover()?.sample]) {
      if (!sample) continue;
      dot(sample, 2);
      context.strokeStyle = text;
      context.lineWidth = 1.5;
      context.stroke();
    }
  };
  const size = createCanvas({ box: () => box, canvas: () => canvas, paint, watch: () => void [ordered(), props.data, props.style, props.opened, hover(), dark(), zone(), colours()] });

  const under = (event: PointerEvent | MouseEvent): { sample?: Sample; cell?: Cell } => {
    const at = canvas.getBoundingClientRect();
    const [left, top] = [event.clientX - at.left, event.clientY - at.top];
    let sample: Sample | undefined;
    let best = NEAR;
    for (const one of props.data.samples) {
      const away = Math.hypot(x(one.time, size()) - left, y(one.total, size()) - top) - radiusOf(props.style, one.total, most());
      if (away < best) [best, sample] = [away, one];
    }
    const cell = props.data.cells.find((one) => {
      const its = cellBox(one, size());
      return left >= its.left && left < its.left + its.width && top >= its.top && top < its.top + its.height;
    });
    return { ...(sample ? { sample } : {}), ...(cell ? { cell } : {}) };
  };
  const tipLeft = (): number => {
    const at = hover()?.x ?? 0;
    return at > innerWidth - 320 ? at - 280 : at + 14;
  };
  return (
    <div class="chart dot-chart" ref={box}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${formatWhole(props.data.count)} profiles by time and value; the table has the same data`}
        data-dots={props.data.samples.length}
        data-style={props.style}
        data-cells={props.data.cells.length}
        onPointerMove={(event) => {
          const found = under(event);
          setHover(found.sample || found.cell ? { ...found, x: event.clientX, y: event.clientY } : undefined);
        }}
        onPointerLeave={() => setHover(undefined)}
        onClick={(event) => {
          const { sample, cell } = under(event);
          if (sample) props.onOpen(sample);
          else if (cell) props.onZoom({ start: cell.time, end: cell.time + props.data.step * 1000 });
        }}
      />
      <Show when={hover()}>
        {(at) => (
          <div class="tooltip" style={{ left: `${tipLeft()}px`, top: `${at().y + 14}px` }}>
            <Show when={at().sample}>
              {(sample) => <><div class="muted">{formatMoment(sample().time, true)}</div><b>{formatValue(sample().total, props.data.type.unit)}</b><div class="name">{labelText(sample())}</div></>}
            </Show>
            <Show when={!at().sample && at().cell}>
              {(cell) => <><div class="muted">{formatMoment(cell().time, true)}</div><b>{formatWhole(cell().count)} profiles</b><div>of {formatValue((most() * cell().row) / ROWS, props.data.type.unit)} to {formatValue((most() * (cell().row + 1)) / ROWS, props.data.type.unit)}; click to zoom</div></>}
            </Show>
          </div>
        )}
      </Show>
    </div>
  );
}
