// The components of a collector as its API returns them, and the graph that they make.
// In: JSON of `/api/v0/web/*`. Out: plain values in which every field is set, even if the response omits it.

export type HealthState = 'healthy' | 'unknown' | 'unhealthy' | 'exited';

export interface Health {
  state: HealthState;
  message: string;
  /** Milliseconds since 1970, 0 if not known. */
  updated: number;
}

/** A value of the configuration language, as the API writes it. */
export interface Value {
  type: string;
  value: unknown;
}

/** An attribute or a block of arguments, exports or debug info. */
export type Field = { name: string; type: 'attr'; value: Value } | { name: string; type: 'block'; label: string; body: Field[] };

export interface Component {
  /** Full id: the id of the module, a slash, and the local id. */
  id: string;
  localId: string;
  /** Name of the component, such as `pyroscope.scrape`. */
  name: string;
  label: string;
  module: string;
  referencesTo: string[];
  referencedBy: string[];
  flowsTo: string[];
  /** Local ids of the components that send data to this one. */
  feeders: string[];
  health: Health;
  /** Modules that the component created, which open as graphs of their own. */
  modules: string[];
}

export interface Detail extends Component {
  arguments: Field[];
  exports: Field[];
  debugInfo: Field[];
}

export interface Load {
  success: boolean;
  time: number;
  text: string;
}

export interface Overview {
  version: string;
  /** Null before the first load. */
  load: Load | null;
  live: { enabled: boolean };
}

/** The flow from a component, as counted over the window of time that the request names. */
export interface Rate {
  from: string;
  /** Ids of the receivers; empty for targets, which go to all components that refer to this one. */
  to: string[];
  type: string;
  rate: number;
  bytes: number;
  /** Number of targets that the component exports; -1 if it exports no targets. */
  targets: number;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const object = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});
const texts = (value: unknown): string[] => list(value).map(text).filter(Boolean);
const STATES: readonly string[] = ['healthy', 'unknown', 'unhealthy', 'exited'];

function moment(value: unknown): number {
  const time = Date.parse(text(value));
  return Number.isNaN(time) ? 0 : time;
}

function readHealth(value: unknown): Health {
  const { state, message, updatedTime } = object(value);
  return { state: STATES.includes(text(state)) ? (state as HealthState) : 'unknown', message: text(message), updated: moment(updatedTime) };
}

/** Reads one component from the list that the API returns. */
export function readComponent(value: unknown): Component {
  const fields = object(value);
  const localId = text(fields.localID);
  const module = text(fields.moduleID);
  return {
    id: wholeId(module, localId),
    localId,
    name: text(fields.name),
    label: text(fields.label),
    module,
    referencesTo: texts(fields.referencesTo),
    referencedBy: texts(fields.referencedBy),
    flowsTo: texts(fields.dataFlowEdgesTo),
    feeders: [],
    health: readHealth(fields.health),
    modules: texts(fields.createdModuleIDs),
  };
}

export function readComponents(value: unknown): Component[] {
  const components = list(value).map(readComponent).filter(({ localId }) => localId !== '');
  const byId = new Map(components.map((component) => [component.localId, component]));
  for (const { localId, flowsTo } of components) for (const to of flowsTo) byId.get(to)?.feeders.push(localId);
  return components;
}

export function readDetail(value: unknown): Detail {
  const fields = object(value);
  return { ...readComponent(value), arguments: readFields(fields.arguments), exports: readFields(fields.exports), debugInfo: readFields(fields.debugInfo) };
}

function readFields(value: unknown): Field[] {
  return list(value).map((entry): Field => {
    const { name, type, label, body, value: inner } = object(entry);
    if (type === 'block') return { name: text(name), type: 'block', label: text(label), body: readFields(body) };
    const { type: kind, value: content } = object(inner);
    return { name: text(name), type: 'attr', value: { type: text(kind) || 'null', value: content } };
  });
}

/** A target of a scrape component that can send a goroutine dump. */
export interface DumpTarget {
  /** URL of the goroutine profile, by which the collector identifies the target. */
  url: string;
  /** Service and address, for display. */
  name: string;
}

/** Returns the targets in the debug info of a scrape component that can send a goroutine dump, each URL once. */
export function dumpTargets(debugInfo: readonly Field[]): DumpTarget[] {
  const found = new Map<string, DumpTarget>();
  for (const field of debugInfo) {
    if (field.type !== 'block' || field.name !== 'targets' || attribute(field.body, 'goroutine_dump') !== true) continue;
    const url = text(attribute(field.body, 'url'));
    if (url === '' || found.has(url)) continue;
    const labels = field.body.find(({ name, type }) => name === 'labels' && type === 'block');
    const service = labels?.type === 'block' ? text(attribute(labels.body, 'service_name')) : '';
    found.set(url, { url, name: [service, addressOf(url)].filter(Boolean).join(' at ') });
  }
  return [...found.values()];
}

const attribute = (fields: readonly Field[], name: string): unknown => {
  const field = fields.find((field) => field.name === name);
  return field?.type === 'attr' ? field.value.value : undefined;
};

/** Returns the host, the port and the path before `/debug/pprof/`; the whole URL if it is not one. */
function addressOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { host, pathname } = new URL(url);
  return host + pathname.replace(/\/debug\/pprof\/[^/]*$/, '');
}

/** Returns the file name of a goroutine dump. */
export function dumpName(url: string, time: Date): string {
  const stamp = time.toISOString().slice(0, 19).replace(/:/g, '');
  return `goroutines.${addressOf(url)}.${stamp}.txt`.replace(/[^\w.-]+/g, '_');
}

export function readOverview(value: unknown): Overview {
  const { version, lastLoad, liveDebugging } = object(value);
  const load = object(lastLoad);
  const live = object(liveDebugging);
  return {
    version: text(version),
    load: lastLoad ? { success: load.success === true, time: moment(load.time), text: text(load.text) } : null,
    live: { enabled: live.enabled === true },
  };
}

/** Reads one entry of the flow stream; null if it names no component. */
export function readRate(value: unknown): Rate | null {
  const fields = object(value);
  const from = text(fields.componentID);
  if (from === '') return null;
  const number = (field: unknown, or: number): number => (typeof field === 'number' && Number.isFinite(field) ? field : or);
  return { from, to: texts(fields.targetComponentIDs), type: text(fields.type), rate: number(fields.rate, 0), bytes: number(fields.bytesRate, 0), targets: number(fields.current, -1) };
}

export const wholeId = (module: string, localId: string): string => (module === '' ? localId : `${module}/${localId}`);

/** Returns the ids of a module and of the modules around it, the outermost first, without the root. */
export function modulePath(module: string): string[] {
  if (module === '') return [];
  const parts = module.split('/');
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

export interface Edge {
  /** Indices into the list of components. */
  from: number;
  to: number;
}

/** Returns the edges of the data flow between components. */
export function edgesOf(components: readonly Component[]): Edge[] {
  const places = new Map(components.map(({ localId }, index) => [localId, index]));
  return components.flatMap(({ flowsTo }, from) =>
    flowsTo.flatMap((id): Edge[] => {
      const to = places.get(id);
      return to === undefined || to === from ? [] : [{ from, to }];
    }),
  );
}

export interface Flow {
  /** Profiles and bytes per second; null for an edge without profiles. */
  profiles: { rate: number; bytes: number } | null;
  /** Number of targets on this edge; -1 for an edge without targets. */
  targets: number;
}

/** The newest flow of each edge. */
export class Flows {
  readonly #profiles = new Map<string, { rate: number; bytes: number }>();
  readonly #targets = new Map<string, number>();

  copy(): Flows {
    const copy = new Flows();
    for (const [key, value] of this.#profiles) copy.#profiles.set(key, value);
    for (const [key, value] of this.#targets) copy.#targets.set(key, value);
    return copy;
  }

  add(rate: Rate): void {
    if (rate.type === 'target') this.#targets.set(rate.from, rate.targets);
    else for (const to of rate.to) this.#profiles.set(`${rate.from}\n${to}`, { rate: rate.rate, bytes: rate.bytes });
  }

  between(from: string, to: string): Flow {
    const profiles = this.#profiles.get(`${from}\n${to}`) ?? null;
    return { profiles, targets: profiles ? -1 : (this.#targets.get(from) ?? -1) };
  }

  /** Returns the number of targets that a component exports, -1 if it exports no targets. */
  targetsOf(id: string): number {
    return this.#targets.get(id) ?? -1;
  }

  /** Returns the profiles per second into and out of a component; null if no profiles have passed in this direction. */
  through(id: string): { in: number | null; out: number | null } {
    let into: number | null = null;
    let out: number | null = null;
    for (const [key, { rate }] of this.#profiles) {
      const [from, to] = key.split('\n');
      if (from === id) out = (out ?? 0) + rate;
      if (to === id) into = (into ?? 0) + rate;
    }
    return { in: into, out };
  }
}

/** Encodes an id for a path, and keeps its slashes. */
export const pathOfId = (id: string): string => id.split('/').map(encodeURIComponent).join('/');
