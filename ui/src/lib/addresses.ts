// Addresses at which the server returns all stacks of a query as pprof, for programs that can only send GET requests.

import { BASE } from './base.ts';
import type { Range } from './time.ts';

/** Returns the path on this server. */
export function pprofPath(type: string, selector: string, range: Range): string {
  const params = new URLSearchParams({ query: `${type}${selector}`, from: String(Math.floor(range.start)), until: String(Math.ceil(range.end)), format: 'pprof' });
  return `${BASE}pyroscope/render?${params}`;
}

/** Returns a command line for a shell. The parameters cannot contain an apostrophe, because it is encoded. */
export function goToolPprof(type: string, selector: string, range: Range, origin: string = location.origin): string {
  return `go tool pprof '${origin}${pprofPath(type, selector, range)}'`;
}
