// The model of the Status view: readiness, build, metrics, storage, clients, and the profiles of the last day.

import type { Accessor } from 'solid-js';
import { ApiError, send } from '../lib/api.ts';
import { formatAge, formatWhole } from '../lib/format.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { readMetrics, type Sample } from '../lib/metrics.ts';
import { sql } from '../lib/sql.ts';

export interface Health {
  ready: boolean;
  /** Response of the server to the readiness check. */
  text: string;
  version: string;
  revision: string;
}

export interface Intake {
  name: string;
  profiles: number;
  stacks: number;
  series: number;
  first: number;
  last: number;
}

/** The files of a table or of a day. */
export interface Held {
  name: string;
  files: number;
  bytes: number;
  rows: number;
}

export interface Storage {
  tables: readonly Held[];
  /** Files by the day of their profiles, the oldest first. */
  days: readonly Held[];
}

/** A client that sends profiles. */
export interface Sender {
  /** User agent of the client. */
  agent: string;
  address: string;
  first: number;
  last: number;
  requests: number;
  failed: number;
  bytes: number;
  lastStatus: number;
  /** The queue of an Alluvium collector, as reported by its last request; null for other clients. */
  queue: Queue | null;
}

export interface Queue {
  host: string;
  component: string;
  /** Number of profiles in the queue. */
  profiles: number;
  /** Milliseconds that the oldest profile has waited. */
  oldest: number;
  /** Number of profiles dropped since the start of the collector. */
  dropped: number;
  /** Number of requests that failed before the last request succeeded. */
  failures: number;
}

/** One of the largest series. */
export interface BigSeries {
  labels: Readonly<Record<string, string>>;
  type: string;
  profiles: number;
  stacks: number;
}

/** Names and values as the server writes them. */
export type Settings = readonly (readonly [name: string, value: string])[];

export interface StatusModel {
  storage: Loader<Storage>;
  senders: Loader<readonly Sender[]>;
  series: Loader<readonly BigSeries[]>;
  limits: Loader<Settings>;
  /** The effective configuration, and the settings that differ from the defaults, as YAML. */
  config: Loader<{ whole: string; differs: string }>;
  health: Loader<Health>;
  metrics: Loader<readonly Sample[]>;
  services: Loader<readonly Intake[]>;
  types: Loader<readonly Intake[]>;
}

/** Maximum number of rows in a list. */
const MOST = 1000;

export function createStatus(tick: Accessor<number>): StatusModel {
  return {
    health: createLoader(tick, async (_, signal) => {
      const [ready, build] = await Promise.all([
        send('ready', {}, signal).then(async (answer) => ({ ready: true, text: (await answer.text()).trim() }), (error: unknown) => {
          if (error instanceof ApiError && error.status === 503) return { ready: false, text: error.message };
          throw error;
        }),
        send('api/v1/status/buildinfo', {}, signal).then((answer) => answer.json() as Promise<{ data?: { version?: string; revision?: string } }>),
      ]);
      return { ...ready, version: build.data?.version ?? '', revision: build.data?.revision ?? '' };
    }),
    // The metrics belong to the whole process, so they have no path prefix unless a proxy adds one.
    metrics: createLoader(tick, async (_, signal) => {
      const answer = await send('metrics', {}, signal).catch(async (error: unknown) => {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
        const root = await fetch('/metrics', { signal });
        if (!root.ok) throw error;
        return root;
      });
      return readMetrics(await answer.text());
    }),
    storage: createLoader(tick, async (_, signal) => readStorage(await json('api/v1/status/storage', signal))),
    senders: createLoader(tick, async (_, signal) => readSenders(await json('api/v1/status/senders', signal))),
    series: createLoader(tick, async (_, signal) => (await sql(BIGGEST, signal)).map((row) => ({
      labels: Object.fromEntries(Object.entries((row.labels ?? {}) as Record<string, unknown>).map(([name, value]) => [name, String(value)])),
      type: String(row.profile_type), profiles: Number(row.profiles), stacks: Number(row.stacks),
    }))),
    limits: createLoader(tick, async (_, signal) => readSettings(await json('api/v1/tenant_limits', signal))),
    config: createLoader(tick, async (_, signal) => {
      const [whole, differs] = await Promise.all(['', '/diff'].map((part) => send(`api/v1/status/config${part}`, {}, signal).then((answer) => answer.text())));
      return { whole: whole ?? '', differs: differs ?? '' };
    }),
    services: createLoader(tick, (_, signal) => intake('s.service_name', signal)),
    types: createLoader(tick, (_, signal) => intake('p.profile_type', signal)),
  };
}

const json = (path: string, signal: AbortSignal): Promise<unknown> => send(path, {}, signal).then((answer) => answer.json() as Promise<unknown>);

type Rows = readonly Readonly<Record<string, unknown>>[];

export function readStorage(answer: unknown): Storage {
  const { tables = [], days = [] } = answer as { tables?: Rows; days?: Rows };
  const held = (rows: Rows, name: string): Held[] => rows.map((row) => ({ name: String(row[name]), files: Number(row.files), bytes: Number(row.bytes), rows: Number(row.rows) }));
  return { tables: held(tables, 'table'), days: held(days, 'day') };
}

export const readSenders = (answer: unknown): Sender[] => ((answer as { senders?: Rows }).senders ?? []).map((row) => ({
  agent: String(row.agent ?? ''), address: String(row.address ?? ''),
  first: Number(row.firstSeen), last: Number(row.lastSeen),
  requests: Number(row.requests), failed: Number(row.failed), bytes: Number(row.bytes), lastStatus: Number(row.lastStatus),
  queue: row.queue ? readQueue(row.queue as Rows[number]) : null,
}));

const readQueue = (row: Rows[number]): Queue => ({
  host: String(row.host ?? ''), component: String(row.component ?? ''),
  profiles: Number(row.profiles), oldest: Number(row.oldestMs), dropped: Number(row.dropped), failures: Number(row.failures),
});

/** Milliseconds without a request after which a collector may be gone. Usually, a collector sends profiles every few seconds. */
const QUIET_MS = 5 * 60_000;
/** If the oldest profile has waited longer than this in milliseconds, the collector is behind. */
const BEHIND_MS = 60_000;

export interface CollectorHealth {
  text: string;
  good: boolean;
}

/** Returns the health of a collector from its last request. */
export function collectorHealth({ queue, last, lastStatus }: Sender & { queue: Queue }, now: number): CollectorHealth {
  if (lastStatus >= 400) return { text: `last response ${lastStatus}`, good: false };
  if (now - last > QUIET_MS) return { text: `no request for ${formatAge(now - last)}`, good: false };
  if (queue.oldest > BEHIND_MS) return { text: `${formatAge(queue.oldest)} behind`, good: false };
  if (queue.failures > 0) return { text: `recovered after ${formatWhole(queue.failures)} ${queue.failures === 1 ? 'failure' : 'failures'}`, good: true };
  return { text: 'up to date', good: true };
}

export const readSettings = (answer: unknown): Settings => Object.entries(answer as Record<string, unknown>).map(([name, value]) => [name, typeof value === 'object' ? JSON.stringify(value) : String(value)] as const);

/** Returns the mean bytes per day over the last seven complete days; the newest day is still growing and does not count. */
export function growth({ days }: Storage): number | null {
  const whole = days.slice(0, -1).slice(-7);
  return whole.length === 0 ? null : whole.reduce((sum, { bytes }) => sum + bytes, 0) / whole.length;
}

/** The statement for the series with the most stacks in the last day. */
const BIGGEST = `SELECT s.labels, p.profile_type, count(*) AS profiles, sum(p.sample_count) AS stacks
FROM profiles p JOIN series s ON p.series = s.series
WHERE p.time > now() - interval '1 day'
GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 20`;

async function intake(by: string, signal: AbortSignal): Promise<Intake[]> {
  const rows = await sql(`SELECT ${by} AS name, count(*) AS profiles, sum(p.sample_count) AS stacks, count(DISTINCT p.series) AS series, min(p.time) AS first, max(p.time) AS last
FROM profiles p JOIN series s ON p.series = s.series
WHERE p.time > now() - interval '1 day'
GROUP BY 1 ORDER BY 2 DESC LIMIT ${MOST}`, signal);
  return rows.map((row) => ({ name: String(row.name), profiles: Number(row.profiles), stacks: Number(row.stacks), series: Number(row.series), first: Date.parse(String(row.first)), last: Date.parse(String(row.last)) }));
}
