// Finds a source file in a folder of this machine by the end of the file's path, and returns the lines of a function in it. Also finds
// the page of a source file in a repository.

import type { FunctionLines, LineValue } from './pprof-lines.ts';

/** A file with its path, which begins with the name of the chosen folder. */
export interface Placed {
  path: string;
}

/** Files by their base name. */
export type FileIndex<T extends Placed> = ReadonlyMap<string, readonly T[]>;

/** A line with its text; empty if the text is not known. */
export interface SourceLine extends LineValue {
  text: string;
}

/** Number of lines that are shown before the first and after the last line with a value. */
const AROUND = 5;

/** Splits a path into folders and file. Versions of modules (`shop@v1.2.0`) are removed. */
const partsOf = (path: string): string[] => path.split(/[\\/]+/).filter((part) => part !== '' && part !== '.').map((part) => part.replace(/(?<=.)@.*$/, ''));

export function indexFiles<T extends Placed>(files: Iterable<T>): FileIndex<T> {
  const index = new Map<string, T[]>();
  for (const file of files) {
    const name = partsOf(file.path).at(-1) ?? '';
    const others = index.get(name);
    if (others) others.push(file);
    else index.set(name, [file]);
  }
  return index;
}

/** Returns the files whose paths have the longest end in common with a path from a profile, the shortest path first. */
export function nearestFiles<T extends Placed>(index: FileIndex<T>, wanted: string): readonly T[] {
  const parts = partsOf(wanted).reverse();
  const scored = (index.get(parts[0] ?? '') ?? []).map((file) => {
    const its = partsOf(file.path).reverse();
    const differs = parts.findIndex((part, at) => its[at] !== part);
    return { file, score: differs < 0 ? parts.length : differs };
  });
  const most = Math.max(0, ...scored.map(({ score }) => score));
  return scored.filter(({ score }) => score === most).map(({ file }) => file).sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
}

/** Returns the lines of a function with the text around them, including lines without a value. */
export function sourceLines({ lines }: FunctionLines, text: readonly string[]): SourceLine[] {
  const byLine = new Map(lines.map((line) => [line.line, line]));
  const known = lines.filter(({ line }) => line > 0);
  const out: SourceLine[] = lines.filter(({ line }) => line === 0).map((line) => ({ ...line, text: '' }));
  if (known.length === 0) return out;
  const last = Math.max(known.at(-1)!.line, Math.min(known.at(-1)!.line + AROUND, text.length));
  for (let line = Math.max(1, known[0]!.line - AROUND); line <= last; line += 1) {
    out.push({ ...(byLine.get(line) ?? { line, self: 0, total: 0 }), text: text[line - 1] ?? '' });
  }
  return out;
}

/** The source repository, as named by the labels of a profile. */
export interface Repository {
  /** Address of the repository, from the label `service_repository`. */
  url: string;
  /** Commit, tag or branch, from the label `service_git_ref`. */
  ref: string;
}

/** Returns the address of the web page that shows a line of a file in its repository; null if the path inside the repository is not known. */
export function repositoryPage(file: string, line: number, { url, ref }: Repository): string | null {
  let home: URL;
  try {
    home = new URL(url.replace(/\.git$/, ''));
  } catch {
    return null;
  }
  if (home.protocol !== 'https:' || home.username !== '' || home.password !== '') return null;
  const inside = pathInside(file, `${home.host}${home.pathname.replace(/\/$/, '')}`);
  if (inside === null) return null;
  const tree = home.host.includes('gitlab') ? '/-/blob/' : '/blob/';
  const escaped = [...(ref || 'HEAD').split('/'), ...inside].map(encodeURIComponent).join('/');
  return `${home.origin}${home.pathname.replace(/\/$/, '')}${tree}${escaped}${line > 0 ? `#L${line}` : ''}`;
}

/**
 * Returns the path of a file inside its repository: the part after the address of the repository, as in a path of a Go module, or the
 * whole path if it is relative to the root. Null if the path inside the repository is not known.
 */
function pathInside(file: string, module: string): string[] | null {
  const parts = partsOf(file);
  const at = `/${parts.join('/')}/`.indexOf(`/${module}/`);
  if (at >= 0) {
    const inside = `/${parts.join('/')}`.slice(at + module.length + 2).split('/');
    return inside[0] === '' ? null : inside;
  }
  // From an absolute path, or from a file of another Go module, the path inside the repository cannot be derived.
  if (/^([\\/]|[A-Za-z]:)/.test(file) || file.endsWith('.go') || parts.includes('..') || parts.length === 0) return null;
  return parts;
}
