// What is shown as a file: every stack as pprof or collapsed text, the whole flame graph as a picture.

import { colourNames, DARK, INK, LIGHT } from '../flame/colours.ts';
import { findPath, type Flame } from '../flame/layout.ts';
import { png } from '../flame/png.ts';
import { mergedPprof } from '../lib/api.ts';
import { collapsed, readStacks } from '../lib/pprof-read.ts';
import { gzip, saveFile } from '../lib/pprof.ts';
import { dark } from '../lib/preferences.ts';
import { say } from '../lib/toast.ts';
import type { Query } from '../models/selection.ts';
import { Icon } from './Icon.tsx';
import { Menu, type Action } from './Menu.tsx';
import { Popover } from './Popover.tsx';

export interface DownloadProps {
  /** What the stacks are of. */
  query: Query | null;
  service: string;
  flame: Flame | undefined;
  /** Path of the zoomed frame. */
  focus: string;
  /** The root is at the bottom. */
  flip: boolean;
}

export function Download(props: DownloadProps) {
  const name = ({ type, range }: Query): string => {
    const stamp = new Date(range.start).toISOString().slice(0, 16).replace(/:/g, '');
    return `${props.service}.${type.id.split(':').slice(0, 2).join('.')}.${stamp}`.replace(/[^\w.-]+/g, '_');
  };
  /** Makes a file of the question, and says when that fails. */
  const save = (suffix: string, make: (query: Query) => Promise<Blob>) => (): void => {
    const { query } = props;
    if (!query) return;
    make(query).then(
      (blob) => saveFile(blob, `${name(query)}${suffix}`),
      (error: unknown) => say(`The download failed: ${error instanceof Error ? error.message : String(error)}`),
    );
  };
  const merged = ({ type, selector, range }: Query): Promise<Blob> => mergedPprof(type.id, selector, range);
  const actions = (): Action[] => [
    { label: 'pprof', hint: '.pb.gz', run: save('.pb.gz', async (query) => gzip(await merged(query))) },
    { label: 'Collapsed stacks', hint: '.txt', run: save('.txt', async (query) => {
      const stacks = readStacks(new Uint8Array(await (await merged(query)).arrayBuffer()));
      return new Blob([collapsed(stacks)], { type: 'text/plain' });
    }) },
    { label: 'Picture', hint: '.png', run: save('.png', async () => {
      const { flame, focus, flip } = props;
      if (!flame) throw new Error('there is no flame graph yet');
      const node = Math.max(0, findPath(flame, focus));
      const from = flame.start[node] ?? 0;
      const still = { flame, from, to: from + (flame.total[node] ?? 0), flip, focus: node, matched: null, selectedName: -1, currentNode: -1 };
      const look = dark() ? 'dark' : 'light';
      const colours = colourNames(flame.names, flame.mappings, flame.files, dark() ? DARK : LIGHT);
      const { blob, cut } = await png({ ...still, colours, ink: INK[look] }, getComputedStyle(document.body).fontFamily);
      if (cut > 0) say(`The picture has no room for the ${cut} deepest levels`);
      return blob;
    }) },
  ];
  return (
    <Popover label="Download" haspopup="menu" class="button square" align="right" title="Download" disabled={!props.flame} trigger={<Icon name="download" />}>
      {(close) => <Menu label="Download" actions={actions()} close={close} />}
    </Popover>
  );
}
