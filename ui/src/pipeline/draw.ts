// Draws the visible part of the component graph on a canvas, with as much detail as is readable at the zoom.
// In: a layout, the data of each node and edge, and the camera. Out: pixels, and the number of drawn nodes and edges.

import { formatValue } from '../lib/format.ts';
import { NODE_HEIGHT, NODE_WIDTH, type Layout, type Point } from './layout.ts';
import type { Component, Edge, Flow, HealthState } from './model.ts';

/** The visible part of the graph: its upper left corner in graph units, and the pixels per unit. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Ink {
  ground: string;
  paper: string;
  line: string;
  strong: string;
  text: string;
  muted: string;
  accent: string;
  soft: string;
  hover: string;
  health: Record<HealthState, string>;
}

/** The colours of page.css, because a canvas cannot resolve `light-dark()`. Text has a contrast of at least 4.5 : 1 to its background. */
export const INK: Record<'light' | 'dark', Ink> = {
  light: {
    ground: '#f5f6f8', paper: '#ffffff', line: '#e2e5ea', strong: '#c3cad3', text: '#1a1e24', muted: '#5a6472', accent: '#0b6a86', soft: '#e0f0f5', hover: '#eef1f4',
    health: { healthy: '#1a7037', unknown: '#5a6472', unhealthy: '#b3261e', exited: '#8a4b00' },
  },
  dark: {
    ground: '#0f1215', paper: '#16191d', line: '#2a2f36', strong: '#465059', text: '#e4e8ed', muted: '#98a3b0', accent: '#56b8d4', soft: '#15303a', hover: '#22272d',
    health: { healthy: '#57c27c', unknown: '#98a3b0', unhealthy: '#ff8f86', exited: '#e5ab63' },
  },
};

export interface Scene {
  layout: Layout;
  components: readonly Component[];
  edges: readonly Edge[];
  /** The flow of each edge. */
  flows: readonly Flow[];
  /** Number of targets that each node exports; -1 for a node that does not export targets. */
  targets: readonly number[];
  /** Nodes that match the filter; null without a filter. */
  matched: ReadonlySet<number> | null;
  selected: number;
  hovered: number;
  /** Node of the keyboard cursor, -1 for none. */
  cursor: number;
  camera: Camera;
  width: number;
  height: number;
  ink: Ink;
}

/** Below this scale, nodes are blocks of colour. */
const READABLE = 0.42;
/** From this scale on, edges have text. */
const WORDS = 0.62;

/** Returns the text of an edge; empty if nothing is known about its flow. */
export function flowText(flow: Flow): string {
  if (flow.profiles) return flow.profiles.rate > 0 ? `${formatValue(flow.profiles.rate, 'count/s')} · ${formatValue(flow.profiles.bytes, 'bytes/s')}` : '0/s';
  if (flow.targets < 0) return '';
  return `${formatValue(flow.targets, 'count')} ${flow.targets === 1 ? 'target' : 'targets'}`;
}

export class Painter {
  readonly #context: CanvasRenderingContext2D;
  readonly #fonts: { name: string; label: string };
  readonly #fits = new Map<string, string>();
  readonly #widths = new Map<string, number>();

  constructor(context: CanvasRenderingContext2D, family: string) {
    this.#context = context;
    this.#fonts = { name: `11px ${family}`, label: `600 13px ${family}` };
  }

  /** Draws the scene, and returns the number of visible nodes and edges. */
  paint(scene: Scene): { nodes: number; edges: number } {
    const context = this.#context;
    const { camera, ink } = scene;
    context.fillStyle = ink.ground;
    context.fillRect(0, 0, scene.width, scene.height);
    context.save();
    context.scale(camera.scale, camera.scale);
    context.translate(-camera.x, -camera.y);
    const view = { left: camera.x, top: camera.y, right: camera.x + scene.width / camera.scale, bottom: camera.y + scene.height / camera.scale };
    let edges = 0;
    const touched = (edge: Edge): boolean => edge.from === scene.selected || edge.to === scene.selected || edge.from === scene.hovered || edge.to === scene.hovered;
    const last: number[] = [];
    scene.edges.forEach((edge, index) => {
      const path = scene.layout.paths[index]!;
      if (!isInView(path, view)) return;
      edges += 1;
      if (touched(edge)) last.push(index);
      else this.#edge(scene, index, path, false);
    });
    for (const index of last) this.#edge(scene, index, scene.layout.paths[index]!, true);
    let nodes = 0;
    for (let node = 0; node < scene.components.length; node += 1) {
      const x = scene.layout.x[node]!;
      const y = scene.layout.y[node]!;
      if (x > view.right || y > view.bottom || x + NODE_WIDTH + 6 < view.left || y + NODE_HEIGHT + 6 < view.top) continue;
      nodes += 1;
      if (camera.scale < READABLE) this.#block(scene, node, x, y);
      else this.#node(scene, node, x, y);
    }
    if (camera.scale >= WORDS) {
      scene.edges.forEach((edge, index) => {
        const path = scene.layout.paths[index]!;
        if (isInView(path, view)) this.#words(scene, path, scene.flows[index]!, this.#isDim(scene, edge.from) && this.#isDim(scene, edge.to), touched(edge));
      });
    }
    context.restore();
    return { nodes, edges };
  }

  #isDim(scene: Scene, node: number): boolean {
    return scene.matched !== null && !scene.matched.has(node);
  }

  #edge(scene: Scene, index: number, path: readonly Point[], strong: boolean): void {
    const context = this.#context;
    const { ink, camera } = scene;
    const edge = scene.edges[index]!;
    const flow = scene.flows[index]!;
    const flowing = flow.profiles !== null && flow.profiles.rate > 0;
    context.globalAlpha = this.#isDim(scene, edge.from) || this.#isDim(scene, edge.to) ? 0.25 : 1;
    context.strokeStyle = strong || flowing ? ink.accent : ink.strong;
    // Ten times the flow makes a line one pixel wider.
    const width = flowing ? Math.min(5, 1.5 + Math.log10(1 + flow.profiles!.rate)) : 1.25;
    context.lineWidth = Math.max(strong ? width + 0.75 : width, 0.6 / camera.scale);
    context.setLineDash(flow.profiles || flow.targets < 0 ? [] : [5, 4]);
    context.beginPath();
    trace(context, path);
    context.stroke();
    context.setLineDash([]);
    if (camera.scale >= READABLE) {
      const end = path[path.length - 1]!;
      context.fillStyle = context.strokeStyle;
      context.beginPath();
      context.moveTo(end.x, end.y);
      context.lineTo(end.x - 8, end.y - 4);
      context.lineTo(end.x - 8, end.y + 4);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #words(scene: Scene, path: readonly Point[], flow: Flow, dim: boolean, strong: boolean): void {
    const text = flowText(flow);
    if (text === '') return;
    const context = this.#context;
    // The text is in the gap before the node at which the edge ends, because edges that begin at the same node are apart there.
    const from = path[path.length - 2]!;
    const to = path[path.length - 1]!;
    const x = (from.x + to.x) / 2;
    const y = (from.y + to.y) / 2;
    context.font = this.#fonts.name;
    const width = this.#width(text);
    context.globalAlpha = dim ? 0.35 : 1;
    context.fillStyle = scene.ink.ground;
    context.fillRect(x - width / 2 - 4, y - 8, width + 8, 16);
    context.fillStyle = strong ? scene.ink.text : scene.ink.muted;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(text, x, y + 0.5);
    context.textAlign = 'left';
    context.globalAlpha = 1;
  }

  #block(scene: Scene, node: number, x: number, y: number): void {
    const context = this.#context;
    const { ink } = scene;
    const { state } = scene.components[node]!.health;
    context.globalAlpha = this.#isDim(scene, node) ? 0.2 : 1;
    context.fillStyle = node === scene.selected ? ink.accent : state === 'healthy' ? ink.strong : ink.health[state];
    context.fillRect(x, y, NODE_WIDTH, NODE_HEIGHT);
    context.globalAlpha = 1;
    if (node === scene.cursor || node === scene.hovered) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2 / scene.camera.scale;
      context.strokeRect(x, y, NODE_WIDTH, NODE_HEIGHT);
    }
  }

  #node(scene: Scene, node: number, x: number, y: number): void {
    const context = this.#context;
    const { ink } = scene;
    const component = scene.components[node]!;
    const selected = node === scene.selected;
    context.globalAlpha = this.#isDim(scene, node) ? 0.3 : 1;
    if (component.modules.length > 0) {
      // Two sheets behind the node show that it opens as a graph.
      for (const shift of [6, 3]) this.#box(x + shift, y + shift, ink.paper, ink.strong, 1);
    }
    this.#box(x, y, selected ? ink.soft : node === scene.hovered ? ink.hover : ink.paper, selected ? ink.accent : ink.strong, selected ? 2 : 1);
    const colour = ink.health[component.health.state];
    context.fillStyle = colour;
    context.beginPath();
    context.roundRect(x, y, 5, NODE_HEIGHT, [6, 0, 0, 6]);
    context.fill();
    context.textBaseline = 'alphabetic';
    context.fillStyle = ink.muted;
    context.font = this.#fonts.name;
    context.fillText(this.#fit(component.name, NODE_WIDTH - 26), x + 14, y + 18);
    context.fillStyle = ink.text;
    context.font = this.#fonts.label;
    context.fillText(this.#fit(component.label || component.localId, NODE_WIDTH - 26), x + 14, y + 37);
    context.font = this.#fonts.name;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x + 17.5, y + 50.5, 3.5, 0, Math.PI * 2);
    context.fill();
    context.fillText(component.health.state, x + 26, y + 54.5);
    const targets = scene.targets[node]!;
    const note = component.modules.length > 0 ? 'module' : targets >= 0 ? flowText({ profiles: null, targets }) : '';
    if (note !== '') {
      context.fillStyle = ink.muted;
      context.textAlign = 'right';
      context.fillText(note, x + NODE_WIDTH - 12, y + 54.5);
      context.textAlign = 'left';
    }
    context.globalAlpha = 1;
    if (node === scene.cursor) {
      context.strokeStyle = ink.accent;
      context.lineWidth = 2;
      context.beginPath();
      context.roundRect(x - 4, y - 4, NODE_WIDTH + 8, NODE_HEIGHT + 8, 9);
      context.stroke();
    }
  }

  #box(x: number, y: number, fill: string, stroke: string, width: number): void {
    const context = this.#context;
    context.fillStyle = fill;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    context.roundRect(x, y, NODE_WIDTH, NODE_HEIGHT, 6);
    context.fill();
    context.stroke();
  }

  #width(text: string): number {
    let width = this.#widths.get(text);
    if (width === undefined) {
      // Rates change all the time, so the cache is cleared when it is large.
      if (this.#widths.size > 5000) this.#widths.clear();
      width = this.#context.measureText(text).width;
      this.#widths.set(text, width);
    }
    return width;
  }

  /** Returns the text, cut at its end to fit, in the current font. */
  #fit(text: string, room: number): string {
    const key = `${this.#context.font}\n${text}`;
    let fit = this.#fits.get(key);
    if (fit === undefined) {
      fit = text;
      if (this.#context.measureText(text).width > room) {
        let low = 0;
        let high = text.length;
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (this.#context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
          else high = middle - 1;
        }
        fit = `${text.slice(0, low)}…`;
      }
      if (this.#fits.size > 20_000) this.#fits.clear();
      this.#fits.set(key, fit);
    }
    return fit;
  }
}

function isInView(path: readonly Point[], view: { left: number; top: number; right: number; bottom: number }): boolean {
  const first = path[0]!;
  const last = path[path.length - 1]!;
  if (Math.max(first.x, last.x) < view.left || Math.min(first.x, last.x) > view.right) return false;
  let top = Number.POSITIVE_INFINITY;
  let bottom = Number.NEGATIVE_INFINITY;
  for (const { y } of path) {
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  return bottom >= view.top - 10 && top <= view.bottom + 10;
}

/** Traces a path: straight through columns, as an S curve through the gaps between them. */
function trace(context: CanvasRenderingContext2D, path: readonly Point[]): void {
  context.moveTo(path[0]!.x, path[0]!.y);
  for (let index = 1; index < path.length; index += 1) {
    const from = path[index - 1]!;
    const to = path[index]!;
    if (from.y === to.y && to.x > from.x) context.lineTo(to.x, to.y);
    else {
      const bend = Math.max(24, Math.min(120, Math.abs(to.x - from.x) / 2));
      context.bezierCurveTo(from.x + bend, from.y, to.x - bend, to.y, to.x, to.y);
    }
  }
}

/** Returns the camera that shows a whole layout at a scale of at most 1. If this scale would be below `least`, the camera shows the beginning at the scale `least`. */
export function fit(layout: Layout, width: number, height: number, least = 0): Camera {
  const margin = 32;
  const scale = Math.max(least, Math.min(1, (width - 2 * margin) / Math.max(1, layout.width), (height - 2 * margin) / Math.max(1, layout.height)));
  const spare = (room: number, size: number): number => Math.max(margin / scale, (room / scale - size) / 2);
  return { scale, x: -spare(width, layout.width), y: -spare(height, layout.height) };
}

/** Returns the camera after a zoom by `factor` around a point of the screen. */
export function zoomed(camera: Camera, factor: number, x: number, y: number, least: number): Camera {
  const scale = Math.max(Math.min(least, camera.scale), Math.min(2, camera.scale * factor));
  return { scale, x: camera.x + x / camera.scale - x / scale, y: camera.y + y / camera.scale - y / scale };
}
