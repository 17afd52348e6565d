// The notice for a range without profiles. It offers the nearest range with profiles.

import { Show } from 'solid-js';
import { formatRange } from '../lib/format.ts';
import { absolute, type Range } from '../lib/time.ts';
import { Notice } from './Notice.tsx';

export interface NothingInRangeProps {
  what?: string;
  /** The nearest range with profiles; null if there is none, undefined if it is not known. */
  nearest: Range | null | undefined;
  onRange: (range: { from: string; until: string }) => void;
}

export function NothingInRange(props: NothingInRangeProps) {
  return (
    <Notice
      icon="clock"
      title={props.what ?? 'No profiles in this range'}
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
      <p>{props.nearest ? 'The nearest profiles are outside this range.' : props.nearest === null ? 'The last 30 days have no profiles either. Check that the collector runs and sends profiles.' : 'Try another range.'}</p>
    </Notice>
  );
}
