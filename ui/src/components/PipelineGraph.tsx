// The component graph on a canvas. Dragging pans; the wheel, a pinch and keys zoom; arrow keys move from node to node. The canvas is redrawn
// only when something changes, and only its visible part. The parent view stores which component is selected.

import { createEffect, createMemo, createSignal, on, Show } from 'solid-js';
import { dark } from '../lib/preferences.ts';
import { fit, flowText, INK, Painter, zoomed, type Camera } from '../pipeline/draw.ts';
import { layout, neighbour, nodeAt, NODE_HEIGHT, NODE_WIDTH } from '../pipeline/layout.ts';
import { edgesOf, type Component, type Flows } from '../pipeline/model.ts';
import { createCanvas } from './canvas.ts';
import { Icon } from './Icon.tsx';

/** Smallest scale at which the graph opens, so that its text is readable. If the whole graph does not fit at this scale, its beginning is shown. */
const FIRST_SCALE = 0.62;
const STEP = 1.3;
/** A press that moves by more pixels than this is a drag, otherwise it is a click. */
const CLICK = 4;

export interface PipelineGraphProps {
  components: readonly Component[];
  flows: Flows;
  matched: ReadonlySet<number> | null;
  /** Id of the selected component, including its module; empty for none. */
  selected: string;
  onSelect: (id: string) => void;
  /** Called to open the module that a component created. */
  onOpen: (component: Component) => void;
}

export function PipelineGraph(props: PipelineGraphProps) {
  let box!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  let painter: Painter | undefined;
  const [camera, setCamera] = createSignal<Camera>({ x: 0, y: 0, scale: 1 });
  const [hovered, setHovered] = createSignal(-1);
  const [cursor, setCursor] = createSignal(-1);

  // The shape of the graph changes only at a reload, but health and rates change all the time.
  const shape = createMemo(() => ({ ids: props.components.map(({ id }) => id), edges: edgesOf(props.components) }), undefined, {
    equals: (a, b) => a.ids.length === b.ids.length && a.edges.length === b.edges.length && a.ids.every((id, at) => id === b.ids[at]) && a.edges.every((edge, at) => edge.from === b.edges[at]!.from && edge.to === b.edges[at]!.to),
  });
  const placed = createMemo(() => {
    const begin = performance.now();
    const made = layout(shape().ids.length, shape().edges);
    performance.measure('pipeline:layout', { start: begin, end: performance.now(), detail: { nodes: shape().ids.length, edges: shape().edges.length } });
    return made;
  });
  const flows = createMemo(() => shape().edges.map(({ from, to }) => props.flows.between(shape().ids[from]!, shape().ids[to]!)));
  const targets = createMemo(() => shape().ids.map((id) => props.flows.targetsOf(id)));
  const selected = createMemo(() => shape().ids.indexOf(props.selected));
  const scene = () => ({
    layout: placed(),
    components: props.components,
    edges: shape().edges,
    flows: flows(),
    targets: targets(),
    matched: props.matched,
    selected: selected(),
    hovered: hovered(),
    cursor: cursor(),
    camera: camera(),
    ink: INK[dark() ? 'dark' : 'light'],
  });
  const size = createCanvas({
    box: () => box,
    canvas: () => canvas,
    paint: (context, size) => {
      if (shape().ids.length !== props.components.length) return;
      painter ??= new Painter(context, getComputedStyle(box).fontFamily);
      const begin = performance.now();
      const drawn = painter.paint({ ...scene(), ...size });
      canvas.dataset.drawMs = (performance.now() - begin).toFixed(2);
      canvas.dataset.nodes = String(props.components.length);
      canvas.dataset.inView = String(drawn.nodes);
    },
    watch: () => void scene(),
  });
  const least = (): number => Math.min(0.3, fit(placed(), size().width, size().height).scale);

  const whole = (): void => {
    setCamera(fit(placed(), size().width, size().height));
  };
  /** Moves the camera so that a node is visible, with a margin to the edge. */
  const reveal = (node: number): void => {
    if (node < 0) return;
    const { x, y, scale } = camera();
    const left = placed().x[node]!;
    const top = placed().y[node]!;
    const width = size().width / scale;
    const height = size().height / scale;
    const margin = 24 / scale;
    const next = {
      scale,
      x: left - margin < x ? left - margin : left + NODE_WIDTH + margin > x + width ? left + NODE_WIDTH + margin - width : x,
      y: top - margin < y ? top - margin : top + NODE_HEIGHT + margin > y + height ? top + NODE_HEIGHT + margin - height : y,
    };
    setCamera(next);
  };
  const zoom = (factor: number, x = size().width / 2, y = size().height / 2): void => {
    setCamera(zoomed(camera(), factor, x, y, least()));
  };

  const enter = (): void => {
    setCamera(fit(placed(), size().width, size().height, FIRST_SCALE));
    reveal(selected());
  };
  const visible = createMemo(() => size().width > 0);
  createEffect(on([placed, visible], ([, seen]) => {
    setCursor(-1);
    setHovered(-1);
    if (seen) enter();
  }));
  createEffect(on(selected, reveal, { defer: true }));

  const under = (event: { clientX: number; clientY: number }): number => {
    const at = canvas.getBoundingClientRect();
    const { x, y, scale } = camera();
    return nodeAt(placed(), x + (event.clientX - at.left) / scale, y + (event.clientY - at.top) / scale);
  };
  // The positions of the fingers that touch the canvas, or of the mouse while its button is pressed, by pointer id.
  const down = new Map<number, { x: number; y: number }>();
  let moved = 0;
  const press = (event: PointerEvent): void => {
    if (event.pointerType === 'mouse' && event.button > 1) return;
    canvas.setPointerCapture(event.pointerId);
    if (down.size === 0) moved = 0;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
  };
  const move = (event: PointerEvent): void => {
    const before = down.get(event.pointerId);
    if (!before) {
      setHovered(under(event));
      return;
    }
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    const by = { x: event.clientX - before.x, y: event.clientY - before.y };
    moved += Math.abs(by.x) + Math.abs(by.y);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const { x, y, scale } = camera();
    if (other) {
      const at = canvas.getBoundingClientRect();
      const length = (point: { x: number; y: number }): number => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
      zoom(length({ x: event.clientX, y: event.clientY }) / length(before), (event.clientX + other.x) / 2 - at.left, (event.clientY + other.y) / 2 - at.top);
    } else if (moved > CLICK) setCamera({ scale, x: x - by.x / scale, y: y - by.y / scale });
  };
  const release = (event: PointerEvent): void => {
    down.delete(event.pointerId);
    if (event.type !== 'pointerup' || down.size > 0 || moved > CLICK || event.button !== 0) return;
    const node = under(event);
    setCursor(-1);
    props.onSelect(node < 0 ? '' : shape().ids[node]!);
  };

  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ({ ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' } as const)[event.key];
    const at = cursor() >= 0 ? cursor() : selected();
    if (way) {
      const next = at < 0 ? (placed().columns[0]?.[0] ?? -1) : neighbour(placed(), at, way);
      if (next >= 0) {
        setCursor(next);
        reveal(next);
      }
    } else if (event.key === 'Enter' || event.key === ' ') {
      if (at < 0) return;
      if (event.key === 'Enter' && selected() === at && props.components[at]!.modules.length > 0) props.onOpen(props.components[at]!);
      else props.onSelect(shape().ids[at]!);
    } else if (event.key === '+' || event.key === '=') zoom(STEP);
    else if (event.key === '-') zoom(1 / STEP);
    else if (event.key === '0') whole();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const spoken = (): string => {
    const component = props.components[cursor()];
    if (!component) return '';
    const out = shape().edges.flatMap(({ from, to }, index) => (from === cursor() ? [`to ${shape().ids[to]} ${flowText(flows()[index]!)}`] : []));
    return `${component.id}, ${component.health.state}, ${component.health.message}${out.length > 0 ? `, sends ${out.slice(0, 4).join(', ')}` : ''}`;
  };

  return (
    <div
      class="pipeline-graph"
      id="pipeline"
      ref={box}
      tabindex="0"
      role="application"
      aria-roledescription="component graph"
      aria-label="Component graph. Arrow keys move between components, Enter opens one, plus and minus zoom, 0 shows all. The button Table shows the same values as a table."
      onKeyDown={keys}
      onBlur={() => setCursor(-1)}
    >
      <canvas
        ref={canvas}
        style={{ cursor: hovered() >= 0 ? 'pointer' : 'grab' }}
        onPointerDown={press}
        onPointerMove={move}
        onPointerUp={release}
        onPointerCancel={release}
        onPointerLeave={() => setHovered(-1)}
        onDblClick={(event) => {
          const component = props.components[under(event)];
          if (component && component.modules.length > 0) props.onOpen(component);
        }}
        onWheel={(event) => {
          event.preventDefault();
          const at = canvas.getBoundingClientRect();
          zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), event.clientX - at.left, event.clientY - at.top);
        }}
      />
      <div class="zoom-tools group" role="group" aria-label="Zoom">
        <button type="button" class="button square" aria-label="Zoom out" onClick={() => zoom(1 / STEP)}><Icon name="minus" /></button>
        <button type="button" class="button square" aria-label="Zoom in" onClick={() => zoom(STEP)}><Icon name="plus" /></button>
        <button type="button" class="button square" aria-label="Zoom to fit" onClick={whole}><Icon name="fit" /></button>
      </div>
      <div class="visually-hidden" aria-live="polite">{spoken()}</div>
      <Show when={props.components[hovered()]}>
        {(component) => (
          <Show when={component().health.state !== 'healthy'}>
            <div class="graph-tip" role="status"><b class={`health-${component().health.state}`}>{component().health.state}</b> {component().health.message}</div>
          </Show>
        )}
      </Show>
    </div>
  );
}
