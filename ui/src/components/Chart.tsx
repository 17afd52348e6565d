// The time chart on uPlot: one line, or one line for each value of a label. The pointer and the arrow keys show the values of all lines at
// a point in time, and select a time range. A bar offers actions for the range. A time without data is a gap in the line. New values go
// into the same plot, so that the user's selection and cursor stay.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from 'solid-js';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { axisFormat, formatClock, formatDay, formatMoment, formatSpan, formatValue, type Unit } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import { alignLines, cssColour, type Line } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';
import { inZone, zone } from '../lib/zone.ts';
import { Icon, type IconName } from './Icon.tsx';

const POWERS_OF_TWO = Array.from({ length: 60 }, (_, exponent) => 2 ** exponent);
/** Least distance of a drag, in pixels; a shorter one is a click. */
const DRAG_PX = 4;
/** Width in pixels that is reserved for the bar with the actions for the selected range. */
const BAR_WIDTH = 400;

export interface ChartProps {
  lines: readonly Line[];
  /** The time range of the horizontal axis. */
  range: Range;
  /** Seconds between points. */
  step: number;
  unit: Unit;
  title: string;
  /** Id of the element in the page. */
  id?: string;
  /** Minimum for the upper end of the value axis, so that charts beside each other have the same scale. */
  top?: number;
  /** A range to mark while the user selects no other. */
  marked?: Range | undefined;
  /** Actions for a selected range. Enter runs the first action. If there is only one action, it runs as soon as the drag ends. */
  actions: readonly RangeAction[];
  /** Called with the time of a point in milliseconds when the user clicks the point, or presses Enter at the point. */
  onPoint?: (time: number) => void;
}

export interface RangeAction {
  label: string;
  icon: IconName;
  run: (range: Range) => void;
}

export function Chart(props: ChartProps) {
  let host!: HTMLDivElement;
  let plot: uPlot | undefined;
  /** True during a drag. */
  let pressed = false;
  /** Start of a selection by keys, as an index into the data; -1 for none. */
  let anchor = -1;
  /** The range that the user has selected by a drag or by keys. */
  const [selection, setSelection] = createSignal<Range>();
  const [hover, setHover] = createSignal<{ index: number; x: number; y: number; keyboard: boolean }>();
  const [width, setWidth] = createSignal(0);
  const data = createMemo(() => alignLines(props.lines, props.step));
  const times = (): (number | null)[] => data()[0] ?? [];

  const clear = (): void => {
    anchor = -1;
    setSelection(undefined);
    mark();
  };
  const act = (range: Range): void => {
    clear();
    props.actions[0]?.run(range);
  };
  const pick = (index: number | undefined): void => {
    const time = times()[index ?? -1];
    if (time != null) props.onPoint?.(time * 1000);
  };
  /** Paints the selected or marked range at its current position. */
  const mark = (): void => {
    const range = selection() ?? props.marked;
    if (!plot) return;
    if (!range) return plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const left = plot.valToPos(range.start / 1000, 'x');
    plot.setSelect({ left, top: 0, width: plot.valToPos(range.end / 1000, 'x') - left, height: plot.over.clientHeight }, false);
  };

  const build = (): void => {
    plot?.destroy();
    pressed = false;
    plot = new uPlot(options(host, props, {
      selected: (range) => {
        pressed = false;
        if (!range) return clear();
        setHover(undefined);
        if (props.actions.length === 1) return act(range);
        setSelection(range);
      },
      pointed: (at) => setHover((before) => at ?? (before?.keyboard ? before : undefined)),
    }), data() as uPlot.AlignedData, host);
    let from = 0;
    plot.over.addEventListener('pointerdown', ({ clientX }) => {
      pressed = true;
      from = clientX;
    });
    // The browser also sends a click at the end of a drag; ignore it.
    plot.over.addEventListener('click', ({ clientX }) => Math.abs(clientX - from) < DRAG_PX && pick(hover()?.index));
    mark();
  };
  const renew = (): void => {
    if (!plot) return;
    plot.setData(data() as uPlot.AlignedData);
    if (!pressed) mark();
    const at = hover();
    if (at?.keyboard) point(at.index);
  };
  // If one of these properties changes, a new plot is built. All other changes only set new values.
  const made = createMemo(() => JSON.stringify([props.lines.map(({ label, colour }) => [label, colour]), props.unit, dark(), zone()]));

  onMount(() => {
    const observer = new ResizeObserver(() => {
      setWidth(host.clientWidth);
      plot?.setSize({ width: Math.max(120, host.clientWidth), height: Math.max(80, host.clientHeight) });
      mark();
    });
    observer.observe(host);
    createEffect(on([made, data, () => props.range, () => props.marked, () => props.top], ([now], before) => (now === before?.[0] ? renew() : build())));
    onCleanup(() => {
      observer.disconnect();
      plot?.destroy();
    });
  });

  /** Moves the keyboard cursor to a point. */
  const point = (index: number): void => {
    const time = times()[index];
    if (!plot || time == null) return;
    const box = plot.over.getBoundingClientRect();
    const left = plot.valToPos(time, 'x');
    plot.setCursor({ left, top: 0 }, false);
    setHover({ index, x: box.left + left, y: box.top, keyboard: true });
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.target !== host || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = times().length - 1;
    const at = hover()?.index ?? (anchor >= 0 ? anchor : last + 1);
    const to = { ArrowLeft: at - 1, ArrowRight: Math.min(last, at + 1), PageUp: at - 10, PageDown: at + 10, Home: 0, End: last }[event.key];
    if (to !== undefined && last >= 0) {
      const index = Math.max(0, Math.min(last, to));
      if (event.shiftKey) {
        if (anchor < 0) anchor = hover() ? at : index;
        const ends = [times()[anchor] ?? 0, times()[index] ?? 0].sort((a, b) => a - b) as [number, number];
        setSelection({ start: ends[0] * 1000, end: Math.max(ends[1], ends[0] + 1) * 1000 });
        mark();
      } else clear();
      point(index);
    } else if (event.key === 'Enter' && selection()) act(selection()!);
    else if (event.key === 'Enter' && props.onPoint && hover()) pick(hover()?.index);
    else if (event.key === 'Escape' && (selection() || hover())) {
      clear();
      setHover(undefined);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const rows = createMemo(() => {
    const at = hover();
    if (!at) return [];
    return props.lines
      .map((line, index) => ({ line, value: data()[index + 1]?.[at.index] ?? null }))
      .filter((row): row is { line: Line; value: number } => row.value !== null)
      .sort((a, b) => b.value - a.value);
  });
  const moment = (): string => {
    const time = times()[hover()?.index ?? -1];
    return time == null ? '' : formatMoment(time * 1000, props.step < 60);
  };
  const span = ({ start, end }: Range): string => `${formatClock(start, true)} – ${formatClock(end, true)} · ${formatSpan(end - start)}`;
  const spoken = (): string => {
    if (!hover()?.keyboard) return '';
    const chosen = selection();
    if (chosen) return `${span(chosen)} selected, Enter: ${props.actions[0]?.label ?? ''}`;
    return `${moment()}: ${rows().length === 0 ? 'nothing' : rows().map(({ line, value }) => `${line.label} ${formatValue(value, props.unit)}`).join(', ')}`;
  };
  const tipX = (): number => {
    const x = hover()?.x ?? 0;
    return x > innerWidth - 300 ? x - 16 - 240 : x + 16;
  };
  const barLeft = (chosen: Range): number => {
    const over = plot?.over;
    if (!over) return 0;
    const share = ((chosen.start + chosen.end) / 2 - props.range.start) / (props.range.end - props.range.start);
    return Math.max(BAR_WIDTH / 2, Math.min(width() - BAR_WIDTH / 2, over.offsetLeft + share * over.clientWidth));
  };

  return (
    <div class="chart">
      <div
        ref={host}
        class="chart-host"
        id={props.id ?? 'chart'}
        tabindex="0"
        role="application"
        aria-roledescription="time chart"
        aria-label={`${props.title} over time, ${props.lines.length === 1 ? 'one line' : `${props.lines.length} lines`}. Arrow keys move through time, with Shift they select a range, Enter applies it, Escape clears it.${props.onPoint ? ' Enter without a range opens the profile at that time.' : ''}`}
        onKeyDown={keys}
        onBlur={() => hover()?.keyboard && setHover(undefined)}
      />
      <div class="visually-hidden" aria-live="polite">{spoken()}</div>
      <Show when={props.actions.length > 1 && selection()}>
        {(chosen) => (
          <div class="selection" role="group" aria-label="Selected range" style={{ left: `${barLeft(chosen())}px` }}>
            <span class="span">{span(chosen())}</span>
            <For each={props.actions}>
              {(action, index) => (
                <button type="button" class="button" classList={{ primary: index() === 0 }} onClick={() => {
                  const range = chosen();
                  clear();
                  action.run(range);
                }}><Icon name={action.icon} />{action.label}</button>
              )}
            </For>
            <button type="button" class="button plain" onClick={clear}>Clear</button>
          </div>
        )}
      </Show>
      <Show when={hover() && !selection() && rows().length > 0}>
        <div class="tooltip chart-tip" style={{ left: `${tipX()}px`, top: `${(hover()?.y ?? 0) + 8}px` }}>
          <div class="muted">{moment()}</div>
          <For each={rows()}>
            {(row) => (
              <div class="row">
                <i class="swatch" style={{ background: cssColour(row.line) }} />
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

interface Told {
  /** Called after a drag with its range, or with null for a drag that is too short. */
  selected: (range: Range | null) => void;
  /** Called when the pointer is at a point, or with undefined when it leaves the chart. */
  pointed: (at: { index: number; x: number; y: number; keyboard: false } | undefined) => void;
}

function options(host: HTMLElement, props: ChartProps, told: Told): uPlot.Options {
  const style = getComputedStyle(host);
  const colour = (name: string): string => {
    // A canvas does not resolve light-dark(), so a style of an element resolves it.
    host.style.setProperty('text-decoration-color', `var(${name})`);
    return style.textDecorationColor;
  };
  const muted = colour('--muted');
  const line = colour('--line');
  const font = `11px ${style.fontFamily}`;
  return {
    width: Math.max(120, host.clientWidth),
    height: Math.max(80, host.clientHeight),
    legend: { show: false },
    padding: [8, 24, 0, 0],
    cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: DRAG_PX }, points: { size: 6 } },
    tzDate: (seconds) => (zone() === 'utc' ? uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') : new Date(seconds * 1000)),
    scales: { x: { time: true, range: () => [props.range.start / 1000, props.range.end / 1000] }, y: { range: (_, __, max) => [0, Math.max(max, props.top ?? 0) * 1.08 || 1] } },
    axes: [
      {
        stroke: muted, font, size: 26, gap: 4, space: 72,
        grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 },
        values: (_, splits, __, ___, increment) => splits.map((seconds) => {
          const midnight = inZone(seconds * 1000).toISOString().slice(11, 19) === '00:00:00';
          return increment >= 86_400 || midnight ? formatDay(seconds * 1000) : formatClock(seconds * 1000, increment < 60);
        }),
      },
      {
        stroke: muted, font, size: 72, gap: 6, space: 28,
        // The units of bytes are powers of two, so the ticks are, too.
        ...(props.unit.startsWith('bytes') ? { incrs: POWERS_OF_TWO } : {}),
        grid: { stroke: line, width: 1 }, ticks: { show: false },
        values: (_, splits) => splits.map(axisFormat(Math.max(...splits), props.unit)),
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
          ...(props.lines.length === 1 ? { fill: stroke.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)') } : {}),
          spanGaps: false,
          // A single point between two gaps has no line, so it is drawn as a dot.
          points: {
            show: true, size: 4, fill: stroke,
            filter: (self, series) => {
              const row = self.data[series] ?? [];
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
          if (self.select.width < DRAG_PX) return told.selected(null);
          const start = self.posToVal(self.select.left, 'x') * 1000;
          const end = self.posToVal(self.select.left + self.select.width, 'x') * 1000;
          told.selected({ start: Math.round(start), end: Math.round(Math.max(end, start + 1000)) });
        },
      ],
      setCursor: [
        (self) => {
          const { idx, left = -1 } = self.cursor;
          const box = self.over.getBoundingClientRect();
          told.pointed(idx == null || left < 0 ? undefined : { index: idx, x: box.left + left, y: box.top, keyboard: false });
        },
      ],
    },
  };
}
