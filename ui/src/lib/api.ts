// The requests of the page: Pyroscope's querier.v1 as JSON over Connect, relative to the base of the page.
// In: plain values. Out: plain values, or an ApiError with the message and the code of the server.

import { BASE } from './base.ts';
import { mergeProfileRequest } from './pprof.ts';
import { noteRefusal } from './session.ts';
import type { Range } from './time.ts';

const SERVICE = 'querier.v1.QuerierService';

export class ApiError extends Error {
  /** Connect's error code, or `network` without a response. */
  readonly code: string;
  readonly status: number;

  constructor(message: string, code: string, status: number) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.status = status;
  }
}

export type Labels = Record<string, string>;

export interface SeriesPoints {
  labels: Labels;
  /** Milliseconds (the right edge of a step) and the value, by time. */
  points: [number, number][];
}

/** A flame graph in the wire format; numbers are decimal text. */
export interface FlameGraphMessage {
  names: string[];
  levels: { values?: (string | number)[] }[];
  total?: string | number;
  maxSelf?: string | number;
  files?: string[];
  mappings?: string[];
  lines?: { values?: (string | number)[] }[];
}

interface LabelPair {
  name: string;
  value?: string;
}

export interface SeriesQuery {
  type: string;
  selector: string;
  range: Range;
  /** Seconds between points. */
  step: number;
  groupBy?: string[];
  average?: boolean;
  limit?: number;
}

/** Sends a request to a path below the base. A response that is not OK becomes an `ApiError` with the server's text. */
export async function send(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE + path, { ...init, signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError('cannot reach the server; check that it runs and that the network is up', 'network', 0);
  }
  if (response.ok) return response;
  if (response.status === 401) void noteRefusal();
  const text = await response.text().catch(() => '');
  let code = 'unknown';
  let message = text.slice(0, 2000).trim();
  try {
    const parsed = JSON.parse(text) as { code?: string; message?: string };
    code = parsed.code ?? code;
    message = parsed.message ?? message;
  } catch {
    // The response is not an error of Connect but, for example, a proxy's page: its text is the message.
  }
  throw new ApiError(message || `${path} returned status ${response.status}`, code, response.status);
}

const post = (method: string, contentType: string, body: BodyInit, signal: AbortSignal | undefined): Promise<Response> =>
  send(`${SERVICE}/${method}`, { method: 'POST', headers: { 'content-type': contentType, 'connect-protocol-version': '1' }, body }, signal);

async function call<T>(method: string, request: object, signal?: AbortSignal): Promise<T> {
  const response = await post(method, 'application/json', JSON.stringify(request), signal);
  return (await response.json()) as T;
}

const times = (range: Range): { start: string; end: string } => ({ start: String(Math.floor(range.start)), end: String(Math.ceil(range.end)) });

const toLabels = (pairs: LabelPair[] | undefined): Labels => Object.fromEntries((pairs ?? []).map(({ name, value }) => [name, value ?? '']));

/** Returns the ids of the profile types that have data in the range. If the range is null, returns all types that have data. */
export async function profileTypes(range: Range | null, signal?: AbortSignal): Promise<string[]> {
  const answer = await call<{ profileTypes?: { ID?: string }[] }>('ProfileTypes', range ? times(range) : {}, signal);
  return (answer.profileTypes ?? []).map(({ ID }) => ID ?? '').filter(Boolean);
}

/** Returns the names of labels, without internal ones. */
export async function labelNames(selector: string, range: Range, signal?: AbortSignal): Promise<string[]> {
  const answer = await call<{ names?: string[] }>('LabelNames', { matchers: [selector], ...times(range) }, signal);
  return (answer.names ?? []).filter((name) => !/^__.*__$/.test(name)).sort();
}

export async function labelValues(name: string, selector: string, range: Range, signal?: AbortSignal): Promise<string[]> {
  const answer = await call<{ names?: string[] }>('LabelValues', { name, matchers: [selector], ...times(range) }, signal);
  return [...(answer.names ?? [])].sort();
}

/** The profile types of a service, or of the part of it with one value of a label. */
export interface ServiceTypes {
  service: string;
  /** Value of the label that splits services; empty without a label. */
  value: string;
  types: string[];
}

const byName = new Intl.Collator().compare;

/** Returns the services, sorted by name. With a label, a service has a separate entry for each value of the label. */
export async function servicesBy(label: string, range: Range, signal?: AbortSignal): Promise<ServiceTypes[]> {
  const answer = await call<{ labelsSet?: { labels?: LabelPair[] }[] }>(
    'Series',
    { matchers: ['{}'], labelNames: ['service_name', '__profile_type__', ...(label === '' ? [] : [label])], ...times(range) },
    signal,
  );
  const found = new Map<string, ServiceTypes>();
  for (const { labels } of answer.labelsSet ?? []) {
    const { service_name: service, __profile_type__: type, [label]: value = '' } = toLabels(labels);
    if (!service) continue;
    const key = JSON.stringify([service, value]);
    const one = found.get(key) ?? { service, value, types: [] };
    if (type && !one.types.includes(type)) one.types.push(type);
    found.set(key, one);
  }
  return [...found.values()].sort((a, b) => byName(a.service, b.service) || byName(a.value, b.value));
}

/** Returns the services with the profile types of each. */
export const services = async (range: Range, signal?: AbortSignal): Promise<Map<string, string[]>> =>
  new Map((await servicesBy('', range, signal)).map(({ service, types }) => [service, types]));

/** Returns the settings that the server stores for this tenant. */
export async function readSettings(signal?: AbortSignal): Promise<Map<string, string>> {
  const response = await send(`${SETTINGS}/Get`, json({}), signal);
  const { settings = [] } = (await response.json()) as { settings?: { name?: string; value?: string }[] };
  return new Map(settings.map(({ name = '', value = '' }) => [name, value]));
}

export async function keepSetting(name: string, value: string, signal?: AbortSignal): Promise<void> {
  await send(`${SETTINGS}/Set`, json({ setting: { name, value } }), signal);
}

const SETTINGS = 'settings.v1.SettingsService';
const json = (message: object): RequestInit => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(message) });

export async function selectSeries(query: SeriesQuery, signal?: AbortSignal): Promise<SeriesPoints[]> {
  const answer = await call<{ series?: { labels?: LabelPair[]; points?: { value?: number | string; timestamp?: string | number }[] }[] }>(
    'SelectSeries',
    {
      profileTypeID: query.type,
      labelSelector: query.selector,
      ...times(query.range),
      groupBy: query.groupBy ?? [],
      step: query.step,
      aggregation: query.average ? 1 : 0,
      ...(query.limit ? { limit: String(query.limit) } : {}),
    },
    signal,
  );
  return (answer.series ?? []).map(({ labels, points }) => ({
    labels: toLabels(labels),
    points: (points ?? []).map(({ value, timestamp }): [number, number] => [Number(timestamp ?? 0), Number(value ?? 0)]).sort((a, b) => a[0] - b[0]),
  }));
}

/** Returns the times of the oldest and the newest stored profile; null if nothing is stored. */
export async function storedRange(signal?: AbortSignal): Promise<Range | null> {
  const answer = await call<{ dataIngested?: boolean; oldestProfileTime?: string | number; newestProfileTime?: string | number }>('GetProfileStats', {}, signal);
  const end = Number(answer.newestProfileTime ?? 0);
  return answer.dataIngested && end > 0 ? { start: Number(answer.oldestProfileTime ?? 0), end } : null;
}

export interface FlameQuery {
  type: string;
  selector: string;
  range: Range;
  maxNodes: number;
  /** If set, only stacks that begin with these functions at the root. */
  callSite?: readonly string[];
  /** If set, only the profiles with these ids. */
  profiles?: readonly string[];
  /** If set, only stacks that were sampled during these spans, 16 hexadecimal digits each. */
  spans?: readonly string[];
  /** If true, the response has no files, binaries and lines, so that functions with the same name are merged. */
  plain?: boolean;
}

const stacktracesRequest = (query: FlameQuery): object => ({
  profileTypeID: query.type,
  labelSelector: query.selector,
  ...times(query.range),
  maxNodes: String(query.maxNodes),
  ...(query.callSite?.length ? { stackTraceSelector: { callSite: query.callSite.map((name) => ({ name })) } } : {}),
  ...(query.profiles?.length ? { profileIdSelector: query.profiles } : {}),
  ...(query.spans?.length ? { spanSelector: query.spans } : {}),
});

export async function mergeStacktraces(query: FlameQuery, signal?: AbortSignal): Promise<FlameGraphMessage> {
  const answer = await call<{ flamegraph?: Partial<FlameGraphMessage> }>('SelectMergeStacktraces', { ...stacktracesRequest(query), ...(query.plain ? {} : { frameDetails: true }) }, signal);
  return { names: [], levels: [], ...answer.flamegraph };
}

/** Returns the difference of two queries, with seven numbers for each node. */
export async function diffStacktraces(left: FlameQuery, right: FlameQuery, signal?: AbortSignal): Promise<FlameGraphMessage> {
  const answer = await call<{ flamegraph?: Partial<FlameGraphMessage> }>('Diff', { left: stacktracesRequest(left), right: stacktracesRequest(right) }, signal);
  return { names: [], levels: [], ...answer.flamegraph };
}

/** Returns the merged profile as pprof, with all stacks. */
export async function mergedPprof(type: string, selector: string, range: Range, signal?: AbortSignal): Promise<Blob> {
  const request = mergeProfileRequest(type, selector, Math.floor(range.start), Math.ceil(range.end));
  const response = await post('SelectMergeProfile', 'application/proto', request as BodyInit, signal);
  return response.blob();
}
