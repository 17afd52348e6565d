// How the server is: ready or not, which build, what its metrics say, and what came in during the last day.

import type { Accessor } from 'solid-js';
import { ApiError, send } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { readMetrics, type Sample } from '../lib/metrics.ts';
import { sql } from '../lib/sql.ts';

export interface Health {
  ready: boolean;
  /** What the server says to it. */
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

export interface StatusModel {
  health: Loader<Health>;
  metrics: Loader<readonly Sample[]>;
  services: Loader<readonly Intake[]>;
  types: Loader<readonly Intake[]>;
}

/** A page need not list more. */
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
    // The metrics are about the whole process: they have no path prefix, unless a proxy gives them one.
    metrics: createLoader(tick, async (_, signal) => {
      const answer = await send('metrics', {}, signal).catch(async (error: unknown) => {
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
        const root = await fetch('/metrics', { signal });
        if (!root.ok) throw error;
        return root;
      });
      return readMetrics(await answer.text());
    }),
    services: createLoader(tick, (_, signal) => intake('s.service_name', signal)),
    types: createLoader(tick, (_, signal) => intake('p.profile_type', signal)),
  };
}

async function intake(by: string, signal: AbortSignal): Promise<Intake[]> {
  const rows = await sql(`SELECT ${by} AS name, count(*) AS profiles, sum(p.sample_count) AS stacks, count(DISTINCT p.series) AS series, min(p.time) AS first, max(p.time) AS last
FROM profiles p JOIN series s ON p.series = s.series
WHERE p.time > now() - interval '1 day'
GROUP BY 1 ORDER BY 2 DESC LIMIT ${MOST}`, signal);
  return rows.map((row) => ({ name: String(row.name), profiles: Number(row.profiles), stacks: Number(row.stacks), series: Number(row.series), first: Date.parse(String(row.first)), last: Date.parse(String(row.last)) }));
}
