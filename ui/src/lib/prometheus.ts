// Metrics from the Prometheus that the server is configured with: whether there is one, and the lines of a query over a range.

import { send, type Labels } from './api.ts';
import { stepFor, type Range } from './time.ts';

export interface MetricLine {
  labels: Labels;
  /** Pairs of a time in milliseconds and a value, in order of time. Contains only finite values. */
  points: [number, number][];
}

interface Answer {
  data?: { resultType?: string; result?: { metric?: Labels; values?: [number, string][] }[] };
}

/** Desired maximum number of points over the width of the chart. */
const POINTS = 180;

let asked: Promise<boolean> | undefined;

/** Whether the server has a Prometheus. Requested once, because it depends on the configuration only. */
export function hasPrometheus(): Promise<boolean> {
  asked ??= send('capabilities.v1.FeatureFlagsService/GetFeatureFlags', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    .then((answer) => answer.json() as Promise<{ featureFlags?: { name?: string; enabled?: boolean }[] }>)
    .then(({ featureFlags = [] }) => featureFlags.some(({ name, enabled }) => name === 'alluviumPrometheus' && enabled === true))
    // A server other than Alluvium does not support this request.
    .catch(() => false);
  return asked;
}

/** Returns the lines of a query, and the seconds between their points. */
export async function metricLines(query: string, range: Range, signal?: AbortSignal): Promise<{ lines: MetricLine[]; step: number }> {
  const step = stepFor(range, POINTS);
  const whole = (ms: number): number => Math.floor(ms / 1000 / step) * step;
  const params = new URLSearchParams({ query, start: String(whole(range.start)), end: String(whole(range.end)), step: String(step) });
  const answer = (await (await send(`api/v1/prometheus/query_range?${params}`, {}, signal)).json()) as Answer;
  return { lines: readLines(answer), step };
}

export function readLines({ data }: Answer): MetricLine[] {
  return (data?.result ?? []).map(({ metric = {}, values = [] }) => ({
    labels: metric,
    points: values.map(([seconds, value]): [number, number] => [seconds * 1000, Number(value)]).filter(([, value]) => Number.isFinite(value)),
  })).filter(({ points }) => points.length > 0);
}

/** Returns the name of a line: its metric and labels, as in PromQL. */
export function lineName({ __name__: name = '', ...labels }: Labels): string {
  const inner = Object.entries(labels).sort().map(([label, value]) => `${label}=${JSON.stringify(value)}`).join(', ');
  return `${name}${inner === '' ? '' : `{${inner}}`}` || 'value';
}
