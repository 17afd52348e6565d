// Single profiles over time, loaded by SQL: the time, series and value of each. If there are too many to draw, a heat map
// with the number of profiles by time and value is loaded instead.

import { createMemo, type Accessor } from 'solid-js';
import { createLoader, type Loader } from '../lib/loader.ts';
import type { ProfileType } from '../lib/profile-types.ts';
import { parseMatchers, printSelector, type Matcher } from '../lib/selector.ts';
import { condition, during, quoted, sql, type SqlRow } from '../lib/sql.ts';
import { stepFor, type Range } from '../lib/time.ts';
import type { Query } from './selection.ts';

export interface Sample {
  /** `time~series`, as in the URL. */
  key: string;
  /** Milliseconds, although the store has microseconds. */
  time: number;
  series: string;
  /** Id of the profile; empty if the sender gave it none. */
  id: string;
  total: number;
  /** Number of stacks. */
  count: number;
  /** Nanoseconds, 0 if not known. */
  duration: number;
  labels: Readonly<Record<string, string>>;
}

/** A cell of the heat map: the number of profiles in a range of times and values. */
export interface Cell {
  time: number;
  row: number;
  count: number;
}

export interface SampleData {
  type: ProfileType;
  range: Range;
  /** Number of profiles, and their largest value. */
  count: number;
  most: number;
  /** The profiles, the newest first; empty if there are too many. */
  samples: readonly Sample[];
  /** If there are too many profiles, cells that are `step` seconds wide, in `ROWS` rows; otherwise empty. */
  cells: readonly Cell[];
  step: number;
}

export const MOST_DOTS = 3000;
export const ROWS = 24;
const COLUMNS = 160;

const number = (value: unknown): number => Number(value ?? 0);

export function readSample(row: SqlRow): Sample {
  const time = Date.parse(String(row.time));
  const series = String(row.series);
  return {
    key: `${time}~${series}`, time, series,
    id: String(row.profile_id ?? ''),
    total: number(row.total), count: number(row.sample_count), duration: number(row.duration_ns),
    labels: Object.fromEntries(Object.entries((row.labels ?? {}) as Record<string, unknown>).map(([name, value]) => [name, String(value)])),
  };
}

/** Returns the FROM and WHERE clauses of a query: `profiles` as `p`, joined with their `series` as `s`. */
export function rowsOf({ type, selector, range }: Query): string {
  const conditions = parseMatchers(selector).map((matcher) => (matcher.name === 'service_name' && matcher.op === '=' ? `service_name = ${quoted(matcher.value)}` : condition(matcher)));
  return `FROM profiles p JOIN (SELECT series, labels FROM series WHERE ${conditions.join(' AND ') || 'true'}) s ON p.series = s.series
WHERE p.profile_type = ${quoted(type.id)} AND ${during(range, 'p.time')}`;
}

export function createSamples(query: Accessor<Query | null>): Loader<SampleData> {
  return createLoader(query, async (asked, signal) => {
    const rows = rowsOf(asked);
    const [whole] = await sql(`SELECT count(*) AS count, max(p.total) AS most ${rows}`, signal);
    const [count, most] = [number(whole?.count), number(whole?.most)];
    const step = stepFor(asked.range, COLUMNS);
    const data = { type: asked.type, range: asked.range, count, most, step };
    if (count <= MOST_DOTS) {
      const found = await sql(`SELECT p.time, p.series, p.profile_id, p.total, p.sample_count, p.duration_ns, s.labels ${rows}\nORDER BY p.time DESC LIMIT ${MOST_DOTS}`, signal);
      return { ...data, samples: found.map(readSample), cells: [] };
    }
    const cells = await sql(`SELECT time_bucket('${step}s', p.time) AS time, least(${ROWS - 1}, CAST(floor(p.total * ${ROWS}.0 / ${Math.max(1, most)}) AS BIGINT)) AS row, count(*) AS count ${rows}\nGROUP BY 1, 2`, signal);
    return { ...data, samples: [], cells: cells.map((cell) => ({ time: Date.parse(String(cell.time)), row: Math.max(0, number(cell.row)), count: number(cell.count) })) };
  });
}

/** Loads the profile that the URL names, even if it is not drawn. */
export function createOpened(key: Accessor<string>, type: Accessor<ProfileType | null>): Loader<Sample | null> {
  const wanted = createMemo(() => {
    const [, time, series] = /^(\d{9,16})~(-?\d{1,20})$/.exec(key()) ?? [];
    const of = type();
    return time && series && of ? { time: Number(time), series, type: of } : null;
  }, null, { equals: (a, b) => a === b || (a !== null && b !== null && a.time === b.time && a.series === b.series && a.type.id === b.type.id) });
  return createLoader(wanted, async ({ time, series, type: of }, signal) => {
    const [row] = await sql(`SELECT p.time, p.series, p.profile_id, p.total, p.sample_count, p.duration_ns, s.labels FROM profiles p JOIN series s ON p.series = s.series
WHERE p.profile_type = ${quoted(of.id)} AND p.series = ${series} AND ${during({ start: time, end: time + 1 }, 'p.time')} LIMIT 1`, signal);
    return row ? readSample(row) : null;
  });
}

/** The value of one span in a profile. */
export interface SpanShare {
  /** 16 hexadecimal digits. */
  span: string;
  /** 32 hexadecimal digits; empty if not known. */
  trace: string;
  value: number;
}

const MOST_SPANS = 50;

/** Loads the spans whose stacks are in a profile, the largest values first. */
export function createSpans(sample: Accessor<Sample | null | undefined>, type: Accessor<ProfileType | null>): Loader<readonly SpanShare[]> {
  const wanted = createMemo(() => {
    const [of, found] = [type(), sample()];
    return of && found ? { of, found } : null;
  });
  return createLoader(wanted, async ({ of, found: { time, series } }, signal) => {
    const rows = await sql(`SELECT span_id, max(trace_id) AS trace_id, sum(value) AS value FROM samples
WHERE profile_type = ${quoted(of.id)} AND series = ${series} AND ${during({ start: time, end: time + 1 })} AND span_id IS NOT NULL AND span_id <> ''
GROUP BY 1 ORDER BY 3 DESC LIMIT ${MOST_SPANS}`, signal);
    return rows.map((row) => ({ span: String(row.span_id), trace: String(row.trace_id ?? ''), value: number(row.value) }));
  });
}

/** Returns a query for this profile: its millisecond and all its labels. It also selects other profiles of that millisecond with these labels. */
export function questionOf({ time, labels }: Sample, type: ProfileType): Query {
  const matchers = Object.entries(labels).map(([name, value]): Matcher => ({ name, op: '=', value }));
  return { type, selector: printSelector(matchers), range: { start: time, end: time + 1 } };
}
