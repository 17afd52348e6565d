// Draws the visible part of a flame graph on a canvas. Frames narrower than half a pixel are merged into strips, and a binary search skips
// runs of such frames. So the cost depends on the number of pixels and not on the number of nodes.

import { firstEndingAfter, type Flame } from './layout.ts';
import { shortName } from './packages.ts';

export const ROW = 20;
/** Font size of the names in pixels. */
export const FONT_SIZE = 12;

/** The look of frames. */
export interface Paint {
  /** Returns the colour of a node. */
  colour: (node: number) => string;
  /** Returns a sign before the name of a node, such as `+` for new, or an empty text. */
  sign: (node: number) => string;
}

export interface Picture {
  flame: Flame;
  /** Left and right edge of the visible part, in the unit of `flame.total`. */
  from: number;
  to: number;
  /** Size in CSS pixels. */
  width: number;
  height: number;
  /** Pixels scrolled down. */
  scroll: number;
  /** True if the root is at the bottom. */
  flip: boolean;
  /** The zoomed node. Frames above it are shown as its callers. */
  focus: number;
  paint: Paint;
  /** 1 for each name that the search matches; null without a search. */
  matched: Uint8Array | null;
  hoverNode: number;
  hoverName: number;
  selectedName: number;
  /** The current match of the search, -1 for none. */
  currentNode: number;
  ink: Ink;
  text: TextMeasure;
}

export interface Ink {
  text: string;
  /** Text on greyed frames. */
  faint: string;
  paper: string;
  grey: string;
  mark: string;
  hover: string;
}

/** Measures a text by the sum of the widths of its characters. The width of each character is measured once. */
export class TextMeasure {
  readonly font: string;
  private readonly ascii = new Float32Array(128);
  private readonly others = new Map<string, number>();
  private readonly names = new Map<string, number>();
  private readonly context: CanvasRenderingContext2D;

  constructor(context: CanvasRenderingContext2D, font: string) {
    this.context = context;
    this.font = font;
    context.font = font;
    for (let code = 32; code < 127; code += 1) this.ascii[code] = context.measureText(String.fromCharCode(code)).width;
  }

  private char(char: string): number {
    const code = char.charCodeAt(0);
    if (code < 128) return this.ascii[code]!;
    let width = this.others.get(char);
    if (width === undefined) {
      width = this.context.measureText(char).width;
      this.others.set(char, width);
    }
    return width;
  }

  width(text: string): number {
    let width = this.names.get(text);
    if (width === undefined) {
      width = 0;
      for (const char of text) width += this.char(char);
      this.names.set(text, width);
    }
    return width;
  }

  /** Returns the name, its short form, or the beginning of the short form, as the width allows; empty if too few characters would fit. */
  fit(name: string, room: number): string {
    if (room < 14) return '';
    if (this.width(name) <= room) return name;
    const short = shortName(name);
    if (this.width(short) <= room) return short;
    const dots = this.char('…');
    let used = dots;
    let length = 0;
    for (const char of short) {
      used += this.char(char);
      if (used > room) break;
      length += char.length;
    }
    return length >= 2 ? `${short.slice(0, length)}…` : '';
  }
}

/** Returns the top of a level on the canvas. */
export function rowTop(level: number, picture: Pick<Picture, 'flip' | 'scroll' | 'flame' | 'height'>): number {
  if (!picture.flip) return level * ROW - picture.scroll;
  const content = Math.max(picture.height, picture.flame.depth * ROW);
  return content - (level + 1) * ROW - picture.scroll;
}

/** Returns the level at a position on the canvas. */
export function levelAt(y: number, picture: Pick<Picture, 'flip' | 'scroll' | 'flame' | 'height'>): number {
  if (!picture.flip) return Math.floor((y + picture.scroll) / ROW);
  const content = Math.max(picture.height, picture.flame.depth * ROW);
  return Math.floor((content - y - picture.scroll) / ROW);
}

/** Draws the visible part, and returns the number of rectangles. */
export function draw(context: CanvasRenderingContext2D, picture: Picture): number {
  const { flame, width, height, from, to, ink } = picture;
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, width, height);
  if (flame.count === 0 || to <= from) return 0;
  const scale = width / (to - from);
  const half = 0.5 / scale;
  context.font = picture.text.font;
  context.textBaseline = 'middle';
  let rectangles = 0;

  for (let level = 0; level < flame.depth; level += 1) {
    const top = rowTop(level, picture);
    if (top + ROW <= 0 || top >= height) continue;
    const end = flame.levelStart[level + 1]!;
    let node = firstEndingAfter(flame, level, from);
    // A strip collects neighbours that are too narrow to be visible alone.
    let stripFrom = -1;
    let stripTo = -1;
    // The node that sets the colour of the strip: the first match, else the largest node; -1 for none.
    let stripNode = -1;
    let stripLargest = 0;
    let stripMatched = false;
    const flush = (): void => {
      if (stripFrom < 0) return;
      const grey = picture.matched !== null && !stripMatched;
      context.fillStyle = grey || stripNode < 0 ? ink.grey : picture.paint.colour(stripNode);
      context.globalAlpha = grey ? 1 : 0.75;
      const wide = Math.max(0.5, stripTo - stripFrom);
      context.fillRect(stripFrom, top, wide, ROW - 1);
      context.globalAlpha = 1;
      if (stripMatched) underline(context, ink, stripFrom, top, wide);
      rectangles += 1;
      stripFrom = -1;
    };
    while (node < end) {
      const start = flame.start[node]!;
      if (start >= to) break;
      const total = flame.total[node]!;
      const left = (start - from) * scale;
      if (total < half) {
        const next = firstAfter(flame, node, end, start + half);
        if (stripFrom >= 0 && left - stripTo > 1) flush();
        if (stripFrom < 0) {
          stripFrom = left;
          stripNode = -1;
          stripLargest = -1;
          stripMatched = false;
        }
        stripTo = left + Math.max(0.5, total * scale);
        if (total > stripLargest && !stripMatched) {
          stripLargest = total;
          stripNode = node;
        }
        if (picture.matched && !stripMatched) {
          for (let at = node; at < next && !stripMatched; at += 1) {
            if (picture.matched[flame.name[at]!] !== 1) continue;
            stripMatched = true;
            stripNode = at;
          }
        }
        node = next;
        continue;
      }
      flush();
      rectangles += 1;
      frame(context, picture, node, Math.max(0, left), Math.min(width, left + total * scale), top);
      node += 1;
    }
    flush();
  }
  outline(context, picture, scale);
  return rectangles;
}

/** Returns the first node after `node` that ends after `x`. */
function firstAfter(flame: Flame, node: number, end: number, x: number): number {
  let at = node + 1;
  // Most runs are short, so a few nodes are checked before the binary search.
  for (let tries = 0; tries < 4; tries += 1, at += 1) {
    if (at >= end || flame.start[at]! + flame.total[at]! > x) return Math.min(at, end);
  }
  let high = end;
  while (at < high) {
    const middle = (at + high) >>> 1;
    if (flame.start[middle]! + flame.total[middle]! > x) high = middle;
    else at = middle + 1;
  }
  return at;
}

function frame(context: CanvasRenderingContext2D, picture: Picture, node: number, left: number, right: number, top: number): void {
  const { flame, ink, matched } = picture;
  const name = flame.name[node]!;
  // A line of background separates neighbours, unless the frame is too narrow for it.
  const wide = right - left;
  const shown = wide > 3 ? wide - 1 : wide;
  const grey = matched !== null && matched[name] === 0;
  const caller = flame.start[node]! < picture.from || flame.start[node]! + flame.total[node]! > picture.to;
  context.fillStyle = grey ? ink.grey : picture.paint.colour(node);
  if (caller) context.globalAlpha = 0.55;
  context.fillRect(left, top, shown, ROW - 1);
  if (caller) context.globalAlpha = 1;
  if (matched !== null && !grey) underline(context, ink, left, top, shown);
  if (!grey && (name === picture.hoverName || name === picture.selectedName)) {
    context.fillStyle = ink.hover;
    context.fillRect(left, top, shown, ROW - 1);
  }
  if (wide < 18) return;
  const sign = picture.paint.sign(node);
  const before = sign === '' ? '' : `${sign} `;
  const label = picture.text.fit(flame.names[name]!, wide - 8 - picture.text.width(before));
  if (label === '' && before === '') return;
  context.fillStyle = grey ? ink.faint : ink.text;
  context.fillText(before + label, left + 4, top + ROW / 2);
}

/** Underlines a match, because runtime frames are nearly as grey as frames that do not match. */
function underline(context: CanvasRenderingContext2D, ink: Ink, left: number, top: number, width: number): void {
  context.fillStyle = ink.mark;
  context.fillRect(left, top + ROW - 3, width, 2);
}

function outline(context: CanvasRenderingContext2D, picture: Picture, scale: number): void {
  const { flame, from, width } = picture;
  const box = (node: number, colour: string, line: number): void => {
    if (node < 0 || node >= flame.count) return;
    const left = Math.max(0, (flame.start[node]! - from) * scale);
    const right = Math.min(width, (flame.start[node]! + flame.total[node]! - from) * scale);
    if (right <= 0 || left >= width) return;
    const top = rowTop(flame.level[node]!, picture);
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(left + line / 2, top + line / 2, Math.max(1, right - left - line - 1), ROW - 1 - line);
  };
  box(picture.currentNode, picture.ink.mark, 2);
  box(picture.hoverNode, picture.ink.text, 1);
}
