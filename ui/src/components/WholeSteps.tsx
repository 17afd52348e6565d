// The note about the time range of the shares, that is, the percentages of the total. Shares cover whole steps of the chart, without the step that is still running.

import { Show } from 'solid-js';
import { formatClock, formatSpan } from '../lib/format.ts';
import { wholeSteps } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

/** The note; absent if the range ends with a whole step. `step` is in seconds. */
export function WholeSteps(props: { range: Range; step: number }) {
  const end = (): number => wholeSteps(props.range, props.step).end;
  return (
    <Show when={props.range.end - end() >= 1000}>
      <p class="muted whole-steps">Shares cover whole steps of {formatSpan(props.step * 1000)}. They do not yet include the time after {formatClock(end(), true)}.</p>
    </Show>
  );
}
