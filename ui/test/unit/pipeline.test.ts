import { describe, expect, it } from 'vitest';
import { columnsOf, layout, neighbour, nodeAt, NODE_HEIGHT, NODE_WIDTH } from '../../src/pipeline/layout.ts';
import { dumpName, dumpTargets, edgesOf, Flows, modulePath, readComponents, readDetail, readOverview, readRate, type Edge } from '../../src/pipeline/model.ts';
import { baseOf } from '../../src/lib/base.ts';
import { addressOf, VIEWS } from '../../src/urls.ts';
import { isBad, readEntry, searchable, summary, Tail } from '../../src/pipeline/live.ts';
import { Entries, parse } from '../../src/pipeline/stream.ts';

const edges = (...pairs: [number, number][]): Edge[] => pairs.map(([from, to]) => ({ from, to }));

/** Checks that no two nodes overlap, and that everything lies within the size. */
function sound(count: number, lines: Edge[]): ReturnType<typeof layout> {
  const made = layout(count, lines);
  const boxes = Array.from({ length: count }, (_, node) => ({ x: made.x[node]!, y: made.y[node]! }));
  boxes.sort((a, b) => a.x - b.x || a.y - b.y);
  boxes.forEach((box, index) => {
    expect(Number.isFinite(box.x) && Number.isFinite(box.y)).toBe(true);
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.y).toBeGreaterThanOrEqual(-0.001);
    expect(box.x + NODE_WIDTH).toBeLessThanOrEqual(made.width + 0.001);
    expect(box.y + NODE_HEIGHT).toBeLessThanOrEqual(made.height + 0.001);
    const next = boxes[index + 1];
    if (next && next.x === box.x) expect(next.y - box.y).toBeGreaterThanOrEqual(NODE_HEIGHT);
  });
  lines.forEach((_, index) => expect(made.paths[index]!.length).toBeGreaterThanOrEqual(2));
  return made;
}

describe('the layout', () => {
  it('puts a node to the right of the nodes that feed it', () => {
    const made = sound(5, edges([0, 1], [1, 2], [0, 2], [3, 2], [2, 4]));
    expect(made.x[0]).toBeLessThan(made.x[1]!);
    expect(made.x[1]).toBeLessThan(made.x[2]!);
    expect(made.x[2]).toBeLessThan(made.x[4]!);
    expect(made.x[3], 'a node without input is next to the node that it feeds').toBe(made.x[1]);
    expect(made.paths[2]!.length, 'a long edge bends around the column between').toBe(4);
    const last = made.paths[0]!.at(-1)!;
    expect(last.x).toBe(made.x[1]);
  });

  it('removes unnecessary crossings', () => {
    // 0 -> 4, 1 -> 3: with the columns in the given order, the edges cross.
    const made = sound(6, edges([0, 4], [1, 3], [3, 5], [4, 5]));
    expect(Math.sign(made.y[0]! - made.y[1]!)).toBe(Math.sign(made.y[4]! - made.y[3]!));
  });

  it('stacks unconnected parts, and puts single nodes into a square', () => {
    const made = sound(8, edges([0, 1], [2, 3], [3, 4]));
    expect(Math.max(made.y[2]!, made.y[3]!, made.y[4]!)).toBeLessThan(Math.min(made.y[0]!, made.y[1]!));
    expect(Math.min(made.y[5]!, made.y[6]!, made.y[7]!)).toBeGreaterThan(made.y[0]!);
    expect(sound(9, []).columns.length).toBe(3);
    expect(layout(0, [])).toMatchObject({ width: 0, height: 0 });
  });

  it('survives cycles', () => {
    expect([...columnsOf(3, edges([0, 1], [1, 2], [2, 0]))]).toEqual([0, 1, 2]);
    sound(4, edges([0, 1], [1, 0], [1, 2], [2, 3], [3, 1]));
  });

  it('finds nodes under points and in directions', () => {
    const made = layout(4, edges([0, 1], [0, 2], [1, 3], [2, 3]));
    expect(nodeAt(made, made.x[3]! + 1, made.y[3]! + 1)).toBe(3);
    expect(nodeAt(made, -5, 0)).toBe(-1);
    expect([1, 2]).toContain(neighbour(made, 0, 'right'));
    expect(neighbour(made, 3, 'right')).toBe(-1);
    expect(new Set([1, 2].map((node) => neighbour(made, node, 'left')))).toEqual(new Set([0]));
    const [above, below] = made.y[1]! < made.y[2]! ? [1, 2] : [2, 1];
    expect(neighbour(made, above!, 'down')).toBe(below);
    expect(neighbour(made, below!, 'up')).toBe(above);
  });

  it.each([
    ['a chain', 3000, edges(...Array.from({ length: 2999 }, (_, node): [number, number] => [node, node + 1]))],
    ['a fan', 3000, edges(...Array.from({ length: 2999 }, (_, node): [number, number] => [node, 2999]))],
    ['a thousand pipelines', 3000, edges(...Array.from({ length: 1000 }, (_, part): [number, number][] => [[part * 3, part * 3 + 1], [part * 3 + 1, part * 3 + 2]]).flat())],
    ['layers of a hundred', 3000, edges(...Array.from({ length: 2900 }, (_, node): [number, number][] => [[node, node + 100], [node, Math.floor(node / 100) * 100 + 100 + ((node * 37) % 100)]]).flat())],
    ['long edges all over', 3000, edges(...Array.from({ length: 2999 }, (_, node): [number, number][] => [[node, node + 1], [node, 2999]]).flat())],
  ] as const)('lays out 3,000 nodes: %s', (what, count, lines) => {
    const begin = performance.now();
    sound(count, lines.filter(({ from, to }) => from !== to));
    const whole = performance.now() - begin;
    const again = performance.now();
    layout(count, lines);
    // Printed, not asserted: the budget is 200 ms.
    console.log(`${what}: ${(performance.now() - again).toFixed(0)} ms (first, checked: ${whole.toFixed(0)} ms)`);
  });
});

describe('the response of the API', () => {
  const list = [
    { name: 'discovery.file', localID: 'discovery.file.a', moduleID: '', label: 'a', dataFlowEdgesTo: ['pyroscope.scrape.b', 'gone.x'], health: { state: 'healthy', message: 'fine', updatedTime: '2026-01-02T03:04:05Z' } },
    { name: 'pyroscope.scrape', localID: 'pyroscope.scrape.b', moduleID: '', label: 'b', dataFlowEdgesTo: null, health: { state: 'odd' } },
    {},
  ];

  it('is read even if fields are missing', () => {
    const components = readComponents(list);
    expect(components.map(({ id }) => id)).toEqual(['discovery.file.a', 'pyroscope.scrape.b']);
    expect(components[0]!.health).toEqual({ state: 'healthy', message: 'fine', updated: Date.UTC(2026, 0, 2, 3, 4, 5) });
    expect(components[1]!.health.state).toBe('unknown');
    expect(edgesOf(components)).toEqual([{ from: 0, to: 1 }]);
    expect(readComponents('nonsense')).toEqual([]);
    expect(readComponents([{ localID: 'a.b', moduleID: 'm.x/n.y' }])[0]!.id).toBe('m.x/n.y/a.b');
    expect(modulePath('m.x/n.y')).toEqual(['m.x', 'm.x/n.y']);
    expect(modulePath('')).toEqual([]);
  });

  it('has fields as attributes and blocks', () => {
    const detail = readDetail({ ...list[0], arguments: [{ name: 'files', type: 'attr', value: { type: 'array', value: [] } }, { name: 'rule', type: 'block', label: 'x', body: [{ name: 'y', type: 'attr' }] }] });
    expect(detail.arguments[0]).toMatchObject({ name: 'files', value: { type: 'array' } });
    expect(detail.arguments[1]).toMatchObject({ type: 'block', label: 'x', body: [{ name: 'y', value: { type: 'null' } }] });
    expect(detail.exports).toEqual([]);
    expect(readOverview({ version: '1', lastLoad: null, liveDebugging: { enabled: true } })).toEqual({ version: '1', load: null, live: { enabled: true } });
    expect(readOverview({ lastLoad: { success: false, text: 'no' } }).load).toEqual({ success: false, time: 0, text: 'no' });
  });

  it('names the targets that can send a goroutine dump, each URL once', () => {
    const attr = (name: string, type: string, value: unknown) => ({ name, type: 'attr', value: { type, value } });
    const target = (url: string, service: string, dump: boolean) => ({
      name: 'targets',
      type: 'block',
      body: [attr('url', 'string', url), ...(dump ? [attr('goroutine_dump', 'bool', true)] : []), { name: 'labels', type: 'block', body: service === '' ? [] : [attr('service_name', 'string', service)] }],
    });
    const { debugInfo } = readDetail({
      ...list[1],
      debugInfo: [
        target('http://h:1/debug/pprof/goroutine', 'shop', true),
        target('http://h:1/debug/pprof/goroutine', 'other', true),
        target('http://h:1/debug/pprof/allocs', 'shop', false),
        target('https://[::1]:2/app/debug/pprof/goroutine?x=1', '', true),
        attr('targets', 'array', []),
        { name: 'clustering', type: 'block', body: [] },
      ],
    });
    expect(dumpTargets(debugInfo)).toEqual([
      { url: 'http://h:1/debug/pprof/goroutine', name: 'shop at h:1' },
      { url: 'https://[::1]:2/app/debug/pprof/goroutine?x=1', name: '[::1]:2/app' },
    ]);
    expect(dumpTargets([])).toEqual([]);
    const time = new Date(Date.UTC(2026, 0, 2, 3, 4, 5));
    expect(dumpName('https://[::1]:2/app/debug/pprof/goroutine', time)).toBe('goroutines._1_2_app.2026-01-02T030405.txt');
    expect(dumpName('nonsense/../x', time)).toBe('goroutines.nonsense_.._x.2026-01-02T030405.txt');
  });

  it('contains the flow of an edge: profiles, or the targets of the exporting component', () => {
    const flows = new Flows();
    for (const rate of [
      { componentID: 'a', targetComponentIDs: [], type: 'target', rate: 1, current: 7 },
      { componentID: 'b', targetComponentIDs: ['c'], type: 'profile', rate: 2.5, bytesRate: 100 },
      { componentID: 'b', targetComponentIDs: ['d'], type: 'profile', rate: 1, bytesRate: 10 },
    ]) flows.add(readRate(rate)!);
    expect(flows.between('a', 'b')).toEqual({ profiles: null, targets: 7 });
    expect(flows.between('b', 'c')).toEqual({ profiles: { rate: 2.5, bytes: 100 }, targets: -1 });
    expect(flows.between('c', 'd')).toEqual({ profiles: null, targets: -1 });
    expect(flows.through('b')).toEqual({ in: null, out: 3.5 });
    expect(flows.through('c')).toEqual({ in: 2.5, out: null });
    expect(readRate({})).toBeNull();
  });
});

describe('streams', () => {
  it('are split into whole entries, whatever the size of the chunks', () => {
    const whole = '{"a":1}|;|{"b":"|;x|"}|;||;|tail|;|';
    for (let size = 1; size < whole.length; size += 1) {
      const entries = new Entries();
      const found: string[] = [];
      for (let at = 0; at < whole.length; at += size) found.push(...entries.add(whole.slice(at, at + size)));
      expect(found).toEqual(['{"a":1}', '{"b":"|;x|"}', 'tail']);
    }
    expect(parse('{"x":"|\\u003b|"}')).toEqual({ x: '|;|' });
    expect(parse('tail')).toBeNull();
  });
});

describe('entries of live data', () => {
  const read = (value: unknown) => readEntry(value, 1, 5);

  it('are read even if fields are missing, and have a summary in one line', () => {
    const dropped = read({ kind: 'relabel', time: '2026-01-02T03:04:05.678Z', before: { __address__: 'h:1' }, after: null, steps: [{ rule: 0, action: 'replace', set: { a: '1' } }, { rule: 1, action: 'drop', dropped: true }] });
    expect(dropped.time).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
    expect(summary(dropped)).toBe('h:1 dropped by rule 2 (drop)');
    expect(summary(read({ kind: 'relabel', before: { service_name: 'shop' }, after: {}, steps: [{ rule: 0 }, { rule: 2 }] }))).toBe('shop changed by rules 1, 3');
    expect(summary(read({ kind: 'relabel', before: {}, after: {} }))).toBe('{} unchanged');
    expect(summary(read({ kind: 'profile', profileType: 'memory', bytes: 2048, samples: 1, labels: { service_name: 'shop' } }))).toBe('memory · 2 KiB · 1 sample · shop');
    expect(summary(read({ kind: 'profile', profileType: 'memory', bytes: 2048, samples: null }))).toBe('memory · 2 KiB · {}');
    const failed = read({ kind: 'write', endpoint: 'http://h', profiles: 2, bytes: 10, seconds: 0.5, ok: false, outcome: 'failed', error: 'refused' });
    expect([summary(failed), isBad(failed)]).toEqual(['2 profiles, 10 B, to http://h failed: refused · 500 ms', true]);
    expect(summary(read({ kind: 'lost', count: 3 }))).toMatch(/^3 entries were dropped/);
    expect(read({ kind: 'newer' }).kind).toBe('other');
    expect(read(null)).toMatchObject({ kind: 'other', time: 5 });
    expect(searchable(dropped)).toContain('"a":"1"');
  });

  it('are listed with the newest first, and the oldest are dropped above a maximum number', () => {
    const tail = new Tail(3);
    for (let count = 1; count <= 5; count += 1) tail.add([readEntry({ kind: 'lost', count }, count, 0)]);
    expect(tail.list().map((entry) => entry.number)).toEqual([5, 4, 3]);
    tail.clear();
    expect(tail.list()).toEqual([]);
  });
});

describe('the address of the view', () => {
  it('is /graph on a collector and /pipeline on a server, below any prefix', () => {
    expect(baseOf('http://h/my/agent/assets/collector-x.js')).toBe('/my/agent/');
    for (const base of ['/', '/p/']) {
      const [graph] = VIEWS.collector;
      for (const path of ['graph', 'graph/', '', 'pipeline']) expect(addressOf(base + path, base, VIEWS.collector)).toBe(graph);
      expect(addressOf(`${base}profile`, base, VIEWS.collector)).toBeUndefined();
      expect(addressOf(`${base}graph`, base, VIEWS.server)?.path).toBe('pipeline');
      expect(addressOf(`${base}nothing`, base, VIEWS.server)).toBeUndefined();
    }
  });
});
