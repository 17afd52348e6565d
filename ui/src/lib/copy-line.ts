// Lines for a shell that open what is shown in another program.

import { goToolPprof } from './addresses.ts';
import { copyText } from './clipboard.ts';
import type { Range } from './time.ts';
import { say } from './toast.ts';

/** Copies the line by which `go tool pprof` gets all stacks of a question. */
export async function copyGoToolPprof(type: string, selector: string, range: Range): Promise<void> {
  say((await copyText(goToolPprof(type, selector, range))) ? 'Copied' : 'The browser did not allow copying');
}
