// The call graph as a self-contained SVG: no script, no style of the page, names as text.

import type { CallGraph } from './call-graph.ts';
import type { Ink } from './draw.ts';
import type { GraphPlaces, Point } from './graph-layout.ts';
import { escape } from './svg.ts';

/** Text sizes in pixels: of the values in a box, and of the value beside a line. */
export const VALUE_TEXT = 11;
const CALL_TEXT = 10;
/** Space between the text of a box and its border, and around the whole graph. */
export const PAD = 8;
export const MARGIN = 16;
/** A call below this share of the total has no value beside its line. */
export const TOLD = 0.03;
const HEAD = 28;

/** The box of a function. */
export interface GraphBox {
  /** The shown name, and the full name. */
  name: string;
  full: string;
  /** Text size of the name in pixels. */
  size: number;
  width: number;
  height: number;
}

export interface DrawnGraph {
  graph: CallGraph;
  places: GraphPlaces;
  boxes: readonly GraphBox[];
}

export interface GraphStill extends DrawnGraph {
  /** Total of the profile. */
  sum: number;
  colour: (name: number) => string;
  ink: Ink;
  title: string;
  amount: (value: number) => string;
  share: (share: number) => string;
}

/** Returns the baseline of a line of text in a box. */
export const textAt = (size: number, line: number): number => PAD + size + line * (VALUE_TEXT + 4) - (line === 0 ? 3 : 0);

/** Returns the width of the line of a call in pixels. */
export const strokeOf = (share: number): number => 1 + 6 * Math.min(1, share);

export function graphSvg({ graph, places, boxes, sum, colour, ink, title, amount, share }: GraphStill): string {
  const [width, height] = [places.width + 2 * MARGIN, places.height + 2 * MARGIN + HEAD];
  const calls = graph.calls.map((call, index) => {
    const path = places.paths[index]!;
    const part = sum > 0 ? call.value / sum : 0;
    const at = middleOf(path);
    const told = part >= TOLD ? `<text x="${at.x}" y="${at.y}" font-size="${CALL_TEXT}" text-anchor="middle" fill="${ink.faint}">${escape(amount(call.value))}</text>` : '';
    const words = `${boxes[call.from]!.full} → ${boxes[call.to]!.full}: ${amount(call.value)}, ${share(part)}`;
    return `<g><title>${escape(words)}</title><path d="${curve(path)}" fill="none" stroke="${ink.faint}" stroke-opacity="0.6" stroke-width="${round(strokeOf(part))}"${call.over ? ' stroke-dasharray="6 4"' : ''}/><path d="${arrow(path, part)}" fill="${ink.faint}"/>${told}</g>`;
  });
  const nodes = graph.nodes.map(({ name, self, total }, index) => {
    const box = boxes[index]!;
    const text = (line: number, size: number, words: string): string => `<text x="${round(box.width / 2)}" y="${round(textAt(box.size, line))}" font-size="${round(size)}" text-anchor="middle" fill="${ink.text}">${escape(words)}</text>`;
    const values = [`self ${amount(self)} ${share(self / sum)}`, `total ${amount(total)} ${share(total / sum)}`] as const;
    return `<g transform="translate(${round(places.x[index]!)} ${round(places.y[index]!)})"><title>${escape(`${box.full}\n${values.join('\n')}`)}</title>`
      + `<rect width="${round(box.width)}" height="${round(box.height)}" rx="4" fill="${colour(name)}" stroke="${ink.faint}" stroke-opacity="0.5"/>${text(0, box.size, box.name)}${text(1, VALUE_TEXT, values[0])}${text(2, VALUE_TEXT, values[1])}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${round(height)}" width="${round(width)}" height="${round(height)}" font-family="monospace">`,
    `<rect width="${round(width)}" height="${round(height)}" fill="${ink.paper}"/>`,
    `<text x="${MARGIN}" y="20" font-size="13" fill="${ink.text}">${escape(title)}</text>`,
    `<g transform="translate(${MARGIN} ${MARGIN + HEAD})">`,
    ...calls,
    ...nodes,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Returns the path of a line through points, vertical at both ends. */
export function curve(points: readonly Point[]): string {
  const parts = [`M${round(points[0]!.x)} ${round(points[0]!.y)}`];
  for (let at = 1; at < points.length; at += 1) {
    const [from, to] = [points[at - 1]!, points[at]!];
    const bow = (to.y - from.y) / 2;
    parts.push(`C${round(from.x)} ${round(from.y + bow)} ${round(to.x)} ${round(to.y - bow)} ${round(to.x)} ${round(to.y)}`);
  }
  return parts.join('');
}

/** Returns the path of the arrowhead at the end of a line. */
export function arrow(points: readonly Point[], share: number): string {
  const size = 4 + 4 * Math.min(1, share);
  const [before, { x, y }] = [points.at(-2)!, points.at(-1)!];
  const back = Math.sign(y - before.y || 1) * size * 1.6;
  return `M${round(x)} ${round(y)}L${round(x - size * 0.7)} ${round(y - back)}L${round(x + size * 0.7)} ${round(y - back)}Z`;
}

/** Returns the position of the value of a call. */
export function middleOf(points: readonly Point[]): { x: number; y: number } {
  const at = Math.max(1, Math.floor(points.length / 2));
  return { x: round((points[at - 1]!.x + points[at]!.x) / 2), y: round((points[at - 1]!.y + points[at]!.y) / 2) };
}

const round = (value: number): number => Math.round(value * 10) / 10;
