// The top table: functions with their own value and their total, sorted by any column, filtered, and drawn only where
// one looks. It is the flame graph's equal in text.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount } from 'solid-js';
import { shortName } from '../flame/packages.ts';
import type { Flame } from '../flame/layout.ts';
import { readSort, sortRows, topRows, type SortKey, type TopRow } from '../flame/top.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { filterItems } from '../lib/suggest.ts';
import { Icon } from './Icon.tsx';

const HEIGHT = 24;

export interface TopTableProps {
  flame: Flame;
  colours: readonly string[];
  /** A value with its unit. */
  amount: (value: number) => string;
  sort: string;
  filter: string;
  /** Name index that is selected or pointed at elsewhere, -1 for none. */
  selected: number;
  hovered: number;
  /** Counts up when the selected row should come into view. */
  reveal: number;
  onSort: (sort: string) => void;
  onFilter: (filter: string) => void;
  onSelect: (name: number) => void;
  onZoom: (node: number) => void;
  onHover: (name: number) => void;
  onMenu: (name: number, node: number, x: number, y: number) => void;
}

export function TopTable(props: TopTableProps) {
  let body!: HTMLDivElement;
  const [scroll, setScroll] = createSignal(0);
  const [height, setHeight] = createSignal(400);
  const [cursor, setCursor] = createSignal(0);

  const rows = createMemo(() => topRows(props.flame));
  const sorted = createMemo(() => sortRows(rows(), props.flame.names, props.sort));
  const filtered = createMemo(() => filterKeepingOrder(sorted(), props.filter, props.flame.names));
  const first = (): number => Math.max(0, Math.floor(scroll() / HEIGHT) - 6);
  const visible = createMemo(() => filtered().slice(first(), first() + Math.ceil(height() / HEIGHT) + 12).map((row, index) => ({ row, index: first() + index })), undefined, {
    equals: (a, b) => a.length === b.length && a.every((entry, index) => entry.row === b[index]!.row && entry.index === b[index]!.index),
  });

  onMount(() => {
    const observer = new ResizeObserver(() => setHeight(body.clientHeight));
    observer.observe(body);
    onCleanup(() => observer.disconnect());
  });
  createEffect(on([() => props.filter, () => props.sort], () => {
    body.scrollTop = 0;
    setCursor(0);
  }, { defer: true }));
  const show = (index: number): void => {
    if (index < 0) return;
    const top = index * HEIGHT;
    if (top < body.scrollTop) body.scrollTop = top;
    else if (top + HEIGHT > body.scrollTop + body.clientHeight) body.scrollTop = top + HEIGHT - body.clientHeight;
  };
  createEffect(on(() => props.reveal, () => {
    const index = filtered().findIndex(({ name }) => name === props.selected);
    if (index < 0) return;
    setCursor(index);
    body.scrollTop = Math.max(0, index * HEIGHT - body.clientHeight / 2);
  }, { defer: true }));

  const focusCursor = (): void => queueMicrotask(() => requestAnimationFrame(() => body.querySelector<HTMLElement>(`[data-index="${cursor()}"]`)?.focus({ preventScroll: true })));
  const keys = (event: KeyboardEvent): void => {
    const last = filtered().length - 1;
    const page = Math.max(1, Math.floor(body.clientHeight / HEIGHT) - 1);
    const to = { ArrowDown: cursor() + 1, ArrowUp: cursor() - 1, PageDown: cursor() + page, PageUp: cursor() - page, Home: 0, End: last }[event.key];
    const row = filtered()[cursor()];
    if (to !== undefined) {
      setCursor(Math.max(0, Math.min(last, to)));
      show(cursor());
      const next = filtered()[cursor()];
      if (next) props.onHover(next.name);
      focusCursor();
    } else if ((event.key === 'Enter' || event.key === ' ') && row) props.onSelect(row.name);
    else if (event.key === 'z' && row) props.onZoom(row.node);
    else if ((event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) && row) {
      const at = (event.target as HTMLElement).getBoundingClientRect();
      props.onMenu(row.name, row.node, at.left + 40, at.bottom);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const header = (key: SortKey, label: string) => (
    <button
      type="button"
      class="sort"
      onClick={() => {
        const { key: now, down } = readSort(props.sort);
        props.onSort(now === key ? `${down ? '' : '-'}${key}` : key === 'name' ? 'name' : `-${key}`);
      }}
    >
      {label}
      {readSort(props.sort).key === key ? <Icon name={readSort(props.sort).down ? 'down' : 'up'} /> : null}
    </button>
  );
  const ariaSort = (key: SortKey): 'ascending' | 'descending' | 'none' => {
    const { key: now, down } = readSort(props.sort);
    return now === key ? (down ? 'descending' : 'ascending') : 'none';
  };
  const share = (value: number): number => (props.flame.sum > 0 ? value / props.flame.sum : 0);
  // Bars are relative to the largest of their column: shares of a long tail are all small.
  const most = createMemo(() => rows().reduce((max, row) => ({ self: Math.max(max.self, row.self), total: Math.max(max.total, row.total) }), { self: 1e-12, total: 1e-12 }));

  return (
    <div class="grid" role="grid" aria-label="Top functions" aria-rowcount={filtered().length + 1}>
      <div role="rowgroup">
        <div class="grid-row grid-head" role="row" aria-rowindex="1">
          <div class="name-cell" role="columnheader" aria-sort={ariaSort('name')}>
            {header('name', 'Function')}
            <span class="with-icon grow">
              <Icon name="search" />
              <input class="field" type="search" aria-label="Filter functions" placeholder={`Filter ${formatWhole(rows().length)}`} value={props.filter} spellcheck={false} onInput={(event) => props.onFilter(event.currentTarget.value)} />
            </span>
          </div>
          <div class="number" role="columnheader" aria-sort={ariaSort('self')}>{header('self', 'Self')}</div>
          <div class="number self-share" role="columnheader">%</div>
          <div class="number" role="columnheader" aria-sort={ariaSort('total')}>{header('total', 'Total')}</div>
          <div class="number total-share" role="columnheader">%</div>
        </div>
      </div>
      <div class="grid-body" role="rowgroup" ref={body} tabindex={filtered().length === 0 ? 0 : -1} onScroll={() => setScroll(body.scrollTop)} onKeyDown={keys} onPointerLeave={() => props.onHover(-1)}>
        <div role="presentation" style={{ height: `${filtered().length * HEIGHT}px` }} />
        <For each={visible()}>
          {({ row, index }) => {
            const name = props.flame.names[row.name]!;
            return (
              <div
                class="grid-row"
                role="row"
                aria-rowindex={index + 2}
                aria-selected={props.selected >= 0 && props.flame.names[props.selected] === name}
                data-hover={props.hovered === row.name}
                data-index={index}
                tabindex={cursor() === index ? 0 : -1}
                style={{ top: `${index * HEIGHT}px` }}
                onClick={() => {
                  setCursor(index);
                  props.onSelect(row.name);
                }}
                onDblClick={() => props.onZoom(row.node)}
                onPointerEnter={() => props.onHover(row.name)}
                onContextMenu={(event) => {
                  event.preventDefault();
                  props.onMenu(row.name, row.node, event.clientX, event.clientY);
                }}
              >
                <div class="name-cell" role="gridcell" title={name}>
                  <i class="swatch" style={{ background: props.colours[row.name] }} />
                  <span class="text">{shortName(name)}</span>
                </div>
                <div class="number" classList={{ zero: row.self === 0 }} role="gridcell">{props.amount(row.self)}</div>
                <div class="number share self-share" classList={{ zero: row.self === 0 }} role="gridcell"><i style={{ width: `${(row.self / most().self) * 100}%` }} /><span>{formatShare(share(row.self))}</span></div>
                <div class="number" role="gridcell">{props.amount(row.total)}</div>
                <div class="number share total-share" role="gridcell"><i style={{ width: `${(row.total / most().total) * 100}%` }} /><span>{formatShare(share(row.total))}</span></div>
              </div>
            );
          }}
        </For>
        {filtered().length === 0 ? <div class="grid-none muted" role="row"><span role="gridcell">No function matches the filter</span></div> : null}
      </div>
    </div>
  );
}

function filterKeepingOrder(rows: readonly TopRow[], filter: string, names: readonly string[]): readonly TopRow[] {
  if (filter.trim() === '') return rows;
  const hits = new Set(filterItems(rows, filter, ({ name }) => names[name]!));
  return rows.filter((row) => hits.has(row));
}
