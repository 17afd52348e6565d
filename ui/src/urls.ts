// Where the views are, and what their URLs say. The build writes the paths to `views.json` for the server, which answers
// 404 for all others.

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

/** When: carried along from view to view. Without `from` it is the last hour, or what there is of it. */
const RANGE = { from: text(), until: text(DEFAULT_UNTIL), refresh: interval };

/** Of what: carried along by the rail, set anew by a link to something else. `type` is a profile type id, `q` the inside of a selector. */
const SELECTION = { service: text(), type: text(), q: text() };

/**
 * What a flame graph with its table shows. `focus` is the path hash of the zoomed frame, `sel` a function's name, `orient`
 * where the root is, `filter` and `sort` are the table's. `view` says whether picture and table are shown, `pane` which
 * picture: all but the flame graph itself are of the function that is selected. `only` to `invert` say what is done to the
 * graph before it is shown (`flame/recipe.ts`), `nodes` how many the call graph has.
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

/** `group` is the label that services are grouped by, `show` how they are shown. */
export const SERVICES = address('', ['index.html'], {
  ...RANGE,
  filter: text(),
  sort: oneOf('cpu', 'memory', 'cost', 'name'),
  group: text(),
  show: oneOf('cards', 'table', 'map'),
});

/** `by` is the label that splits the chart; `metric` is shown above it; `span` is that during which the stacks were taken. */
export const PROFILE = address('profile', [], { ...SELECTION, ...RANGE, by: text(), chart: oneOf('line', 'table'), metric: text(), span: spanId, ...FLAME });

/**
 * Selection and range are the comparison's. `with` says what it is compared with: the first half of the range, which leaves
 * the second for the comparison; the time before it; the same time a day or a week earlier; the same time, of another
 * selection; or a range of its own (`baseline`). `comparison` is a part of the range, by itself the whole. A baseline of
 * another service or other filters names them; without, they are the comparison's. `by` is what is compared.
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

/** `label` is what is broken down, `filter` narrows its values. */
export const LABELS = address('labels', [], { ...SELECTION, ...RANGE, label: text(), filter: text() });

/** `profile` is the one that is open, `time~series`; `span` that of it which is shown alone; `sort` the table's; `dots` what dots show. */
export const SAMPLES = address('samples', [], { ...SELECTION, ...RANGE, dots: oneOf('series', 'size', 'value'), profile: text(), span: spanId, ...FLAME });

/** `query` is the statement, `show` how its rows are shown. */
export const SQL = address('sql', [], { query: text(), show: oneOf('table', 'line', 'bar', 'flame'), ...FLAME });

/**
 * A file that is not kept is in no URL: `id` is one that the server keeps. `of` is its profile type; `compare` holds it
 * against the stored profiles of the selection and the range.
 */
export const ADHOC = address('file', [], { id: text(), of: text(), compare: oneOf('no', 'stored'), service: text(), q: text(), ...RANGE, ...FLAME });

/** `way` is how one sends, by the word of `lib/send.ts`. */
export const SEND = address('send', [], { way: text() });

export const STATUS = address('status', [], { refresh: interval });

/** `module` is the one whose graph is shown, empty for the root; `sel` a component, `tab` a part of its panel. */
const PIPELINE_KEYS = { sel: text(), view: oneOf('both', 'table'), filter: text(), sort: text(), module: text(), tab: text(), health: text() };

/** The views of each program. */
export const VIEWS: Record<Program, readonly Address[]> = {
  server: [SERVICES, PROFILE, COMPARE, LABELS, SAMPLES, SQL, ADHOC, SEND, STATUS, address('pipeline', ['graph'], PIPELINE_KEYS)],
  collector: [address('graph', ['', 'pipeline'], PIPELINE_KEYS)],
};

/** Every view of this program. */
export const ADDRESSES = VIEWS[PROGRAM];

export const PIPELINE = ADDRESSES.find(({ keys }) => keys === PIPELINE_KEYS) as Address<typeof PIPELINE_KEYS>;

/** What a change of view takes with it, where the other view has it too. */
export const CARRIED: readonly string[] = Object.keys({ ...RANGE, ...SELECTION });

/** The paths of the server's views, below the base. */
export const PATHS: readonly string[] = VIEWS.server.flatMap(({ path, aliases }) => [path, ...aliases]);

/** The view that a path leads to; undefined when it is none of ours. */
export function addressOf(pathname: string, base: string, views: readonly Address[]): Address | undefined {
  const rest = below(pathname, base);
  return rest === null ? undefined : views.find(({ path, aliases }) => path === rest || aliases.includes(rest));
}
