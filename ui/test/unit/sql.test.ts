import { describe, expect, it } from 'vitest';
import { escape, svg } from '../../src/flame/svg.ts';
import { layout } from '../../src/flame/layout.ts';
import { metric, readMetrics, valuesOf } from '../../src/lib/metrics.ts';
import { profileType } from '../../src/lib/profile-types.ts';
import { inTurn } from '../../src/lib/pool.ts';
import { other, span } from '../../src/lib/schema.ts';
import { condition, during, quoted } from '../../src/lib/sql.ts';
import { barsOf, cellText, flameOf, linesOf } from '../../src/lib/sql-shape.ts';
import { completions, EXAMPLES, wordBefore } from '../../src/lib/sql-words.ts';
import { formatSigned } from '../../src/lib/format.ts';
import { questionOf, readSample, rowsOf } from '../../src/models/samples.ts';
import { withValue } from '../../src/models/labels.ts';

const CPU = profileType('process_cpu:cpu:nanoseconds:cpu:nanoseconds');

describe('SQL of a selection', () => {
  it('quotes foreign text', () => {
    expect(quoted("it's; DROP TABLE x --")).toBe("'it''s; DROP TABLE x --'");
    expect(condition({ name: "a'b", op: '=', value: "c'd" })).toBe("coalesce(labels['a''b'], '') = 'c''d'");
    expect(condition({ name: 'pod', op: '!~', value: 'x|y' })).toBe("coalesce(labels['pod'], '') !~ '^(?:x|y)$'");
    expect(during({ start: 1.5, end: 2.5 })).toBe('time >= to_timestamp_millis(1) AND time < to_timestamp_millis(3)');
  });

  it('uses the column of the service, and labels for all else', () => {
    const sql = rowsOf({ type: CPU, selector: '{service_name="shop", pod!="a"}', range: { start: 1000, end: 2000 } });
    expect(sql).toContain("WHERE service_name = 'shop' AND coalesce(labels['pod'], '') != 'a')");
    expect(sql).toContain("p.profile_type = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'");
    expect(rowsOf({ type: CPU, selector: '{}', range: { start: 0, end: 1 } })).toContain('WHERE true)');
  });
});

describe('a single profile', () => {
  it('is selected by its millisecond and all its labels', () => {
    const sample = readSample({ time: '2026-01-31T12:00:00.123456Z', series: '-9223372036854775808', profile_id: '', total: '9007199254740993', sample_count: 3, duration_ns: 15, labels: { service_name: 'shop', pod: 'a"b' } });
    const time = Date.UTC(2026, 0, 31, 12, 0, 0, 123);
    expect(sample).toMatchObject({ key: `${time}~-9223372036854775808`, time, count: 3 });
    expect(questionOf(sample, CPU)).toEqual({ type: CPU, selector: '{service_name="shop", pod="a\\"b"}', range: { start: time, end: time + 1 } });
  });
});

describe('a matcher for one value of a label', () => {
  it('is added to the existing filters', () => {
    expect(withValue('{service_name="shop", pod=~"a.*"}', 'pod', '!=', 'a1')).toBe('{service_name="shop", pod=~"a.*", pod!="a1"}');
  });
});

describe('completion', () => {
  const here = (text: string) => wordBefore(text, text.length);
  const texts = (text: string, labels: readonly string[] = [], values: readonly string[] = []) => completions(text, text.length, labels, values).map((word) => word.text);

  it('knows tables, columns, functions, and labels inside their brackets', () => {
    const text = "SELECT labels['ver";
    expect(here(text)).toEqual({ from: 15, typed: 'ver', kind: 'label', of: '', end: "']" });
    expect(completions(text, text.length, ['version', 'pod'])).toEqual([{ text: "version']", kind: 'label' }]);
    expect(texts('SELECT time_b')).toEqual(['time_bucket(']);
    expect(texts('SELECT ')).toEqual([]);
    expect(texts('FROM profiles')).toEqual(['profiles(']);
  });

  it.each([
    ["WHERE labels['pod'] = 'a", 'pod', 'a', "'"],
    ["WHERE labels['pod'] NOT IN ('x', 'a", 'pod', 'a', "'"],
    ["WHERE labels['pod']!~'", 'pod', '', "'"],
    ["WHERE service_name <> 'sh", 'service_name', 'sh', "'"],
    ["WHERE Profile_Type = 'pro", '__profile_type__', 'pro', "'"],
    ["FROM flamegraph('process_cpu:cpu", '__profile_type__', 'process_cpu:cpu', ''],
    [`FROM top('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="sh`, 'service_name', 'sh', '"'],
    [`FROM top('process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="a, \\"b", pod=~"`, 'pod', '', '"'],
  ])('finds the label of a value: %s', (text, of, typed, end) => {
    expect(here(text)).toEqual({ from: text.length - typed.length, typed, kind: 'value', of, end });
  });

  it('escapes a completed value and closes its quotes', () => {
    expect(texts("labels['pod'] = '", [], ["it's"])).toEqual(["it''s'"]);
    expect(texts('FROM top(\'t{pod="', [], ['a "b" \\'])).toEqual(['a \\"b\\" \\\\"']);
    expect(texts("labels['pod'] = 'b", [], ['ab', 'b', 'bc'])).toEqual(["bc'", "ab'"]);
    expect(texts("FROM top('t{po", ['namespace', 'pod'])).toEqual(['pod=']);
    expect(texts("FROM top('t{pod=\"a\", ", ['namespace', 'pod'])).toEqual(['namespace=', 'pod=']);
  });

  it('suggests no values after a closed string literal, or for a column that is not a label', () => {
    for (const text of ["service_name = 'shop' AND fun", "function = 'ma", "WHERE x = '"]) expect(here(text).kind).toBe('word');
  });

  it('has ten examples', () => expect(EXAMPLES).toHaveLength(10));
});

describe('rows', () => {
  it('are lines if they have times and numbers, one for each name', () => {
    const rows = [
      { time: '2026-01-31T12:00:00.000000Z', service: 'b', value: 2 },
      { time: '2026-01-31T12:01:00.000000Z', service: 'b', value: 3 },
      { time: '2026-01-31T12:00:00.000000Z', service: 'a', value: null },
      { time: '2026-01-31T12:01:00.000000Z', service: 'a', value: 1 },
    ];
    const shape = linesOf(rows);
    expect(shape?.lines.map(({ label, points }) => [label, points.length])).toEqual([['b', 2], ['a', 1]]);
    expect(shape?.step).toBe(60);
    expect(linesOf([{ name: 'x', value: 1 }])).toBeNull();
    expect(linesOf([])).toBeNull();
  });

  it('are bars if they have names and numbers; large numbers are text', () => {
    expect(barsOf([{ name: 'x', line: 3, value: '90071992547409920' }])).toEqual({ column: 'value', bars: [{ label: 'x', value: 90071992547409920 }] });
    expect(barsOf([{ value: 1 }])).toBeNull();
  });

  it('are a flame graph if they come from flamegraph(), in any order', () => {
    const row = (level: number, x: number, total: number, self: number, name: string) => ({ level, x, total, self, function: name, file: '', line: 7 });
    const message = flameOf([row(1, 6, 4, 4, 'b'), row(0, 0, 10, 1, 'total'), row(1, 1, 5, 2, 'a'), row(2, 3, 3, 3, 'b')]);
    const flame = layout(message!);
    expect([...flame.start]).toEqual([0, 1, 6, 3]);
    expect([...flame.total]).toEqual([10, 5, 4, 3]);
    expect([...flame.parent]).toEqual([-1, 0, 0, 1]);
    expect(flameOf([{ level: 1 }])).toBeNull();
  });

  it('are text in a table', () => expect([null, { a: 1 }, true, 0].map(cellText)).toEqual(['', '{"a":1}', 'true', '0']));
});

describe('metrics', () => {
  const samples = readMetrics('# HELP x y\nx_total{route="/a",status="200"} 3\nx_total{route="/a",status="500"} 1\nx_total{route="/q\\"\\n\\\\"} 2\ny +Inf\nz 1.5e3 1700000000\n\nbroken');
  it('are read with their labels, and summed', () => {
    expect(metric(samples, 'x_total')).toBe(6);
    expect(metric(samples, 'x_total', { route: '/a' })).toBe(4);
    expect(metric(samples, 'nothing')).toBeUndefined();
    expect(metric(samples, 'y')).toBe(Number.POSITIVE_INFINITY);
    expect(metric(samples, 'z')).toBe(1500);
    expect(valuesOf(samples, 'x_total', 'route')).toEqual(['/a', '/q"\n\\']);
  });
});

describe('the keys of a comparison', () => {
  it('store a range, and filters; null stands for the filters of the other side, and empty text for no filters', () => {
    expect(span.read('1700000000000~1700000060000')).toEqual({ start: 1700000000000, end: 1700000060000 });
    for (const wrong of ['', 'x', '1700000060000~1700000000000', '1700000000000~1700000000100', '1~2~3']) expect(span.read(wrong)).toBeNull();
    expect(span.write({ start: 1.4, end: 2.6 })).toBe('1~3');
    for (const value of [null, '', 'pod="a"']) expect(other.read(other.write(value))).toBe(value);
  });
});

describe('a change', () => {
  it('has a sign unless it rounds to zero', () => {
    const two = (value: number): string => value.toFixed(2);
    expect([1.5, -1.5, 0.001, -0.001, 0].map((value) => formatSigned(value, two))).toEqual(['+1.50', '−1.50', '0.00', '0.00', '0.00']);
  });
});

describe('requests with limited concurrency', () => {
  it('run a few at a time, with the responses in order', async () => {
    let running = 0;
    let most = 0;
    const answers = await inTurn([5, 1, 3, 2, 4], 2, async (wait) => {
      running += 1;
      most = Math.max(most, running);
      for (let tick = 0; tick < wait; tick += 1) await Promise.resolve();
      running -= 1;
      return wait * 10;
    });
    expect(answers).toEqual([50, 10, 30, 20, 40]);
    expect(most).toBe(2);
  });
});

describe('an SVG', () => {
  it('contains names as text, whatever they are', () => {
    expect(escape('<a href="x">&\u0000\ud800')).toBe('&#60;a href=&#34;x&#34;&#62;&#38;\ufffd\ufffd');
    const flame = layout({ names: ['total', '<script>'], levels: [{ values: [0, 10, 0, 0] }, { values: [0, 10, 10, 1] }] });
    const ink = { text: '#000', faint: '#777', paper: '#fff', grey: '#eee', mark: '#f0f', hover: '#0001' };
    const text = svg({ flame, from: 0, to: 10, flip: false, paint: { colour: () => '#abc', sign: () => '+' }, ink, title: 'a & b', values: () => '1 < 2' });
    expect(text).not.toContain('<script>');
    expect(text.match(/<rect /g)).toHaveLength(3);
    expect(text).toContain('a &#38; b');
    expect(text).toContain('+ &#60;script&#62;');
  });
});
