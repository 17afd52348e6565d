// Copies a shell command that opens the shown profile in `go tool pprof`.

import { goToolPprof } from './addresses.ts';
import { copyText } from './clipboard.ts';
import type { Range } from './time.ts';
import { say } from './toast.ts';

/** Copies a command line that makes `go tool pprof` fetch all stacks of a query. */
export async function copyGoToolPprof(type: string, selector: string, range: Range): Promise<void> {
  say((await copyText(goToolPprof(type, selector, range))) ? 'Copied' : 'The browser did not allow copying');
}
