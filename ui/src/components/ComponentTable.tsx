// The components as a table, the graph's equal in text: sorted by any column, filtered, drawn only where one looks.

import { createMemo, createSignal, Index, onCleanup, onMount } from 'solid-js';
import { formatSpan, formatValue } from '../lib/format.ts';
import type { Component, Flows, HealthState } from '../pipeline/model.ts';
import { Icon } from './Icon.tsx';

const HEIGHT = 28;
const RANK: Record<HealthState, number> = { exited: 0, unhealthy: 1, unknown: 2, healthy: 3 };
type Key = 'name' | 'health' | 'in' | 'out' | 'targets' | 'since';

export interface ComponentTableProps {
  components: readonly Component[];
  flows: Flows;
  selected: string;
  /** A column, `-` before it for descending; empty for the order of the configuration. */
  sort: string;
  onSort: (sort: string) => void;
  onSelect: (id: string) => void;
}

interface Row {
  component: Component;
  in: number | null;
  out: number | null;
  targets: number;
}

export function ComponentTable(props: ComponentTableProps) {
  let body!: HTMLDivElement;
  const [scroll, setScroll] = createSignal(0);
  const [height, setHeight] = createSignal(400);
  const [cursor, setCursor] = createSignal(0);
  const key = (): Key | '' => props.sort.replace(/^-/, '') as Key | '';
  const rows = createMemo(() => {
    const all = props.components.map((component): Row => ({ component, ...props.flows.through(component.id), targets: props.flows.targetsOf(component.id) }));
    const compare: Record<Key, (a: Row, b: Row) => number> = {
      name: (a, b) => a.component.id.localeCompare(b.component.id),
      health: (a, b) => RANK[a.component.health.state] - RANK[b.component.health.state],
      in: (a, b) => (a.in ?? -1) - (b.in ?? -1),
      out: (a, b) => (a.out ?? -1) - (b.out ?? -1),
      targets: (a, b) => a.targets - b.targets,
      since: (a, b) => b.component.health.updated - a.component.health.updated,
    };
    const by = compare[key() as Key];
    if (by) all.sort((a, b) => (props.sort.startsWith('-') ? -1 : 1) * by(a, b) || a.component.id.localeCompare(b.component.id));
    return all;
  });
  const first = (): number => Math.max(0, Math.floor(scroll() / HEIGHT) - 6);
  const visible = createMemo(() => rows().slice(first(), first() + Math.ceil(height() / HEIGHT) + 12).map((row, index) => ({ row, index: first() + index })));
  onMount(() => {
    const observer = new ResizeObserver(() => setHeight(body.clientHeight));
    observer.observe(body);
    onCleanup(() => observer.disconnect());
  });
  const keys = (event: KeyboardEvent): void => {
    const last = rows().length - 1;
    const page = Math.max(1, Math.floor(body.clientHeight / HEIGHT) - 1);
    const to = { ArrowDown: cursor() + 1, ArrowUp: cursor() - 1, PageDown: cursor() + page, PageUp: cursor() - page, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      setCursor(Math.max(0, Math.min(last, to)));
      const top = cursor() * HEIGHT;
      if (top < body.scrollTop) body.scrollTop = top;
      else if (top + HEIGHT > body.scrollTop + body.clientHeight) body.scrollTop = top + HEIGHT - body.clientHeight;
      requestAnimationFrame(() => body.querySelector<HTMLElement>(`[data-index="${cursor()}"]`)?.focus({ preventScroll: true }));
    } else if (event.key === 'Enter' || event.key === ' ') {
      const row = rows()[cursor()];
      if (row) props.onSelect(row.component.id);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const header = (column: Key, label: string, style = '') => {
    const active = (): boolean => key() === column;
    const down = (): boolean => props.sort.startsWith('-');
    return (
      <div role="columnheader" class={style} aria-sort={active() ? (down() ? 'descending' : 'ascending') : 'none'}>
        <button type="button" class="sort" onClick={() => props.onSort(active() ? (down() ? '' : `-${column}`) : column)}>
          {label}
          {active() ? <Icon name={down() ? 'down' : 'up'} /> : null}
        </button>
      </div>
    );
  };
  const rate = (value: number | null): string => (value === null ? '' : formatValue(value, 'count/s'));
  const since = (component: Component): string => (component.health.updated > 0 ? formatSpan(Math.max(0, Date.now() - component.health.updated)) : '');
  return (
    <div class="grid component-table" role="grid" aria-label="Components" aria-rowcount={rows().length + 1}>
      <div role="rowgroup">
        <div class="grid-row grid-head" role="row" aria-rowindex="1">
          {header('name', 'Component')}
          {header('health', 'Health')}
          <div role="columnheader" class="reason">Reason</div>
          {header('targets', 'Targets', 'number')}
          {header('in', 'In', 'number')}
          {header('out', 'Out', 'number')}
          {header('since', 'Since', 'number since')}
        </div>
      </div>
      <div class="grid-body" role="rowgroup" ref={body} tabindex={rows().length === 0 ? 0 : -1} onScroll={() => setScroll(body.scrollTop)} onKeyDown={keys}>
        <div role="presentation" style={{ height: `${rows().length * HEIGHT}px` }} />
        <Index each={visible()}>
          {(item) => (
            <div
              class="grid-row"
              role="row"
              aria-rowindex={item().index + 2}
              aria-selected={item().row.component.id === props.selected}
              data-index={item().index}
              tabindex={cursor() === item().index ? 0 : -1}
              style={{ top: `${item().index * HEIGHT}px` }}
              onClick={() => {
                setCursor(item().index);
                props.onSelect(item().row.component.id);
              }}
            >
              <div role="gridcell" class="clip" title={item().row.component.id}>{item().row.component.localId}</div>
              <div role="gridcell" class={`health-${item().row.component.health.state}`}>{item().row.component.health.state}</div>
              <div role="gridcell" class="clip muted reason" title={item().row.component.health.message}>{item().row.component.health.message}</div>
              <div role="gridcell" class="number">{item().row.targets < 0 ? '' : formatValue(item().row.targets, 'count')}</div>
              <div role="gridcell" class="number">{rate(item().row.in)}</div>
              <div role="gridcell" class="number">{rate(item().row.out)}</div>
              <div role="gridcell" class="number muted since">{since(item().row.component)}</div>
            </div>
          )}
        </Index>
        {rows().length === 0 ? <div class="grid-none muted" role="row"><span role="gridcell">No component matches the filter</span></div> : null}
      </div>
    </div>
  );
}
