// The completion of SQL (tables, columns and functions of the server, labels and their values) and example statements. Both
// follow `docs/sql.md`.

export interface Word {
  text: string;
  /** One of table, column, function, keyword, label, value. */
  kind: string;
}

const TABLES: Readonly<Record<string, string>> = {
  flat: 'time service_name labels profile_type function file line stack value series mapping span_id trace_id frames',
  profiles: 'tenant day time series profile_type total sample_count duration_ns period profile_id',
  samples: 'tenant day time series profile_type stack value span_id trace_id',
  stacks: 'tenant day stack frames start_lines',
  series: 'tenant day series service_name labels',
};
const FUNCTIONS = ['stack_contains(', 'function_matches(', 'time_bucket(', 'profiles(', 'top(', 'flamegraph(', 'diff(', 'pprof(', 'count(', 'sum(', 'avg(', 'min(', 'max(', 'approx_percentile_cont(', 'coalesce(', 'now()', 'round(', 'to_timestamp_millis(', 'array_length('];
const KEYWORDS = ['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'ORDER BY', 'LIMIT', 'JOIN', 'ON', 'AND', 'OR', 'NOT', 'AS', 'DESC', 'DISTINCT', 'HAVING', 'WITH', 'CASE WHEN', 'THEN', 'ELSE', 'END', 'interval', 'EXPLAIN ANALYZE', 'DESCRIBE'];

export const WORDS: readonly Word[] = [
  ...Object.keys(TABLES).map((text) => ({ text, kind: 'table' })),
  ...[...new Set(Object.values(TABLES).flatMap((columns) => columns.split(' ')))].map((text) => ({ text, kind: 'column' })),
  ...FUNCTIONS.map((text) => ({ text, kind: 'function' })),
  ...KEYWORDS.map((text) => ({ text, kind: 'keyword' })),
];

/** The text before the cursor, its start, and the text that closes it. */
export interface Before {
  from: number;
  typed: string;
  /** `label` inside `labels['` or the braces of a selector, `value` inside a value, else `word`. */
  kind: 'word' | 'label' | 'value';
  /** The label of a value; empty for other kinds. */
  of: string;
  /** Text after an accepted completion. A quote inside the completion is doubled in SQL, and escaped by a backslash in a selector. */
  end: '' | "'" | '"' | "']" | '=';
}

const OPERATOR = String.raw`(?:=|!=|<>|!?~\*?|(?:NOT\s+)?IN\s*\((?:\s*'[^']*'\s*,)*)`;
const LABEL = /labels\[\s*'([^'\]]*)$/i;
const LABEL_VALUE = new RegExp(String.raw`labels\[\s*'([^'\]]*)'\s*\]\s*${OPERATOR}\s*'([^']*)$`, 'i');
const COLUMN_VALUE = new RegExp(String.raw`\b(service_name|profile_type)\s*${OPERATOR}\s*'([^']*)$`, 'i');
const TYPE_OF = /\b(?:profiles?|top|flamegraph|diff|pprof)\s*\((?:[^()]*,)?\s*'([^'{]*)$/i;
/** A pattern for the opening brace of a selector, and the complete matchers after it. */
const MATCHERS = String.raw`\{(?:\s*[\w.]+\s*[=!~]+\s*"(?:[^"\\]|\\.)*"\s*,)*\s*`;
const SELECTOR_VALUE = new RegExp(String.raw`${MATCHERS}([\w.]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)$`);
const SELECTOR_LABEL = new RegExp(String.raw`${MATCHERS}([\w.]*)$`);
/** Maximum length of the text before the cursor that is examined. */
const LOOKED_AT = 2000;

/** Returns the word before the cursor: inside quotes, `labels['`, a selector, or plain. */
export function wordBefore(text: string, cursor: number): Before {
  const before = text.slice(Math.max(0, cursor - LOOKED_AT), cursor);
  const at = (typed: string, kind: Before['kind'], of: string, end: Before['end']): Before => ({ from: cursor - typed.length, typed, kind, of, end });
  const label = LABEL.exec(before);
  if (label) return at(label[1]!, 'label', '', "']");
  const ofLabel = LABEL_VALUE.exec(before) ?? COLUMN_VALUE.exec(before);
  if (ofLabel) return at(ofLabel[2]!, 'value', ofLabel[1]!.toLowerCase() === 'profile_type' ? PROFILE_TYPE : ofLabel[1]!, "'");
  const inSelector = SELECTOR_VALUE.exec(before);
  if (inSelector) return at(inSelector[2]!, 'value', inSelector[1]!, '"');
  const ofSelector = SELECTOR_LABEL.exec(before);
  if (ofSelector) return at(ofSelector[1]!, 'label', '', '=');
  const type = TYPE_OF.exec(before);
  if (type) return at(type[1]!, 'value', PROFILE_TYPE, '');
  return at(/[A-Za-z_]\w*$/.exec(before)?.[0] ?? '', 'word', '', '');
}

/** The label whose values are the profile types. */
const PROFILE_TYPE = '__profile_type__';

const MOST = 8;
/** Finds names that contain the typed text; those that begin with it come first. */
const found = (names: readonly string[], typed: string): string[] => {
  const wanted = typed.toLowerCase();
  const hits = names.filter((name) => name !== typed && name.toLowerCase().includes(wanted));
  return [...hits.filter((name) => name.toLowerCase().startsWith(wanted)), ...hits.filter((name) => !name.toLowerCase().startsWith(wanted))];
};

/** Returns the completions, the best first. `values` are those of the label that `wordBefore` names. */
export function completions(text: string, cursor: number, labels: readonly string[], values: readonly string[] = []): Word[] {
  const { typed, kind, end } = wordBefore(text, cursor);
  if (kind === 'label') return found(labels, typed).slice(0, MOST).map((name) => ({ text: name + end, kind }));
  if (kind === 'value') {
    const inside = (value: string): string => (end === "'" ? value.replace(/'/g, "''") : end === '"' ? value.replace(/["\\]/g, '\\$&') : value);
    return found(values, typed).slice(0, MOST).map((value) => ({ text: inside(value) + end, kind }));
  }
  if (typed === '') return [];
  const begins = typed.toLowerCase();
  return WORDS.filter((word) => word.text.toLowerCase().startsWith(begins) && word.text !== typed).slice(0, MOST);
}

export interface Example {
  title: string;
  query: string;
  show: 'table' | 'line' | 'bar' | 'flame';
}

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

export const EXAMPLES: readonly Example[] = [
  { title: 'CPU by function', show: 'bar', query: `SELECT function, sum(value) / 1e9 AS cpu_seconds\nFROM flat\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY function\nORDER BY 2 DESC\nLIMIT 20` },
  { title: 'CPU by service', show: 'bar', query: `SELECT service_name, sum(value) / 1e9 AS cpu_seconds\nFROM flat\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY service_name\nORDER BY 2 DESC` },
  { title: 'CPU over time', show: 'line', query: `SELECT time_bucket('30s', time) AS time, sum(total) / 30e9 AS cores\nFROM profiles\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY 1\nORDER BY 1` },
  { title: 'Flame graph of all services', show: 'flame', query: `SELECT level, x, total, self, function\nFROM flamegraph('${CPU}{}', 'now-1h', 'now', 2000)\nORDER BY level, x` },
  { title: 'Functions that became slower in the last half hour', show: 'table', query: `SELECT function, self_before, self_after, self_change\nFROM diff('${CPU}{}', 'now-1h', 'now-30m',\n          '${CPU}{}', 'now-30m', 'now')\nORDER BY self_change DESC\nLIMIT 20` },
  { title: 'Table of pprof -top', show: 'table', query: `SELECT * FROM top('${CPU}{}', 'now-1h', 'now', 20)` },
  { title: 'Hottest lines', show: 'table', query: `SELECT file, line, sum(value) / 1e6 AS ms\nFROM profiles('${CPU}{}', 'now-1h', 'now')\nGROUP BY file, line\nORDER BY 3 DESC\nLIMIT 20` },
  { title: 'Profile types by number of profiles', show: 'table', query: 'SELECT profile_type, count(*) AS profiles, min(time) AS first, max(time) AS last\nFROM profiles\nGROUP BY profile_type\nORDER BY profiles DESC' },
  { title: 'Largest series', show: 'table', query: 'SELECT r.service_name, r.labels, count(*) AS profiles, sum(p.sample_count) AS samples\nFROM profiles p JOIN series r ON p.series = r.series\nGROUP BY r.series, r.service_name, r.labels\nORDER BY samples DESC\nLIMIT 50' },
  { title: 'Deepest stacks', show: 'table', query: 'SELECT s.stack, array_length(k.frames) AS depth, sum(s.value) AS value\nFROM samples s JOIN stacks k ON s.stack = k.stack\nGROUP BY s.stack, depth\nORDER BY depth DESC\nLIMIT 10' },
];
