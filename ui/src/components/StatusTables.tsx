// The tables of the Status view: storage, maintenance, clients, refused profiles, limits, configuration.

import { createSignal, For, Show, type Accessor, type JSX } from 'solid-js';
import { explainUnit, formatMoment, formatValue, formatWhole, type Unit } from '../lib/format.ts';
import { metric, valuesOf, type Sample } from '../lib/metrics.ts';
import { profileType } from '../lib/profile-types.ts';
import { collectorHealth, growth, type BigSeries, type CollectorHealth, type Held, type Queue, type Sender, type Settings, type Storage } from '../models/status.ts';
import { Grid, type Column } from './Grid.tsx';
import { Spark } from './Spark.tsx';

const DAY_MS = 86_400_000;
const ROW_PX = 24;
/** Maximum number of rows that are visible without scrolling. */
const MOST_SEEN = 12;

/** A column of numbers, with a tooltip that explains the unit. */
function amounts<R>(key: string, label: string, value: (row: R) => number, unit: Unit = 'count'): Column<R> {
  return { key, label, fixed: true, class: 'number', title: () => explainUnit(unit), cell: (row: Accessor<R>) => <span classList={{ zero: value(row()) === 0 }}>{unit === 'count' ? formatWhole(value(row())) : formatValue(value(row()), unit)}</span> };
}

const texts = <R,>(key: string, label: string, value: (row: R) => string): Column<R> => ({ key, label, fixed: true, class: 'ellipsis', title: value, cell: (row: Accessor<R>) => value(row()) });

function Rows<R>(props: { label: string; class: string; columns: readonly Column<R>[]; rows: readonly R[]; none: string }): JSX.Element {
  return <div class="status-grid" style={{ height: `${Math.min(MOST_SEEN, Math.max(1, props.rows.length)) * ROW_PX + 46}px` }}><Grid label={props.label} class={props.class} columns={props.columns} rows={props.rows} height={ROW_PX} none={props.none} /></div>;
}

export function StorageTables(props: { storage: Storage }) {
  const sum = (): Held => props.storage.tables.reduce((all, { files, bytes, rows }) => ({ name: 'All tables', files: all.files + files, bytes: all.bytes + bytes, rows: all.rows + rows }), { name: 'All tables', files: 0, bytes: 0, rows: 0 });
  const points = (): [number, number][] => props.storage.days.map(({ name, bytes }) => [Date.parse(name), bytes]);
  const columns: Column<Held>[] = [texts('name', 'Table', ({ name }) => name), amounts('files', 'Files', ({ files }) => files), amounts('bytes', 'Size', ({ bytes }) => bytes, 'bytes'), amounts('rows', 'Rows', ({ rows }) => rows)];
  return (
    <>
      <Rows label="Tables of this tenant" class="storage-grid" columns={columns} rows={[...props.storage.tables, sum()]} none="No files yet" />
      <Show when={points().length > 1}>
        <figure class="growth">
          <figcaption>Size of files by day of their profiles{growth(props.storage) === null ? '' : `, ${formatValue(growth(props.storage) ?? 0, 'bytes')} per day`}</figcaption>
          <Spark points={points()} range={{ start: points()[0]![0], end: points().at(-1)![0] }} step={DAY_MS / 1000} label={`Size of files by day, from ${props.storage.days[0]?.name} to ${props.storage.days.at(-1)?.name}`} />
        </figure>
      </Show>
    </>
  );
}

interface Job {
  job: string;
  done: number;
  failed: number;
  read: number;
  written: number;
  mean: number;
}

export function Maintenance(props: { samples: readonly Sample[] }) {
  const of = (name: string, job: string): number => metric(props.samples, `alluvium_store_job${name}`, { job }) ?? 0;
  const rows = (): Job[] => [...new Set([...valuesOf(props.samples, 'alluvium_store_jobs_total', 'job'), ...valuesOf(props.samples, 'alluvium_store_job_failures_total', 'job')])].map((job) => ({
    job, done: of('s_total', job), failed: of('_failures_total', job), read: of('_read_bytes_total', job), written: of('_written_bytes_total', job),
    mean: of('_seconds_count', job) > 0 ? (of('_seconds_sum', job) / of('_seconds_count', job)) * 1e9 : 0,
  }));
  const waiting = (): number => metric(props.samples, 'alluvium_store_jobs_waiting') ?? 0;
  const columns: Column<Job>[] = [
    texts('job', 'Job', ({ job }) => job), amounts('done', 'Completed', ({ done }) => done), amounts('failed', 'Failed', ({ failed }) => failed),
    amounts('read', 'Replaced', ({ read }) => read, 'bytes'), amounts('written', 'Written', ({ written }) => written, 'bytes'), amounts('mean', 'Mean time', ({ mean }) => mean, 'ns'),
  ];
  return (
    <>
      <p class="status-note">{waiting() === 0 ? 'No jobs are pending.' : `${formatWhole(waiting())} ${waiting() === 1 ? 'job is' : 'jobs are'} pending or running.`}</p>
      <Rows label="Maintenance by job" class="job-grid" columns={columns} rows={rows()} none="No maintenance has run yet" />
    </>
  );
}

export function Senders(props: { rows: readonly Sender[] }) {
  const columns: Column<Sender>[] = [
    texts('agent', 'Program', ({ agent }) => agent || '(no user agent)'), texts('address', 'Address', ({ address }) => address || '–'),
    amounts('requests', 'Requests', ({ requests }) => requests), amounts('failed', 'Failed', ({ failed }) => failed),
    amounts('bytes', 'Bytes sent', ({ bytes }) => bytes, 'bytes'),
    { key: 'status', label: 'Last response', fixed: true, class: 'number', cell: (row) => <span classList={{ bad: row().lastStatus >= 400 }}>{row().lastStatus}</span> },
    { key: 'last', label: 'Last seen', fixed: true, class: 'number', title: ({ first }) => `First seen ${formatMoment(first, true)}`, cell: (row) => formatMoment(row().last, true) },
  ];
  return <Rows label="Clients" class="sender-grid" columns={columns} rows={props.rows} none="No client has sent profiles since the start" />;
}

interface Collector {
  of: Sender;
  queue: Queue;
  health: CollectorHealth;
}

/** The Alluvium collectors that push to this server; those with problems come first. */
export function Collectors(props: { rows: readonly Sender[] }) {
  const rows = (): Collector[] => props.rows
    .flatMap((of): Collector[] => (of.queue ? [{ of, queue: of.queue, health: collectorHealth({ ...of, queue: of.queue }, Date.now()) }] : []))
    .sort((a, b) => Number(a.health.good) - Number(b.health.good) || b.queue.oldest - a.queue.oldest);
  const columns: Column<Collector>[] = [
    texts('host', 'Host', ({ queue }) => queue.host || '–'), texts('component', 'Component', ({ queue }) => queue.component || '–'), texts('agent', 'Version', ({ of }) => of.agent || '–'),
    { key: 'health', label: 'State', fixed: true, class: 'ellipsis', title: ({ health }) => health.text, cell: (row) => <span classList={{ bad: !row().health.good }}>{row().health.text}</span> },
    amounts('profiles', 'Queued', ({ queue }) => queue.profiles), { ...amounts<Collector>('oldest', 'Oldest', ({ queue }) => queue.oldest * 1e6, 'ns'), title: () => 'How long the oldest profile had waited in the queue at the last request' },
    { ...amounts<Collector>('dropped', 'Dropped', ({ queue }) => queue.dropped), title: () => 'Profiles that the collector has dropped since its start' },
    { key: 'last', label: 'Last seen', fixed: true, class: 'number', title: ({ of }) => `First seen ${formatMoment(of.first, true)}`, cell: (row) => formatMoment(row().of.last, true) },
  ];
  return <Rows label="Collectors" class="collector-grid" columns={columns} rows={rows()} none="No Alluvium collector has sent profiles since the start" />;
}

interface Refusal {
  what: string;
  reason: string;
  count: number;
}

const REFUSED = [['Profiles refused', 'alluvium_store_rejected_profiles_total'], ['Values dropped', 'alluvium_store_dropped_values_total']] as const;

export function Refusals(props: { samples: readonly Sample[] }) {
  const rows = (): Refusal[] => REFUSED.flatMap(([what, name]) => valuesOf(props.samples, name, 'reason').map((reason) => ({ what, reason, count: metric(props.samples, name, { reason }) ?? 0 }))).filter(({ count }) => count > 0);
  const columns: Column<Refusal>[] = [texts('what', 'What', ({ what }) => what), texts('reason', 'Reason', ({ reason }) => reason), amounts('count', 'Count', ({ count }) => count)];
  return <Rows label="Refused profiles by reason" class="refusal-grid" columns={columns} rows={rows()} none="No profiles were refused" />;
}

const labelsOf = ({ labels }: BigSeries): string => Object.entries(labels).sort().map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', ');

export function BiggestSeries(props: { rows: readonly BigSeries[] }) {
  const columns: Column<BigSeries>[] = [
    texts('labels', 'Series', labelsOf), texts('type', 'Type', ({ type }) => profileType(type).label),
    amounts('profiles', 'Profiles', ({ profiles }) => profiles), amounts('stacks', 'Stacks', ({ stacks }) => stacks),
  ];
  return <Rows label="Largest series of the last day" class="series-grid" columns={columns} rows={props.rows} none="No profiles arrived" />;
}

export function Limits(props: { rows: Settings }) {
  const columns: Column<Settings[number]>[] = [texts('name', 'Limit', ([name]) => name), { key: 'value', label: 'Value', fixed: true, class: 'number', title: () => '0 means no limit', cell: (row) => row()[1] }];
  return <Rows label="Limits of this tenant" class="limit-grid" columns={columns} rows={props.rows} none="No limits" />;
}

export function Configuration(props: { whole: string; differs: string }) {
  const [all, setAll] = createSignal(false);
  const text = (): string => (all() ? props.whole : props.differs).trim();
  return (
    <>
      <div class="group" role="group" aria-label="Shown configuration">
        <For each={[false, true]}>{(whole) => <button type="button" class="button" aria-pressed={all() === whole} onClick={() => setAll(whole)}>{whole ? 'All settings' : 'Changed from the default'}</button>}</For>
      </div>
      <pre class="config" tabindex="0">{text() === '' || text() === '{}' ? 'All settings have their defaults.' : text()}</pre>
    </>
  );
}
