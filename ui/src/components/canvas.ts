// A canvas that fills its box at the resolution of the screen. It is redrawn only when its content has changed, and at most
// once per frame.

import { createEffect, createSignal, on, onCleanup, onMount, type Accessor } from 'solid-js';
import { printing } from '../lib/printing.ts';

export interface Size {
  width: number;
  height: number;
}

export interface CanvasParts {
  /** The box and the canvas; both exist once the component is mounted. */
  box: () => HTMLElement;
  canvas: () => HTMLCanvasElement;
  paint: (context: CanvasRenderingContext2D, size: Size) => void;
  /** Reads every signal that `paint` depends on. */
  watch: () => void;
}

/** Sizes and paints the canvas. Returns its size in CSS pixels, which is 0 by 0 until it is known. */
export function createCanvas(parts: CanvasParts): Accessor<Size> {
  const [size, setSize] = createSignal<Size>({ width: 0, height: 0 });
  onMount(() => {
    const box = parts.box();
    const canvas = parts.canvas();
    const context = canvas.getContext('2d', { alpha: false });
    if (!context) return;
    let requested = 0;
    const paint = (): void => {
      requested = 0;
      if (size().width > 0) parts.paint(context, size());
    };
    const resize = (): void => {
      const [width, height, ratio] = [box.clientWidth, box.clientHeight, devicePixelRatio || 1];
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      setSize({ width, height });
      // A resized canvas is empty, so paint it at once instead of in the next frame.
      paint();
    };
    const observer = new ResizeObserver(resize);
    observer.observe(box);
    resize();
    createEffect(() => {
      parts.watch();
      requested ||= requestAnimationFrame(paint);
    });
    // The browser runs no animation frame between the start of printing and the print, so paint at once.
    createEffect(on(printing, paint, { defer: true }));
    onCleanup(() => {
      observer.disconnect();
      cancelAnimationFrame(requested);
    });
  });
  return size;
}
