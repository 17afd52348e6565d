// Where the server has all stacks of a question as pprof, for whoever can only ask with GET.

import { BASE } from './base.ts';
import type { Range } from './time.ts';

/** The path on this server. */
export function pprofPath(type: string, selector: string, range: Range): string {
  const params = new URLSearchParams({ query: `${type}${selector}`, from: String(Math.floor(range.start)), until: String(Math.ceil(range.end)), format: 'pprof' });
  return `${BASE}pyroscope/render?${params}`;
}

/** A line for a shell. Parameters have no apostrophe: it is encoded. */
export function goToolPprof(type: string, selector: string, range: Range, origin: string = location.origin): string {
  return `go tool pprof '${origin}${pprofPath(type, selector, range)}'`;
}
