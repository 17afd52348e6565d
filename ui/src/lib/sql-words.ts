// What the SQL of the server knows: its tables, columns and functions, for completion; and questions to begin with. As
// `docs/sql.md` has them.

export interface Word {
  text: string;
  /** Table, column, function, keyword, label. */
  kind: string;
}

const TABLES: Readonly<Record<string, string>> = {
  flat: 'time service_name labels profile_type function file line stack value series mapping span_id trace_id frames',
  profiles: 'tenant day time series profile_type total sample_count duration_ns period profile_id',
  samples: 'tenant day time series profile_type stack value span_id trace_id',
  stacks: 'tenant day stack frames',
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

/** The word before the cursor: inside of quotes, of `labels['`, or plain. */
export function wordBefore(text: string, cursor: number): { from: number; typed: string; label: boolean } {
  const before = text.slice(0, cursor);
  const label = /labels\[\s*'([^'\]]*)$/.exec(before);
  if (label) return { from: cursor - label[1]!.length, typed: label[1]!, label: true };
  const typed = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? '';
  return { from: cursor - typed.length, typed, label: false };
}

const MOST = 8;

/** What may be meant, the nearest first; after `labels['` names of labels. */
export function completions(text: string, cursor: number, labels: readonly string[]): Word[] {
  const { typed, label } = wordBefore(text, cursor);
  const words = label ? labels.map((name) => ({ text: `${name}']`, kind: 'label' })) : WORDS;
  if (!label && typed === '') return [];
  const begins = typed.toLowerCase();
  return words.filter((word) => word.text.toLowerCase().startsWith(begins) && word.text !== typed).slice(0, MOST);
}

export interface Example {
  title: string;
  query: string;
  show: 'table' | 'line' | 'bar' | 'flame';
}

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

export const EXAMPLES: readonly Example[] = [
  { title: 'Which functions use the CPU', show: 'bar', query: `SELECT function, sum(value) / 1e9 AS cpu_seconds\nFROM flat\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY function\nORDER BY 2 DESC\nLIMIT 20` },
  { title: 'CPU by service', show: 'bar', query: `SELECT service_name, sum(value) / 1e9 AS cpu_seconds\nFROM flat\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY service_name\nORDER BY 2 DESC` },
  { title: 'CPU over time', show: 'line', query: `SELECT time_bucket('30s', time) AS time, sum(total) / 30e9 AS cores\nFROM profiles\nWHERE profile_type = '${CPU}'\n  AND time > now() - interval '1 hour'\nGROUP BY 1\nORDER BY 1` },
  { title: 'A flame graph of everything', show: 'flame', query: `SELECT level, x, total, self, function\nFROM flamegraph('${CPU}{}', 'now-1h', 'now', 2000)\nORDER BY level, x` },
  { title: 'What became slower in half an hour', show: 'table', query: `SELECT function, self_before, self_after, self_change\nFROM diff('${CPU}{}', 'now-1h', 'now-30m',\n          '${CPU}{}', 'now-30m', 'now')\nORDER BY self_change DESC\nLIMIT 20` },
  { title: 'The table of pprof -top', show: 'table', query: `SELECT * FROM top('${CPU}{}', 'now-1h', 'now', 20)` },
  { title: 'The hottest lines', show: 'table', query: `SELECT file, line, sum(value) / 1e6 AS ms\nFROM profiles('${CPU}{}', 'now-1h', 'now')\nGROUP BY file, line\nORDER BY 3 DESC\nLIMIT 20` },
  { title: 'Which types arrive, and how often', show: 'table', query: 'SELECT profile_type, count(*) AS profiles, min(time) AS first, max(time) AS last\nFROM profiles\nGROUP BY profile_type\nORDER BY profiles DESC' },
  { title: 'Which series write most', show: 'table', query: 'SELECT r.service_name, r.labels, count(*) AS profiles, sum(p.sample_count) AS samples\nFROM profiles p JOIN series r ON p.series = r.series\nGROUP BY r.series, r.service_name, r.labels\nORDER BY samples DESC\nLIMIT 50' },
  { title: 'The deepest stacks', show: 'table', query: 'SELECT s.stack, array_length(k.frames) AS depth, sum(s.value) AS value\nFROM samples s JOIN stacks k ON s.stack = k.stack\nGROUP BY s.stack, depth\nORDER BY depth DESC\nLIMIT 10' },
];
