// The Status view: the health of the server, its stored data, and its accepted and refused profiles. The view changes nothing on the server.

import { createSignal, For, Match, onCleanup, Show, Switch, type JSX } from 'solid-js';
import { Grid, type Column } from '../components/Grid.tsx';
import { Icon } from '../components/Icon.tsx';
import { Failure } from '../components/Notice.tsx';
import { BiggestSeries, Collectors, Configuration, Limits, Maintenance, Refusals, Senders, StorageTables } from '../components/StatusTables.tsx';
import { formatMoment, formatValue, formatWhole, type Unit } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import type { Loader } from '../lib/loader.ts';
import { metric, valuesOf, type Sample } from '../lib/metrics.ts';
import { filterItems } from '../lib/suggest.ts';
import { createStatus, type Intake } from '../models/status.ts';

type Facts = readonly (readonly [label: string, name: string, unit: Unit | 's', why: string])[];

const MEMORY: Facts = [
  ['Resident memory', 'process_resident_memory_bytes', 'bytes', 'Memory of the process, as the operating system counts it'],
  ['Allocated', 'alluvium_allocator_allocated_bytes', 'bytes', 'Memory that the program has allocated and not yet freed'],
  ['Held by the allocator', 'alluvium_allocator_resident_bytes', 'bytes', 'Allocated memory, and free memory that the allocator keeps for reuse'],
  ['Profiles in memory', 'alluvium_store_head_bytes', 'bytes', 'Profiles that are not yet in Parquet files; the write-ahead log also contains them'],
  ['Bucket cache', 'alluvium_store_object_cache_bytes', 'bytes', 'Parts of files from the bucket, cached on disk'],
];
const STORE: Facts = [
  ['Files', 'alluvium_store_files', 'count', 'Parquet files that are part of the tables'],
  ['Profiles accepted', 'alluvium_store_appended_profiles_total', 'count', 'Profiles that the store accepted since the start of the server'],
  ['Samples accepted', 'alluvium_store_appended_samples_total', 'count', 'Samples of the accepted profiles since the start of the server'],
  ['Bytes accepted', 'alluvium_store_appended_bytes_total', 'bytes', 'Bytes of accepted profiles since the start of the server'],
  ['Profiles refused', 'alluvium_store_rejected_profiles_total', 'count', 'Profiles that the store refused since the start of the server'],
  ['Written to the log', 'alluvium_store_log_bytes_total', 'bytes', 'Bytes written to the write-ahead log since the start of the server'],
  ['Failed log writes', 'alluvium_store_log_failures_total', 'count', 'Writes to the write-ahead log that failed'],
  ['Flushes', 'alluvium_store_flushes_total', 'count', 'Writes of profiles from memory to files'],
  ['Failed flushes', 'alluvium_store_flush_failures_total', 'count', 'The server retries a failed flush'],
  ['Damaged bytes', 'alluvium_store_damaged_bytes_total', 'bytes', 'Damaged bytes of the write-ahead log that the server found at its start'],
  ['Files to delete', 'alluvium_store_dead_files', 'count', 'Files that no longer belong to a table; a vacuum deletes them after a delay'],
  ['Pending maintenance', 'alluvium_store_jobs_waiting', 'count', 'Maintenance jobs that are due and not completed'],
];
const PROCESS: Facts = [
  ['CPU time', 'process_cpu_seconds_total', 's', 'CPU time of the process since its start'],
  ['Open files', 'process_open_fds', 'count', ''],
  ['Open file limit', 'process_max_fds', 'count', ''],
  ['Requests in flight', 'alluvium_http_requests_in_flight', 'count', 'Requests that the server is processing, including the request that reads this value'],
];
const REFRESH_MS = 10_000;

export default function Status() {
  const [tick, setTick] = createSignal(1);
  const refresh = (): void => void setTick((count) => count + 1);
  const timer = setInterval(() => document.visibilityState === 'visible' && refresh(), REFRESH_MS);
  onCleanup(() => clearInterval(timer));
  createKeys(() => ({ r: refresh }));
  const data = createStatus(tick);
  const [filter, setFilter] = createSignal('');
  const metrics = (): readonly Sample[] => data.metrics.data() ?? [];
  const busy = (): boolean => data.health.pending() || data.metrics.pending() || data.services.pending();

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Status</h1>
        <Show when={data.health.data()}>
          {(health) => (
            <div class="facts">
              <span classList={{ bad: !health().ready }}><b>{health().ready ? 'ready' : health().text}</b></span>
              <span>version <b>{health().version}</b></span>
              <Show when={health().revision}><span>revision <b>{health().revision}</b></span></Show>
            </div>
          )}
        </Show>
      </div>
      <div class="progress" data-on={busy()} />
      <div class="content status" aria-busy={busy()} tabindex="0" role="region" aria-label="Status of the server">
        <Part title="Server" of={data.health}>{() => <Facts of={PROCESS} samples={metrics()} />}</Part>
        <Part title="Memory" of={data.metrics}>{() => <Facts of={MEMORY} samples={metrics()} />}</Part>
        <Part title="Storage of this tenant" of={data.storage}>{(storage) => <StorageTables storage={storage} />}</Part>
        <Part title="Store" of={data.metrics}>{() => <Facts of={STORE} samples={metrics()} />}</Part>
        <Part title="Maintenance since the start" of={data.metrics}>{(samples) => <Maintenance samples={samples} />}</Part>
        <Part title="Clients since the start" of={data.senders}>{(rows) => <Senders rows={rows} />}</Part>
        <Part title="Collectors, as of their last request" of={data.senders}>{(rows) => <Collectors rows={rows} />}</Part>
        <Part title="Refused profiles since the start" of={data.metrics}>{(samples) => <Refusals samples={samples} />}</Part>
        <Part title="Services, last 24 hours" of={data.services}>{(rows) => <Intakes label="Services of the last day" head="Service" rows={rows} />}</Part>
        <Part title="Profile types, last 24 hours" of={data.types}>{(rows) => <Intakes label="Profile types of the last day" head="Type" rows={rows} />}</Part>
        <Part title="Largest series, last 24 hours" of={data.series}>{(rows) => <BiggestSeries rows={rows} />}</Part>
        <Part title="Requests since the start" of={data.metrics}>{(samples) => <Requests samples={samples} />}</Part>
        <Part title="Limits of this tenant" of={data.limits}>{(rows) => <Limits rows={rows} />}</Part>
        <Part title="Configuration in force, without secrets" of={data.config}>{(config) => <Configuration {...config} />}</Part>
        <Part title="All metrics" of={data.metrics}>
          {(samples) => (
            <>
              <span class="with-icon filter-box">
                <Icon name="search" />
                <input class="field" type="search" aria-label="Filter metrics" placeholder={`Filter ${formatWhole(samples.length)}`} spellcheck={false} value={filter()} onInput={(event) => setFilter(event.currentTarget.value)} />
              </span>
              <Metrics samples={filterItems(data.metrics.data() ?? [], filter(), ({ name, labels }) => `${name} ${Object.entries(labels).flat().join(' ')}`)} />
            </>
          )}
        </Part>
      </div>
    </main>
  );
}

/** A section of the view, with its own error state. */
function Part<T>(props: { title: string; of: Loader<T>; children: (data: T) => JSX.Element }) {
  return (
    <section aria-label={props.title}>
      <h2>{props.title}</h2>
      <Show when={props.of.error() && props.of.data() !== undefined}><p class="bad" role="alert">The refresh failed, older data is shown: {props.of.error()?.message}</p></Show>
      <Switch fallback={<div class="skeleton card-skeleton" />}>
        <Match when={props.of.data()}>{(data) => props.children(data())}</Match>
        <Match when={props.of.error()}>{(error) => <Failure what={`Cannot load this section: ${props.title}`} error={error()} retry={props.of.retry} />}</Match>
      </Switch>
    </section>
  );
}

function Facts(props: { of: Facts; samples: readonly Sample[] }) {
  const text = (name: string, unit: Unit | 's'): string | null => {
    const value = metric(props.samples, name);
    if (value === undefined) return null;
    return unit === 's' ? formatValue(value * 1e9, 'ns') : unit === 'count' ? formatWhole(value) : formatValue(value, unit);
  };
  return (
    <dl class="fact-list">
      <For each={props.of}>
        {([label, name, unit, why]) => (
          <Show when={text(name, unit)}>{(value) => <div title={`${why}${why === '' ? '' : '\n'}${name}`}><dt>{label}</dt><dd>{value()}</dd></div>}</Show>
        )}
      </For>
    </dl>
  );
}

function Intakes(props: { label: string; head: string; rows: readonly Intake[] }) {
  const columns: Column<Intake>[] = [
    { key: 'name', label: props.head, fixed: true, class: 'ellipsis', title: ({ name }) => name, cell: (row) => row().name },
    { key: 'profiles', label: 'Profiles', fixed: true, class: 'number', cell: (row) => formatWhole(row().profiles) },
    { key: 'rate', label: 'Per minute', fixed: true, class: 'number', title: () => 'Profiles per minute between the first and the last profile', cell: (row) => rate(row()) },
    { key: 'stacks', label: 'Stacks', fixed: true, class: 'number', cell: (row) => formatWhole(row().stacks) },
    { key: 'series', label: 'Series', fixed: true, class: 'number', cell: (row) => formatWhole(row().series) },
    { key: 'last', label: 'Last seen', fixed: true, class: 'number', cell: (row) => formatMoment(row().last, true) },
  ];
  const rate = ({ profiles, first, last }: Intake): string => (last > first ? formatValue(((profiles - 1) / (last - first)) * 60_000, 'count') : '–');
  return <div class="status-grid" style={{ height: `${Math.min(12, Math.max(1, props.rows.length)) * 24 + 46}px` }}><Grid label={props.label} class="intake-grid" columns={columns} rows={props.rows} height={24} none="No profiles arrived" /></div>;
}

interface Route {
  route: string;
  counts: string;
  failed: number;
  mean: number;
}

function Requests(props: { samples: readonly Sample[] }) {
  const rows = (): Route[] => valuesOf(props.samples, 'alluvium_http_requests_total', 'route').map((route) => {
    const of = props.samples.filter(({ name, labels }) => name === 'alluvium_http_requests_total' && labels.route === route);
    const [sum, count] = ['sum', 'count'].map((part) => metric(props.samples, `alluvium_http_request_seconds_${part}`, { route }) ?? 0) as [number, number];
    return {
      route,
      counts: of.map(({ labels, value }) => `${formatWhole(value)} × ${labels.status}`).join(', '),
      failed: of.filter(({ labels }) => Number(labels.status) >= 400).reduce((all, { value }) => all + value, 0),
      mean: count > 0 ? sum / count : Number.NaN,
    };
  });
  const columns: Column<Route>[] = [
    { key: 'route', label: 'Route', fixed: true, class: 'ellipsis', title: ({ route }) => route, cell: (row) => row().route },
    { key: 'counts', label: 'Responses by status', fixed: true, class: 'ellipsis', title: ({ counts }) => counts, cell: (row) => row().counts },
    { key: 'failed', label: 'Failed', title: () => 'Responses with a status of 400 or more', fixed: true, class: 'number', cell: (row) => <span classList={{ zero: row().failed === 0 }}>{formatWhole(row().failed)}</span> },
    { key: 'mean', label: 'Mean time', fixed: true, class: 'number', cell: (row) => formatValue(row().mean * 1e9, 'ns') },
  ];
  return <div class="status-grid" style={{ height: `${Math.min(12, Math.max(1, rows().length)) * 24 + 46}px` }}><Grid label="Requests by route" class="request-grid" columns={columns} rows={rows()} height={24} none="No request yet" /></div>;
}

function Metrics(props: { samples: readonly Sample[] }) {
  const columns: Column<Sample>[] = [
    { key: 'name', label: 'Metric', fixed: true, class: 'ellipsis', title: ({ name }) => name, cell: (row) => <code>{row().name}</code> },
    { key: 'labels', label: 'Labels', fixed: true, class: 'ellipsis', cell: (row) => Object.entries(row().labels).map(([name, value]) => `${name}="${value}"`).join(', ') },
    { key: 'value', label: 'Value', fixed: true, class: 'number', cell: (row) => String(row().value) },
  ];
  return <div class="status-grid tall"><Grid label="All metrics" class="metric-grid" columns={columns} rows={props.samples} height={24} none="No metric matches" /></div>;
}
