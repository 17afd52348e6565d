// The call graph. A function is a box, with larger text for a larger own value. A call is a line, thicker for a larger value. The graph
// scrolls, and zooms by keys and buttons. Arrow keys move to callers, callees and neighbours.

import { createEffect, createMemo, createSignal, For, on, Show } from 'solid-js';
import { INK } from '../flame/colours.ts';
import { EDGE_FRACTION, NODE_FRACTION, type Call, type CallGraph as Graph } from '../flame/call-graph.ts';
import { arrow, curve, graphSvg, MARGIN, middleOf, PAD, strokeOf, textAt, TOLD, VALUE_TEXT, type DrawnGraph } from '../flame/graph-svg.ts';
import { shortName } from '../flame/packages.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { saveFile } from '../lib/pprof.ts';
import { dark } from '../lib/preferences.ts';
import { work } from '../models/work.ts';
import { Icon } from './Icon.tsx';
import { Failure } from './Notice.tsx';
import type { PartProps } from './PartProps.ts';
import { Radios, type Radio } from './Radios.tsx';

const COUNTS: readonly Radio<PartProps['nodes']>[] = [
  { value: '30', label: 'The 30 largest functions', text: '30' },
  { value: '80', label: 'The 80 largest functions', text: '80' },
  { value: '200', label: 'The 200 largest functions', text: '200' },
];
/** Text size in a box, in pixels: the size for a function without an own value, and the increase for the largest own value. */
const LEAST_TEXT = 11;
const MORE_TEXT = 13;
/** Approximate width of a character of the monospaced font, relative to its size. */
const CHARACTER = 0.61;
const LONGEST = 44;
const STEP = 1.25;
/** Smallest scale at which the graph opens, so that its text is readable. */
const LEAST_SCALE = 0.6;

export function CallGraph(props: PartProps) {
  let scroller!: HTMLDivElement;
  const [scale, setScale] = createSignal(1);
  const [cursor, setCursor] = createSignal(-1);
  const amount = (value: number): string => props.look.amount?.(value) ?? '';
  const sum = (): number => props.tree.flame.sum;

  const wanted = createMemo(() => ({ flame: props.tree.flame, most: Number(props.nodes) }));
  const drawn = createLoader(wanted, async ({ flame, most }): Promise<DrawnGraph> => {
    // The worker needs no names, so they are not copied to it.
    const graph = await work('graph', { flame: { ...flame, names: [], files: [], mappings: [] }, most });
    const largest = graph.nodes.reduce((max, { self }) => Math.max(max, self), 1e-300);
    const boxes = graph.nodes.map(({ name, self }) => {
      const full = flame.names[name] ?? '';
      const text = cut(shortName(full));
      const size = LEAST_TEXT + MORE_TEXT * Math.sqrt(Math.max(0, self) / largest);
      const width = Math.max([...text].length * size * CHARACTER, 21 * VALUE_TEXT * CHARACTER) + 2 * PAD;
      return { name: text, full, size, width, height: size + 2 * (VALUE_TEXT + 4) + 2 * PAD };
    });
    const places = await work('places', { boxes: boxes.map(({ width, height }) => ({ width, height })), lines: graph.calls.map(({ from, to }) => ({ from, to })) });
    return { graph, places, boxes };
  });
  const selected = createMemo(() => drawn.data()?.graph.nodes.findIndex(({ name }) => name === props.name) ?? -1);
  const pointed = createMemo(() => drawn.data()?.graph.nodes.findIndex(({ name }) => name === props.hovered) ?? -1);

  /** The scale at which the whole graph is visible. */
  const fitting = ({ places }: DrawnGraph): number => Math.min(scroller.clientWidth / (places.width + 2 * MARGIN), scroller.clientHeight / (places.height + 2 * MARGIN));
  const show = (node: number): void => {
    const found = drawn.data();
    const box = found?.boxes[node];
    if (!found || !box) return;
    scroller.scrollTo({
      left: (found.places.x[node]! + box.width / 2 + MARGIN) * scale() - scroller.clientWidth / 2,
      top: (found.places.y[node]! + box.height / 2 + MARGIN) * scale() - scroller.clientHeight / 2,
    });
  };
  // A new graph opens at the selected function, with readable text. New values of the same graph do not move it.
  let arrived = '';
  createEffect(on(drawn.data, (found, before) => {
    if (!found) return;
    const at = before?.boxes[cursor()]?.full;
    setCursor(at === undefined ? -1 : found.boxes.findIndex(({ full }) => full === at));
    const what = `${props.of}\n${props.nodes}`;
    if (what === arrived) return;
    arrived = what;
    setScale(Math.min(1, Math.max(LEAST_SCALE, fitting(found))));
    queueMicrotask(() => show(Math.max(0, selected())));
  }));
  const looked = createMemo(() => props.tree.flame.names[props.name]);
  createEffect(on(looked, () => selected() >= 0 && show(selected()), { defer: true }));

  const zoom = (factor: number): void => {
    const before = scale();
    const [x, y] = [scroller.scrollLeft + scroller.clientWidth / 2, scroller.scrollTop + scroller.clientHeight / 2];
    const next = Math.min(2, Math.max(0.1, before * factor));
    setScale(next);
    scroller.scrollTo({ left: (x * next) / before - scroller.clientWidth / 2, top: (y * next) / before - scroller.clientHeight / 2 });
  };
  const whole = (): void => {
    const found = drawn.data();
    if (found) setScale(Math.min(1, fitting(found)));
  };
  const put = (node: number | undefined): void => {
    const found = drawn.data();
    if (node === undefined || !found?.graph.nodes[node]) return;
    setCursor(node);
    props.onHover(found.graph.nodes[node].name);
    show(node);
  };
  const keys = (event: KeyboardEvent): void => {
    const found = drawn.data();
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = cursor() >= 0 ? cursor() : Math.max(0, selected());
    const row = found.places.rows.find((members) => members.includes(node)) ?? [];
    const first = (calls: Call[], end: 'from' | 'to'): number | undefined => calls[0]?.[end];
    if (event.key === 'ArrowDown') put(cursor() < 0 ? node : first(found.graph.calls.filter(({ from }) => from === node), 'to'));
    else if (event.key === 'ArrowUp') put(cursor() < 0 ? node : first(found.graph.calls.filter(({ to }) => to === node), 'from'));
    else if (event.key === 'ArrowRight') put(row[row.indexOf(node) + 1]);
    else if (event.key === 'ArrowLeft') put(row[row.indexOf(node) - 1]);
    else if (event.key === 'Home') put(0);
    else if (event.key === 'Enter' || event.key === ' ') props.onWalk(found.boxes[node]?.full ?? '');
    else if (event.key === '+' || event.key === '=') zoom(STEP);
    else if (event.key === '-') zoom(1 / STEP);
    else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) menu(node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const menu = (node: number): void => {
    const box = scroller.querySelector(`[data-node="${node}"]`)?.getBoundingClientRect();
    if (box) props.onMenu(drawn.data()?.graph.nodes[node]?.name ?? -1, box.left + 20, box.bottom);
  };
  const save = (): void => {
    const found = drawn.data();
    if (!found) return;
    const text = graphSvg({ ...found, sum: sum(), colour: props.look.swatch, ink: INK[dark() ? 'dark' : 'light'], title: `${props.of}: ${formatWhole(found.graph.nodes.length)} functions; ${without(found.graph)}`, amount, share: formatShare });
    saveFile(new Blob([text], { type: 'image/svg+xml' }), 'call-graph.svg');
  };
  const words = ({ graph, boxes }: DrawnGraph, node: number): string => {
    const { self, total } = graph.nodes[node]!;
    return `${boxes[node]!.full}: self ${amount(self)}, ${formatShare(self / sum())}, total ${amount(total)}, ${formatShare(total / sum())}`;
  };
  const spoken = (): string => {
    const found = drawn.data();
    if (!found || cursor() < 0) return '';
    const callees = found.graph.calls.filter(({ from }) => from === cursor()).slice(0, 3).map(({ to }) => found.boxes[to]!.name);
    return `${words(found, cursor())}${callees.length > 0 ? `, calls ${callees.join(', ')}` : ''}`;
  };
  const without = (graph: Graph): string => {
    const left = [
      ...(graph.without.nodes > 0 ? [`${formatWhole(graph.without.nodes)} ${graph.without.nodes === 1 ? 'function' : 'functions'}`] : []),
      ...(graph.without.calls > 0 ? [`${formatWhole(graph.without.calls)} ${graph.without.calls === 1 ? 'call' : 'calls'}`] : []),
    ];
    return left.length === 0 ? 'nothing omitted' : `omitted: ${left.join(', ')}`;
  };

  return (
    <div class="call-graph" classList={{ stale: drawn.pending() }}>
      <div class="part-head">
        <Show when={drawn.data()} fallback={<span class="muted">Laying out the call graph …</span>}>
          {(found) => <span class="facts" role="status" title={`The graph omits functions below ${formatShare(NODE_FRACTION)} of the total and functions beyond the selected number. It omits calls below ${formatShare(EDGE_FRACTION)} of the total, except the largest call to each function. It also omits a call through omitted functions if another path leads from its caller to the same function.`}><b>{formatWhole(found().graph.nodes.length)}</b> functions, <b>{formatWhole(found().graph.calls.length)}</b> calls; {without(found().graph)}</span>}
        </Show>
        <span class="grow" />
        <Radios label="Functions" value={props.nodes} choices={COUNTS} onChoose={props.onNodes} />
        <button type="button" class="button square" aria-label="Download as SVG" title="Download as SVG" disabled={!drawn.data()} onClick={save}><Icon name="download" /></button>
        <div class="group" role="group" aria-label="Zoom">
          <button type="button" class="button square" aria-label="Zoom out" title="Zoom out  -" onClick={() => zoom(1 / STEP)}><Icon name="minus" /></button>
          <button type="button" class="button square" aria-label="Zoom in" title="Zoom in  +" onClick={() => zoom(STEP)}><Icon name="plus" /></button>
          <button type="button" class="button square" aria-label="Zoom to fit" title="Zoom to fit" onClick={whole}><Icon name="fit" /></button>
        </div>
      </div>
      <Show when={drawn.error()}>{(error) => <div class="fill"><Failure what="Cannot lay out the call graph" error={error()} retry={drawn.retry} /></div>}</Show>
      <div class="graph-scroll" id="call-graph" ref={scroller} tabindex="0" role="application" aria-roledescription="call graph" aria-label="Call graph. Arrow keys go to callers, callees and neighbours, Enter selects, plus and minus zoom. The table beside it has the same values." onKeyDown={keys}>
        <Show when={drawn.data()}>
          {(found) => (
            <svg width={(found().places.width + 2 * MARGIN) * scale()} height={(found().places.height + 2 * MARGIN) * scale()} viewBox={`${-MARGIN} ${-MARGIN} ${found().places.width + 2 * MARGIN} ${found().places.height + 2 * MARGIN}`} aria-hidden="true">
              <For each={found().graph.calls}>
                {(call, index) => {
                  const path = () => found().places.paths[index()]!;
                  const share = (): number => call.value / sum();
                  const beside = (): boolean => [call.from, call.to].some((node) => node === selected() || node === cursor() || node === pointed());
                  return (
                    <g class="call" classList={{ over: call.over, beside: beside() }}>
                      <path d={curve(path())} stroke-width={strokeOf(share())} />
                      <path class="head" d={arrow(path(), share())} />
                      <Show when={share() >= TOLD}><text {...middleOf(path())}>{amount(call.value)}</text></Show>
                      <title>{`${found().boxes[call.from]!.full} → ${found().boxes[call.to]!.full}: ${amount(call.value)}, ${formatShare(share())}${call.over ? ', through omitted functions' : ''}`}</title>
                    </g>
                  );
                }}
              </For>
              <For each={found().graph.nodes}>
                {(node, index) => {
                  const box = () => found().boxes[index()]!;
                  const line = (at: number): number => textAt(box().size, at);
                  return (
                    <g
                      class="call-node"
                      classList={{ selected: selected() === index(), cursor: cursor() === index() || pointed() === index() }}
                      data-node={index()}
                      transform={`translate(${found().places.x[index()]} ${found().places.y[index()]})`}
                      onClick={() => props.onWalk(box().full)}
                      onPointerEnter={() => props.onHover(node.name)}
                      onPointerLeave={() => props.onHover(-1)}
                      onContextMenu={(event) => {
                        event.preventDefault();
                        props.onMenu(node.name, event.clientX, event.clientY);
                      }}
                    >
                      <rect width={box().width} height={box().height} rx="4" fill={props.look.swatch(node.name)} />
                      <text x={box().width / 2} y={line(0)} font-size={`${box().size}`}>{box().name}{node.recursive ? ' ↻' : ''}</text>
                      <text x={box().width / 2} y={line(1)} font-size={`${VALUE_TEXT}`}>self {amount(node.self)} {formatShare(node.self / sum())}</text>
                      <text x={box().width / 2} y={line(2)} font-size={`${VALUE_TEXT}`}>total {amount(node.total)} {formatShare(node.total / sum())}</text>
                      <title>{`${words(found(), index())}${node.recursive ? ', calls itself' : ''}`}</title>
                    </g>
                  );
                }}
              </For>
            </svg>
          )}
        </Show>
        <div class="visually-hidden" aria-live="polite">{spoken()}</div>
      </div>
    </div>
  );
}

/** Shortens a long name to its two ends: its package and its function. */
function cut(name: string): string {
  const first = Array.from(name.slice(0, LONGEST * 2));
  if (first.length <= LONGEST && name.length <= LONGEST * 2) return first.join('');
  const last = Array.from(name.slice(-LONGEST * 2)).slice(-Math.ceil(LONGEST * 0.6));
  return `${first.slice(0, LONGEST - last.length - 1).join('')}…${last.join('')}`;
}
