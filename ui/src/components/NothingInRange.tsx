// Nothing in this range, and the nearest range that has something.

import { Show } from 'solid-js';
import { formatRange } from '../lib/format.ts';
import { absolute, type Range } from '../lib/time.ts';
import { Notice } from './Notice.tsx';

export interface NothingInRangeProps {
  what?: string;
  /** Null when there is none, undefined when nobody knows. */
  nearest: Range | null | undefined;
  onRange: (range: { from: string; until: string }) => void;
}

export function NothingInRange(props: NothingInRangeProps) {
  return (
    <Notice
      icon="clock"
      title={props.what ?? 'Nothing in this range'}
      actions={
        <>
          <Show when={props.nearest}>
            {(range) => <button type="button" class="button primary" onClick={() => props.onRange(absolute(range()))}>Show {formatRange(range())}</button>}
          </Show>
          <button type="button" class="button" onClick={() => props.onRange({ from: 'now-1h', until: 'now' })}>Last hour</button>
          <button type="button" class="button" onClick={() => props.onRange({ from: 'now-1d', until: 'now' })}>Last 24 hours</button>
        </>
      }
    >
      <p>{props.nearest ? 'The nearest profiles are from another time.' : props.nearest === null ? 'No profiles of the last 30 days were found either. Check that the collector runs and sends.' : 'Try another range.'}</p>
    </Notice>
  );
}
