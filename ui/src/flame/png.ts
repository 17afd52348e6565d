// The flame graph as a PNG file with all levels, not only the visible ones.

import { draw, FONT_SIZE, ROW, TextMeasure, type Paint, type Picture } from './draw.ts';
import type { Flame } from './layout.ts';

/** Maximum side of the canvas in pixels; browsers refuse much larger ones. Deeper levels are cut. */
const MOST = 16_384;
/** Width in CSS pixels. */
const WIDTH = 1600;

/** The properties of a picture that do not depend on the canvas. */
export type Still = Omit<Picture, 'text' | 'width' | 'height' | 'scroll' | 'hoverNode' | 'hoverName'>;

export interface Png {
  blob: Blob;
  /** Number of levels that did not fit. */
  cut: number;
}

export async function png(still: Still, fontFamily: string): Promise<Png> {
  const ratio = Math.min(2, Math.max(1, devicePixelRatio || 1));
  const levels = Math.max(1, Math.min(still.flame.depth, Math.floor(MOST / ratio / ROW)));
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(WIDTH * ratio);
  canvas.height = Math.round(levels * ROW * ratio);
  const context = canvas.getContext('2d', { alpha: false });
  if (!context) throw new Error('the browser does not support a canvas of this size');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const text = new TextMeasure(context, `${FONT_SIZE}px ${fontFamily}`);
  draw(context, { ...still, text, width: WIDTH, height: levels * ROW, scroll: still.flip ? (still.flame.depth - levels) * ROW : 0, hoverNode: -1, hoverName: -1 });
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve));
  if (!blob) throw new Error('the browser cannot encode the PNG');
  return { blob, cut: still.flame.depth - levels };
}

/** Returns the zoomed flame graph without search, selection or hover. */
export function still(flame: Flame, focus: number, flip: boolean, paint: Paint): Omit<Still, 'ink'> {
  const from = flame.start[focus] ?? 0;
  return { flame, from, to: from + (flame.total[focus] ?? 0), flip, focus, paint, matched: null, selectedName: -1, currentNode: -1 };
}
