// A table of any length. Only the visible rows are in the document. When the values of a row change, its elements stay. A click on the
// head of a column sorts the table, arrow keys move through it, and screen readers read it as a grid.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show, type Accessor, type JSX } from 'solid-js';
import { printing } from '../lib/printing.ts';
import { Icon } from './Icon.tsx';

/** Extra rows above and below the visible ones. */
const SPARE = 6;
/** Maximum number of printed rows, a few pages. */
const PRINTED = 200;

export interface Column<R> {
  /** Name of the column in `sort`. */
  key: string;
  label: string;
  class?: string;
  /** True if the table cannot be sorted by this column. */
  fixed?: boolean;
  /** Content of the head besides the label. */
  extra?: () => JSX.Element;
  /** Content of a cell. `title` is its tooltip. */
  cell: (row: Accessor<R>) => JSX.Element;
  title?: (row: R) => string;
}

export interface Sort {
  key: string;
  down: boolean;
}

export interface GridProps<R> {
  label: string;
  class?: string;
  columns: readonly Column<R>[];
  rows: readonly R[];
  /** Height of a row in pixels. */
  height: number;
  sort?: Sort;
  /** Text for a table without rows. */
  none: string;
  /** Key of the content. A new key scrolls back to the top. */
  of?: unknown;
  /** Row to scroll into view whenever `count` changes. */
  reveal?: { index: () => number; count: number };
  selected?: (row: R) => boolean;
  hovered?: (row: R) => boolean;
  onSort?: (key: string) => void;
  onSelect?: (row: R) => void;
  onOpen?: (row: R) => void;
  onHover?: (row: R | null) => void;
  onMenu?: (row: R, x: number, y: number) => void;
  /** Called with a key that the grid does not use itself, and with the row of the cursor. Returns true if the key had an effect. */
  onKey?: (key: string, row: R) => boolean;
}

export function Grid<R>(props: GridProps<R>) {
  let body!: HTMLDivElement;
  const [scroll, setScroll] = createSignal(0);
  const [height, setHeight] = createSignal(400);
  const [cursor, setCursor] = createSignal(0);

  const count = (): number => (printing() ? Math.min(PRINTED, props.rows.length) : props.rows.length);
  const first = createMemo(() => (printing() ? 0 : Math.max(0, Math.floor(scroll() / props.height) - SPARE)));
  const last = createMemo(() => (printing() ? count() : Math.min(props.rows.length, first() + Math.ceil(height() / props.height) + 2 * SPARE)));
  // Rows are keyed by index, so that they outlive new values.
  const visible = createMemo(() => Array.from({ length: Math.max(0, last() - first()) }, (_, at) => first() + at));

  onMount(() => {
    const observer = new ResizeObserver(() => setHeight(body.clientHeight));
    observer.observe(body);
    onCleanup(() => observer.disconnect());
  });
  createEffect(on(() => props.of, () => {
    body.scrollTop = 0;
    setCursor(0);
  }, { defer: true }));
  createEffect(on(() => props.reveal?.count, () => {
    const index = props.reveal?.index() ?? -1;
    if (index < 0) return;
    setCursor(index);
    body.scrollTop = Math.max(0, index * props.height - body.clientHeight / 2);
  }, { defer: true }));
  createEffect(() => setCursor((at) => Math.max(0, Math.min(at, props.rows.length - 1))));

  const walk = (to: number): void => {
    const index = Math.max(0, Math.min(props.rows.length - 1, to));
    setCursor(index);
    const top = index * props.height;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + props.height > body.scrollTop + body.clientHeight) body.scrollTop = top + props.height - body.clientHeight;
    const row = props.rows[index];
    if (row !== undefined) props.onHover?.(row);
    requestAnimationFrame(() => body.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus({ preventScroll: true }));
  };
  const keys = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(body.clientHeight / props.height) - 1);
    const to = { ArrowDown: cursor() + 1, ArrowUp: cursor() - 1, PageDown: cursor() + page, PageUp: cursor() - page, Home: 0, End: props.rows.length - 1 }[event.key];
    const row = props.rows[cursor()];
    if (to !== undefined) walk(to);
    else if (row === undefined) return;
    else if (event.key === 'Enter' || event.key === ' ') props.onSelect?.(row);
    else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      const at = (event.target as HTMLElement).getBoundingClientRect();
      props.onMenu?.(row, at.left + 40, at.bottom);
    } else if (!props.onKey?.(event.key, row)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const sorted = (key: string): Sort | null => (props.sort?.key === key ? props.sort : null);
  const order = (key: string): 'ascending' | 'descending' | 'none' => (sorted(key) ? (sorted(key)?.down ? 'descending' : 'ascending') : 'none');
  return (
    <div class={`grid ${props.class ?? ''}`} role="grid" aria-label={props.label} aria-rowcount={props.rows.length + 1}>
      <div role="rowgroup">
        <div class="grid-row grid-head" role="row" aria-rowindex="1">
          <For each={props.columns}>
            {(column) => (
              <div class={column.class ?? ''} role="columnheader" aria-sort={column.fixed ? undefined : order(column.key)}>
                <Show when={!column.fixed} fallback={column.label}>
                  <button type="button" class="sort" onClick={() => props.onSort?.(column.key)}>
                    {column.label}
                    <Show when={sorted(column.key)}>{(sort) => <Icon name={sort().down ? 'down' : 'up'} />}</Show>
                  </button>
                </Show>
                {column.extra?.()}
              </div>
            )}
          </For>
        </div>
      </div>
      <div class="grid-body" role="rowgroup" ref={body} tabindex={props.rows.length === 0 ? 0 : -1} onScroll={() => setScroll(body.scrollTop)} onKeyDown={keys} onPointerLeave={() => props.onHover?.(null)}>
        <div role="presentation" style={{ height: `${count() * props.height}px` }} />
        <For each={visible()}>
          {(index) => {
            // After the table has become shorter, a row that is about to be removed has no value for a moment.
            const row = createMemo<R>((before) => props.rows[index] ?? before, props.rows[index]!);
            return (
              <div
                class="grid-row"
                role="row"
                aria-rowindex={index + 2}
                aria-selected={props.selected?.(row())}
                data-hover={props.hovered?.(row())}
                data-index={index}
                tabindex={cursor() === index ? 0 : -1}
                style={{ top: `${index * props.height}px`, height: `${props.height}px` }}
                onClick={() => {
                  setCursor(index);
                  props.onSelect?.(row());
                }}
                onDblClick={() => props.onOpen?.(row())}
                onPointerEnter={() => props.onHover?.(row())}
                onContextMenu={(event) => {
                  if (!props.onMenu) return;
                  event.preventDefault();
                  props.onMenu(row(), event.clientX, event.clientY);
                }}
              >
                <For each={props.columns}>{(column) => <div class={column.class ?? ''} role="gridcell" title={column.title?.(row())}>{column.cell(row)}</div>}</For>
              </div>
            );
          }}
        </For>
        <Show when={props.rows.length === 0}><div class="grid-none muted" role="row"><span role="gridcell">{props.none}</span></div></Show>
      </div>
    </div>
  );
}
