// The time zone of shown and typed times: the browser's zone, or UTC. The browser remembers the choice.

import { createSignal } from 'solid-js';
import { recall, remember } from './stored.ts';

export type Zone = 'local' | 'utc';

const [zone, setZoneSignal] = createSignal<Zone>(recall('zone') === 'utc' ? 'utc' : 'local');
export { zone };

export function setZone(next: Zone): void {
  remember('zone', next);
  setZoneSignal(next);
}

/** Returns a date whose UTC fields are the time of day in the zone. */
export function inZone(ms: number): Date {
  return new Date(zone() === 'utc' ? ms : ms - new Date(ms).getTimezoneOffset() * 60_000);
}

/** Returns the name of the zone at a time, because daylight saving changes it: `UTC`, `UTC+5:30`. */
export function zoneName(ms: number): string {
  const minutes = zone() === 'utc' ? 0 : -new Date(ms).getTimezoneOffset();
  if (minutes === 0) return 'UTC';
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? '-' : '+'}${Math.floor(Math.abs(minutes) / 60)}${rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`}`;
}

/** Formats a time for `<input type="datetime-local">`. */
export const toInput = (ms: number): string => inZone(ms).toISOString().slice(0, 19);

/** Parses the text of an `<input type="datetime-local">` to milliseconds; NaN if the text is not a time. */
export const fromInput = (text: string): number => Date.parse(zone() === 'utc' ? `${text}Z` : text);
