// A small chart without axes: one line over time. A time without data is a gap in the line.

import { createMemo } from 'solid-js';
import type { Range } from '../lib/time.ts';

export function Spark(props: { points: readonly (readonly [number, number])[]; range: Range; step: number; label: string; class?: string }) {
  const paths = createMemo(() => {
    const { start, end } = props.range;
    const max = Math.max(...props.points.map(([, value]) => value), 1e-12);
    const x = (ms: number): string => (((ms - start) / (end - start)) * 100).toFixed(2);
    const y = (value: number): string => (35 - (value / max) * 33).toFixed(2);
    let line = '';
    let area = '';
    let run: (readonly [number, number])[] = [];
    const flush = (): void => {
      if (run.length === 0) return;
      const text = run.map(([ms, value]) => `${x(ms)} ${y(value)}`).join('L');
      line += `M${text}${run.length === 1 ? 'h0.8' : ''}`;
      area += `M${x(run[0]![0])} 36L${text}L${x(run[run.length - 1]![0])} 36Z`;
      run = [];
    };
    for (const point of props.points) {
      if (run.length > 0 && point[0] - run[run.length - 1]![0] > props.step * 1500) flush();
      run.push(point);
    }
    flush();
    return { line, area };
  });
  return (
    <svg class={`spark ${props.class ?? ''}`} viewBox="0 0 100 36" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <path class="area" d={paths().area} />
      <path class="line" d={paths().line} />
    </svg>
  );
}
