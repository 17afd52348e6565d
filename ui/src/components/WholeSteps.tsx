// Which time shares are of: a chart has whole steps, so that the one which is running is not in them yet.

import { Show } from 'solid-js';
import { formatClock, formatSpan } from '../lib/format.ts';
import { wholeSteps } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

/** `step` in seconds. */
export function WholeSteps(props: { range: Range; step: number }) {
  const end = (): number => wholeSteps(props.range, props.step).end;
  return (
    <Show when={props.range.end - end() >= 1000}>
      <p class="muted whole-steps">Shares are of whole steps of {formatSpan(props.step * 1000)}: what came after {formatClock(end(), true)} is not in them yet.</p>
    </Show>
  );
}
