// The paths of the views and the keys of their URLs. The build writes the paths to `views.json` for the server, which responds with
// 404 to all other paths.

import { below, PROGRAM, type Program } from './lib/base.ts';
import { flag, interval, list, oneOf, other, span, spanId, text, type Schema } from './lib/schema.ts';
import { DEFAULT_UNTIL } from './lib/time.ts';

/** A view's address: its path below the base, other paths that lead to it, and the keys of its URL. */
export interface Address<S extends Schema = Schema> {
  path: string;
  aliases: readonly string[];
  keys: S;
}

const address = <S extends Schema>(path: string, aliases: readonly string[], keys: S): Address<S> => ({ path, aliases, keys });

/** The range, carried from view to view. Without `from`, it is the last hour, or the time since the first profile. */
const RANGE = { from: text(), until: text(DEFAULT_UNTIL), refresh: interval };

/** The selection, carried from view to view by the rail. `type` is a profile type id, `q` a selector without its braces. */
const SELECTION = { service: text(), type: text(), q: text() };

/**
 * The state of a flame graph with its table. `focus` is the path hash of the zoomed frame, `sel` the name of the selected function,
 * `orient` the position of the root. `filter` and `sort` belong to the table. `view` selects the graph, the table or both. `pane`
 * selects the flame graph or a view that replaces it, such as the callers of the selected function. The keys from `only` to `invert`
 * are the rules for frames (`flame/recipe.ts`). `nodes` is the maximum number of nodes of the call graph.
 */
export const FLAME = {
  focus: text(),
  search: text(),
  view: oneOf('both', 'flame', 'table'),
  sel: text(),
  filter: text(),
  sort: text(),
  orient: oneOf('icicle', 'flame'),
  pane: oneOf('flame', 'callers', 'peek', 'graph', 'list'),
  only: list,
  without: list,
  hide: list,
  package: text(),
  fold: list,
  recursion: flag,
  invert: flag,
  nodes: oneOf('80', '30', '200'),
};

/** `group` is the label that services are grouped by, `show` the way they are shown. */
export const SERVICES = address('', ['index.html'], {
  ...RANGE,
  filter: text(),
  sort: oneOf('cpu', 'memory', 'cost', 'name'),
  group: text(),
  show: oneOf('cards', 'table', 'map'),
});

/** `by` is the label that splits the chart, `metric` the PromQL query of the chart above it, `span` the span whose stacks are shown. */
export const PROFILE = address('profile', [], { ...SELECTION, ...RANGE, by: text(), chart: oneOf('line', 'table'), metric: text(), span: spanId, ...FLAME });

/**
 * The view compares two profiles, the baseline and the comparison. The selection is that of the comparison. `comparison` is its part
 * of the range, by default the whole range. `with` selects the baseline: the first half of the range (the comparison is then the second
 * half), the time before the comparison, the same time a day or a week earlier, the same time with another selection, or a separate
 * range (`baseline`). `baseservice` and `baseq` are the service and filters of the baseline, by default those of the comparison.
 * `by` determines whether shares or rates are compared.
 */
export const COMPARE = address('compare', [], {
  ...SELECTION,
  ...RANGE,
  with: oneOf('halves', 'before', 'day', 'week', 'same', 'range'),
  comparison: span,
  baseline: span,
  baseservice: text(),
  baseq: other,
  by: oneOf('share', 'rate'),
  ...FLAME,
});

/** `label` is the label that is broken down, `filter` filters its values. */
export const LABELS = address('labels', [], { ...SELECTION, ...RANGE, label: text(), filter: text() });

/** `profile` is the opened profile, `time~series`; `span` the span whose stacks are shown; `sort` belongs to the table; `dots` is the style of the dots. */
export const SAMPLES = address('samples', [], { ...SELECTION, ...RANGE, dots: oneOf('series', 'size', 'value'), profile: text(), span: spanId, ...FLAME });

/** `query` is the statement, `show` the way its rows are shown. */
export const SQL = address('sql', [], { query: text(), show: oneOf('table', 'line', 'bar', 'flame'), ...FLAME });

/**
 * `id` names a file that the server keeps. Other files do not appear in the URL. `of` is the profile type of the file. `compare` determines
 * whether the file is compared with the stored profiles of the selection and the range.
 */
export const ADHOC = address('file', [], { id: text(), of: text(), compare: oneOf('no', 'stored'), service: text(), q: text(), ...RANGE, ...FLAME });

/** `way` is the language or tool, by its key in `lib/send.ts`. */
export const SEND = address('send', [], { way: text() });

export const STATUS = address('status', [], { refresh: interval });

/** `module` is the module whose graph is shown, empty for the root; `sel` the selected component, `tab` the tab of its panel. */
const PIPELINE_KEYS = { sel: text(), view: oneOf('both', 'table'), filter: text(), sort: text(), module: text(), tab: text(), health: text() };

/** The views of each program. */
export const VIEWS: Record<Program, readonly Address[]> = {
  server: [SERVICES, PROFILE, COMPARE, LABELS, SAMPLES, SQL, ADHOC, SEND, STATUS, address('pipeline', ['graph'], PIPELINE_KEYS)],
  collector: [address('graph', ['', 'pipeline'], PIPELINE_KEYS)],
};

/** Every view of this program. */
export const ADDRESSES = VIEWS[PROGRAM];

export const PIPELINE = ADDRESSES.find(({ keys }) => keys === PIPELINE_KEYS) as Address<typeof PIPELINE_KEYS>;

/** Keys that a change of view carries along, if the other view has them, too. */
export const CARRIED: readonly string[] = Object.keys({ ...RANGE, ...SELECTION });

/** The paths of the server's views, below the base. */
export const PATHS: readonly string[] = VIEWS.server.flatMap(({ path, aliases }) => [path, ...aliases]);

/** Returns the view at a path; undefined if there is none. */
export function addressOf(pathname: string, base: string, views: readonly Address[]): Address | undefined {
  const rest = below(pathname, base);
  return rest === null ? undefined : views.find(({ path, aliases }) => path === rest || aliases.includes(rest));
}
