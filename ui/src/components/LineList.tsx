// What each line of a function has, as `go tool pprof -list` tells it; the text of the source is not there.

import { createMemo, Index, Match, Show, Switch, type Accessor } from 'solid-js';
import { isPlain } from '../flame/recipe.ts';
import { mergedPprof } from '../lib/api.ts';
import { copyText } from '../lib/clipboard.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { linesOf, type FunctionLines, type LineValue } from '../lib/pprof-lines.ts';
import { say } from '../lib/toast.ts';
import { work } from '../models/work.ts';
import { Grid, type Column } from './Grid.tsx';
import { Failure, Notice } from './Notice.tsx';
import type { PartProps } from './PartProps.ts';

export function LineList(props: PartProps) {
  // Once for a question, whatever function one goes to.
  const all = createLoader(() => props.stacks, async ({ type, selector, range }, signal) => {
    const bytes = await (await mergedPprof(type.id, selector, range, signal)).arrayBuffer();
    return work('lines', bytes, [bytes]);
  });
  const name = (): string => props.tree.flame.names[props.name] ?? '';
  const found = createMemo(() => linesOf(all.data() ?? [], name(), props.tree.flame.files[props.name] ?? ''));
  return (
    <div class="line-list" classList={{ stale: all.pending() }} aria-busy={all.pending()}>
      <Switch fallback={<div class="fill" aria-busy="true" />}>
        <Match when={!all.data() && all.error()}>{(error) => <div class="fill"><Failure what="The lines could not be read" error={error()} retry={all.retry} /></div>}</Match>
        <Match when={all.data() && found().length === 0}>
          <div class="fill"><Notice icon="empty" title="No line of it is known"><p>{name()}</p><p>Its profiles name no source: a program without debug information, or a frame of a runtime that has none.</p></Notice></div>
        </Match>
        <Match when={all.data()}>
          <Show when={all.error()}>{(error) => <div class="banner" role="alert"><span>These lines are older: {error().message}</span><button type="button" class="button" onClick={all.retry}>Try again</button></div>}</Show>
          <Show when={!isPlain(props.recipe)}><p class="muted half-note">Lines are of all stacks, whatever frames are shown.</p></Show>
          <Index each={found()}>{(one) => <Lines {...props} of={one()} />}</Index>
        </Match>
      </Switch>
    </div>
  );
}

function Lines(props: Omit<PartProps, 'of'> & { of: FunctionLines }) {
  const amount = (value: number): string => props.look.amount?.(value) ?? '';
  const share = (value: number): string => formatShare(props.tree.flame.sum > 0 ? value / props.tree.flame.sum : 0);
  const most = createMemo(() => props.of.lines.reduce((max, { self, total }) => ({ self: Math.max(max.self, self), total: Math.max(max.total, total) }), { self: 1e-300, total: 1e-300 }));
  const where = (line: number): string => `${props.of.file}:${line}`;
  const copy = async (text: string): Promise<void> => say((await copyText(text)) ? `Copied ${text}` : 'The browser did not allow copying');
  const value = (key: 'self' | 'total', label: string): Column<LineValue>[] => [
    { key, label, class: 'number', fixed: true, cell: (row: Accessor<LineValue>) => <span classList={{ zero: row()[key] === 0 }}>{amount(row()[key])}</span> },
    {
      key: `${key} share`,
      label: '%',
      class: 'number share',
      fixed: true,
      cell: (row) => <><i style={{ width: `${(row()[key] / most()[key]) * 100}%` }} /><span classList={{ zero: row()[key] === 0 }}>{share(row()[key])}</span></>,
    },
  ];
  const columns: Column<LineValue>[] = [
    { key: 'line', label: 'Line', class: 'number line-number', fixed: true, cell: (row) => (row().line > 0 ? String(row().line) : '?'), title: ({ line }) => (line > 0 ? where(line) : 'The line is not known') },
    ...value('self', 'Self'),
    ...value('total', 'Total'),
  ];
  return (
    <>
      <div class="part-head">
        <h2 title={props.of.name}>{props.of.name}</h2>
        <span class="facts">
          <span title={props.of.file}>{props.of.file === '' ? 'file not known' : props.of.file}</span>
          <span>self <b>{amount(props.of.self)}</b> {share(props.of.self)}</span>
          <span>total <b>{amount(props.of.total)}</b> {share(props.of.total)}</span>
          <span>{formatWhole(props.of.lines.length)} {props.of.lines.length === 1 ? 'line' : 'lines'}</span>
        </span>
      </div>
      <Grid label={`Lines of ${props.of.name}`} class="line-grid" columns={columns} rows={props.of.lines} height={24} none="No line" of={`${props.of.name}\n${props.of.file}`} onSelect={({ line }) => void copy(line > 0 && props.of.file !== '' ? where(line) : props.of.name)} />
    </>
  );
}
