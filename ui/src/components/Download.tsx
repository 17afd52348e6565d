// The menu of downloads: all stacks as pprof, collapsed stacks or a speedscope file, and the flame graph as SVG or PNG.

import { INK } from '../flame/colours.ts';
import { png, type Still } from '../flame/png.ts';
import { svg } from '../flame/svg.ts';
import { mergedPprof } from '../lib/api.ts';
import { copyGoToolPprof } from '../lib/copy-line.ts';
import { collapsed, readStacks, type Stack } from '../lib/pprof-read.ts';
import { gzip, saveFile } from '../lib/pprof.ts';
import { dark } from '../lib/preferences.ts';
import { speedscope, speedscopeLink } from '../lib/speedscope.ts';
import { say } from '../lib/toast.ts';
import type { Query } from '../models/selection.ts';
import { Icon } from './Icon.tsx';
import { Menu, type Action } from './Menu.tsx';
import { Popover } from './Popover.tsx';

/** The flame graph to draw, without the ink, which follows the theme. */
export interface Drawing extends Omit<Still, 'ink'> {
  /** Title above the drawing. */
  title: string;
  /** Returns the values of a node as text. */
  values: (node: number) => string;
}

export interface DownloadProps {
  /** The queries whose stacks can be downloaded; each has a name if there are several. */
  queries: readonly { name: string; query: Query }[];
  /** Service name, the first part of the file names. */
  service: string;
  /** True once a flame graph is shown. */
  ready: boolean;
  /** Returns the drawing. Called only when the user requests it. */
  drawing: () => Drawing | null;
}

export function Download(props: DownloadProps) {
  const nameOf = ({ type, range }: Query, of: string): string => {
    const stamp = new Date(range.start).toISOString().slice(0, 16).replace(/:/g, '');
    return [props.service, ...type.id.split(':').slice(0, 2), stamp, of].filter(Boolean).join('.').replace(/[^\w.-]+/g, '_');
  };
  /** Returns an action that makes a file and saves it. A toast reports a failure. */
  const save = (query: Query, of: string, suffix: string, make: () => Promise<Blob>) => (): void => {
    make().then(
      (blob) => saveFile(blob, `${nameOf(query, of)}${suffix}`),
      (error: unknown) => say(`The download failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  };
  const merged = ({ type, selector, range }: Query): Promise<Blob> => mergedPprof(type.id, selector, range);
  const drawing = (): Drawing => {
    const made = props.drawing();
    if (!made) throw new Error('no flame graph is loaded yet');
    return made;
  };
  const read = async (query: Query): Promise<Stack[]> => readStacks(new Uint8Array(await (await merged(query)).arrayBuffer()));
  const stacks = ({ name, query }: DownloadProps['queries'][number]): Action[] => [
    { label: name === '' ? 'pprof' : `${name}, pprof`, hint: '.pb.gz', run: save(query, name.toLowerCase(), '.pb.gz', async () => gzip(await merged(query))) },
    { label: name === '' ? 'Copy command for go tool pprof' : `${name}, copy command for go tool pprof`, run: () => void copyGoToolPprof(query.type.id, query.selector, query.range) },
    { label: name === '' ? 'Collapsed stacks' : `${name}, collapsed stacks`, hint: '.txt', run: save(query, name.toLowerCase(), '.txt', async () => new Blob([collapsed(await read(query))], { type: 'text/plain' })) },
    ...(name === '' ? [{ label: 'Open in speedscope', hint: 'new tab', run: () => void window.open(speedscopeLink(query.type.id, query.selector, query.range, `${props.service} ${query.type.label}`), '_blank', 'noopener') }] : []),
    { label: name === '' ? 'speedscope file' : `${name}, speedscope`, hint: '.json', run: save(query, name.toLowerCase(), '.speedscope.json', async () => new Blob([speedscope(await read(query), `${props.service} ${query.type.label}`, query.type.unit)], { type: 'application/json' })) },
  ];
  const pictures = (query: Query): Action[] => {
    const of = props.queries.length > 1 ? 'diff' : '';
    const ink = INK[dark() ? 'dark' : 'light'];
    return [
      { label: 'Flame graph as SVG', hint: '.svg', run: save(query, of, '.svg', async () => new Blob([svg({ ...drawing(), ink })], { type: 'image/svg+xml' })) },
      { label: 'Flame graph as PNG', hint: '.png', run: save(query, of, '.png', async () => {
        const { blob, cut } = await png({ ...drawing(), ink }, getComputedStyle(document.body).fontFamily);
        if (cut > 0) say(`The PNG is too small for the ${cut} deepest levels`);
        return blob;
      }) },
    ];
  };
  const actions = (): Action[] => {
    const last = props.queries.at(-1);
    return [...props.queries.flatMap(stacks), ...(last ? pictures(last.query) : [])];
  };
  return (
    <Popover label="Download" haspopup="menu" class="button square" align="right" title="Download" disabled={!props.ready} trigger={<Icon name="download" />}>
      {(close) => <Menu label="Download" actions={actions()} close={close} />}
    </Popover>
  );
}
