// The state of the page as the URL holds it, and nothing else holds it: `v=1` and readable names.
// Unknown keys are kept as they are. What has its default value is left out, so that links stay short.

import { DEFAULT_FROM, DEFAULT_UNTIL } from './time.ts';

export type View = 'both' | 'flame' | 'table';
export type Sort = 'self' | 'total' | 'name' | '-self' | '-total' | '-name';

export interface UrlState {
  service: string;
  /** Profile type id. */
  type: string;
  /** Other matchers, the inside of a selector. */
  q: string;
  from: string;
  until: string;
  /** Label that splits the chart. */
  by: string;
  /** Path hash of the zoomed frame. */
  focus: string;
  search: string;
  view: View;
  /** Selected function. */
  sel: string;
  /** Filter text of the table or the grid. */
  filter: string;
  sort: string;
  /** `flame` draws the root at the bottom. */
  orient: 'icicle' | 'flame';
  /** Module whose graph is shown, empty for the root. */
  module: string;
  /** Part of the panel of a component. */
  tab: string;
  /** Health that components are filtered by. */
  health: string;
  /** Seconds between refreshes, 0 for none. */
  refresh: number;
  /** Keys of others, in their order. */
  extra: readonly (readonly [string, string])[];
}

export const DEFAULTS: UrlState = {
  service: '',
  type: '',
  q: '',
  from: DEFAULT_FROM,
  until: DEFAULT_UNTIL,
  by: '',
  focus: '',
  search: '',
  view: 'both',
  sel: '',
  filter: '',
  sort: '',
  orient: 'icicle',
  module: '',
  tab: '',
  health: '',
  refresh: 0,
  extra: [],
};

const TEXT = ['service', 'type', 'q', 'from', 'until', 'by', 'focus', 'search', 'view', 'sel', 'filter', 'sort', 'orient', 'module', 'tab', 'health'] as const;
const KEYS = new Set<string>(['v', ...TEXT, 'refresh']);

/** Reads the part behind `?`. Values that make no sense become their defaults. */
export function decodeState(query: string): UrlState {
  const params = new URLSearchParams(query);
  const state: UrlState = { ...DEFAULTS, extra: [...params].filter(([key]) => !KEYS.has(key)) };
  const text = state as unknown as Record<string, string>;
  for (const key of TEXT) text[key] = params.get(key) || (DEFAULTS[key] as string);
  if (!['both', 'flame', 'table'].includes(state.view)) state.view = 'both';
  if (!['icicle', 'flame'].includes(state.orient)) state.orient = 'icicle';
  const seconds = Number(/^(\d+)s?$/.exec(params.get('refresh') ?? '')?.[1] ?? 0);
  state.refresh = seconds > 0 ? Math.max(5, seconds) : 0;
  return state;
}

/** Writes the part behind `?`, without the `?`; empty when everything is at its default. */
export function encodeState(state: UrlState): string {
  const params = new URLSearchParams();
  for (const key of TEXT) if (state[key] !== DEFAULTS[key]) params.append(key, state[key]);
  if (state.refresh > 0) params.append('refresh', `${state.refresh}s`);
  for (const [key, value] of state.extra) params.append(key, value);
  const text = params.toString();
  if (text === '') return '';
  // `:` `,` `/` and `=` `{}` inside values are allowed in a query and make links readable.
  return `v=1&${text}`.replace(/%3A/g, ':').replace(/%2C/g, ',').replace(/%2F/g, '/').replace(/%7E/g, '~');
}
