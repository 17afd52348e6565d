// The text of source files in a folder that the user has chosen. The browser reads the folder, does not send it to any server, and does not
// store it.

import { createMemo, createSignal, type Accessor } from 'solid-js';
import { labelValues } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { indexFiles, nearestFiles, type FileIndex, type Placed, type Repository } from '../lib/source-files.ts';
import type { Query } from './selection.ts';

export interface SourceFile extends Placed {
  file: File;
}

export interface SourceFolder {
  name: string;
  count: number;
  index: FileIndex<SourceFile>;
}

export interface Source {
  /** Files that match the path, the best match first. */
  files: Accessor<readonly SourceFile[]>;
  shown: Accessor<SourceFile | undefined>;
  choose: (path: string) => void;
  /** The lines of the shown file, once they are read. */
  lines: Accessor<readonly string[] | undefined>;
  error: Accessor<Error | undefined>;
}

/** Maximum size of a source file; larger files were not written by hand. */
const MOST_BYTES = 8 * 2 ** 20;

const [folder, setFolder] = createSignal<SourceFolder | null>(null);
export { folder };

/** Opens a folder from the list of its files that the browser returns. */
export function takeFolder(files: readonly File[]): void {
  const placed = files.map((file): SourceFile => ({ file, path: file.webkitRelativePath || file.name }));
  setFolder(placed.length === 0 ? null : { name: placed[0]!.path.split('/')[0] ?? '', count: placed.length, index: indexFiles(placed) });
}

export const closeFolder = (): void => void setFolder(null);

/** Finds and reads the source file that a profile names. */
export function createSource(name: Accessor<string>): Source {
  const files = createMemo(() => (name() === '' ? [] : nearestFiles(folder()?.index ?? new Map<string, SourceFile[]>(), name())));
  const [chosen, choose] = createSignal('');
  const shown = createMemo(() => files().find(({ path }) => path === chosen()) ?? files()[0]);
  const read = createLoader(() => shown() ?? null, async (of) => {
    if (of.file.size > MOST_BYTES) throw new Error(`${of.path} is larger than ${MOST_BYTES / 2 ** 20} MiB`);
    return { of, lines: (await of.file.text()).split(/\r\n|\n|\r/) };
  });
  // While another file is read, no text is shown, and in particular not the text of the previous file.
  const lines = createMemo(() => (read.data()?.of === shown() ? read.data()?.lines : undefined));
  return { files, shown, choose, lines, error: read.error };
}

/** Returns the repository of the profiles of a query, if their labels name exactly one. */
export const createRepository = (of: Accessor<Query | null>): Loader<Repository | null> => createLoader(of, async ({ selector, range }, signal) => {
  const [urls, refs] = await Promise.all(['service_repository', 'service_git_ref'].map((label) => labelValues(label, selector, range, signal)));
  return urls?.length === 1 ? { url: urls[0]!, ref: refs?.length === 1 ? refs[0]! : '' } : null;
});
