// The entries of the live debugging stream: the data that passes through a component.
// In: JSON of one entry. Out: a plain value, and its summary in one line.

import { formatValue } from '../lib/format.ts';

export type Labels = Record<string, string>;

export interface Step {
  rule: number;
  action: string;
  dropped: boolean;
  set: Labels;
  removed: string[];
}

interface Stamp {
  /** Sequence number, the identity of a row. */
  number: number;
  time: number;
}

interface Ended {
  bytes: number;
  seconds: number;
  ok: boolean;
  outcome: string;
  error: string;
}

export type Entry = Stamp &
  (
    | { kind: 'target'; labels: Labels }
    | { kind: 'relabel'; of: string; before: Labels; after: Labels | null; steps: Step[] }
    | { kind: 'profile'; labels: Labels; type: string; bytes: number; samples: number | null }
    | ({ kind: 'scrape'; url: string; type: string } & Ended)
    | ({ kind: 'write'; endpoint: string; profiles: number } & Ended)
    | { kind: 'lost'; count: number }
    /** An entry of an unknown kind, from a newer collector. */
    | { kind: 'other'; text: string }
  );

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
const object = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {});
const labels = (value: unknown): Labels => Object.fromEntries(Object.entries(object(value)).map(([name, value]) => [name, text(value)]));
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export function readEntry(value: unknown, place: number, now: number): Entry {
  const fields = object(value);
  const time = Date.parse(text(fields.time));
  const stamp = { number: place, time: Number.isNaN(time) ? now : time };
  const ended = { bytes: number(fields.bytes), seconds: number(fields.seconds), ok: fields.ok === true, outcome: text(fields.outcome), error: text(fields.error) };
  switch (fields.kind) {
    case 'target':
      return { ...stamp, kind: 'target', labels: labels(fields.labels) };
    case 'relabel':
      return {
        ...stamp,
        kind: 'relabel',
        of: text(fields.of),
        before: labels(fields.before),
        after: fields.after === null || fields.after === undefined ? null : labels(fields.after),
        steps: list(fields.steps).map((step) => {
          const { rule, action, dropped, set, removed } = object(step);
          return { rule: number(rule), action: text(action), dropped: dropped === true, set: labels(set), removed: list(removed).map(text) };
        }),
      };
    case 'profile':
      return { ...stamp, kind: 'profile', labels: labels(fields.labels), type: text(fields.profileType), bytes: number(fields.bytes), samples: typeof fields.samples === 'number' ? fields.samples : null };
    case 'scrape':
      return { ...stamp, ...ended, kind: 'scrape', url: text(fields.url), type: text(fields.profileType) };
    case 'write':
      return { ...stamp, ...ended, kind: 'write', endpoint: text(fields.endpoint), profiles: number(fields.profiles) };
    case 'lost':
      return { ...stamp, kind: 'lost', count: number(fields.count) };
    default:
      return { ...stamp, kind: 'other', text: JSON.stringify(value) ?? '' };
  }
}

/** Returns the label value by which users recognize a target or profile. */
function nameOf(set: Labels): string {
  return set.service_name || set.__address__ || set.instance || Object.values(set)[0] || '{}';
}

const plural = (count: number, one: string): string => `${formatValue(count, 'count')} ${one}${count === 1 ? '' : 's'}`;

/** Returns the summary of an entry in one line. */
export function summary(entry: Entry): string {
  switch (entry.kind) {
    case 'target':
      return `${entry.labels.__address__ ?? nameOf(entry.labels)} · ${plural(Object.keys(entry.labels).length, 'label')}`;
    case 'relabel': {
      const name = entry.before.__address__ || nameOf(entry.before);
      const last = entry.steps[entry.steps.length - 1];
      if (entry.after === null) return last?.dropped ? `${name} dropped by rule ${last.rule + 1} (${last.action})` : `${name} dropped: no labels left`;
      if (entry.steps.length === 0) return `${name} unchanged`;
      return `${name} changed by ${entry.steps.length === 1 ? 'rule' : 'rules'} ${entry.steps.map(({ rule }) => rule + 1).join(', ')}`;
    }
    case 'profile':
      return `${entry.type || 'profile'} · ${formatValue(entry.bytes, 'bytes')}${entry.samples === null ? '' : ` · ${plural(entry.samples, 'sample')}`} · ${nameOf(entry.labels)}`;
    case 'scrape':
      return `${entry.type} from ${entry.url} ${entry.outcome}${entry.ok ? ` · ${formatValue(entry.bytes, 'bytes')}` : `: ${entry.error}`} · ${formatValue(entry.seconds * 1e9, 'ns')}`;
    case 'write':
      return `${plural(entry.profiles, 'profile')}, ${formatValue(entry.bytes, 'bytes')}, to ${entry.endpoint} ${entry.outcome}${entry.ok ? '' : `: ${entry.error}`} · ${formatValue(entry.seconds * 1e9, 'ns')}`;
    case 'lost':
      return `${formatValue(entry.count, 'count')} ${entry.count === 1 ? 'entry was' : 'entries were'} dropped because they arrived faster than this page reads them. Choose a smaller share of entries.`;
    case 'other':
      return entry.text;
  }
}

/** True for dropped entries and for failed scrapes and writes. */
export function isBad(entry: Entry): boolean {
  return entry.kind === 'lost' || ((entry.kind === 'scrape' || entry.kind === 'write') && !entry.ok);
}

/** Returns the whole entry as text, for the filter. */
export const searchable = (entry: Entry): string => `${entry.kind} ${summary(entry)} ${JSON.stringify(entry)}`.toLowerCase();

/** The last entries, at most `most` of them. */
export class Tail {
  readonly #most: number;
  #entries: Entry[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(entries: readonly Entry[]): void {
    this.#entries = [...this.#entries, ...entries].slice(-this.#most);
  }

  clear(): void {
    this.#entries = [];
  }

  /** Returns the entries, the newest first. */
  list(): Entry[] {
    return [...this.#entries].reverse();
  }
}
