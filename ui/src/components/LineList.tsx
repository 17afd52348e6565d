// The value of each line of a function, as in `go tool pprof -list`, beside the text of the source if it is available.

import { createMemo, For, Index, Match, Show, Switch, type Accessor } from 'solid-js';
import { isPlain } from '../flame/recipe.ts';
import { mergedPprof } from '../lib/api.ts';
import { copyText } from '../lib/clipboard.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { createLoader } from '../lib/loader.ts';
import { linesOf, type FunctionLines } from '../lib/pprof-lines.ts';
import { repositoryPage, sourceLines, type Repository, type SourceLine } from '../lib/source-files.ts';
import { say } from '../lib/toast.ts';
import { createRepository, createSource, folder, type Source } from '../models/source.ts';
import { work } from '../models/work.ts';
import { Grid, type Column } from './Grid.tsx';
import { Failure, Notice } from './Notice.tsx';
import type { PartProps } from './PartProps.ts';
import { SourceBar } from './SourceBar.tsx';

export function LineList(props: PartProps) {
  // The stacks of a query are loaded once, for all functions.
  const all = createLoader(() => props.stacks, async ({ type, selector, range }, signal) => {
    const bytes = await (await mergedPprof(type.id, selector, range, signal)).arrayBuffer();
    return work('lines', bytes, [bytes]);
  });
  const repository = createRepository(() => props.stacks);
  const name = (): string => props.tree.flame.names[props.name] ?? '';
  const found = createMemo(() => linesOf(all.data() ?? [], name(), props.tree.flame.files[props.name] ?? ''));
  return (
    <div class="line-list" classList={{ stale: all.pending() }} aria-busy={all.pending()}>
      <Switch fallback={<div class="fill" aria-busy="true" />}>
        <Match when={!all.data() && all.error()}>{(error) => <div class="fill"><Failure what="Cannot load the lines" error={error()} retry={all.retry} /></div>}</Match>
        <Match when={all.data() && found().length === 0}>
          <div class="fill"><Notice icon="empty" title="No line numbers for this function"><p>{name()}</p><p>The profiles have no source positions for this function. The program has no debug information, or the frame belongs to a runtime without debug information.</p></Notice></div>
        </Match>
        <Match when={all.data()}>
          <Show when={all.error()}>{(error) => <div class="banner" role="alert"><span>The refresh failed, older lines are shown: {error().message}</span><button type="button" class="button" onClick={all.retry}>Try again</button></div>}</Show>
          <Show when={!isPlain(props.recipe)}><p class="muted half-note">The values of lines come from all stacks. The rules for frames do not apply to them.</p></Show>
          <SourceBar />
          <Index each={found()}>{(one) => <Lines {...props} of={one()} repository={repository.data() ?? null} />}</Index>
        </Match>
      </Switch>
    </div>
  );
}

function Lines(props: Omit<PartProps, 'of'> & { of: FunctionLines; repository: Repository | null }) {
  const source = createSource(() => props.of.file);
  const rows = createMemo(() => {
    const text = source.lines();
    return text ? sourceLines(props.of, text) : props.of.lines.map((line): SourceLine => ({ ...line, text: '' }));
  });
  const amount = (value: number): string => props.look.amount?.(value) ?? '';
  const share = (value: number): string => formatShare(props.tree.flame.sum > 0 ? value / props.tree.flame.sum : 0);
  const most = createMemo(() => props.of.lines.reduce((max, { self, total }) => ({ self: Math.max(max.self, self), total: Math.max(max.total, total) }), { self: 1e-300, total: 1e-300 }));
  const hottest = (): number => rows().findIndex(({ total }) => total === most().total);
  const where = (line: number): string => `${props.of.file}:${line}`;
  const page = (): string | null => props.repository && repositoryPage(props.of.file, props.of.lines[0]?.line ?? 0, props.repository);
  const copy = async (text: string): Promise<void> => say((await copyText(text)) ? `Copied ${text}` : 'The browser did not allow copying');
  const bar = (row: Accessor<SourceLine>, key: 'self' | 'total', shown: (value: number) => string) => (
    <><i style={{ width: `${(row()[key] / most()[key]) * 100}%` }} /><span classList={{ zero: row()[key] === 0 }}>{shown(row()[key])}</span></>
  );
  const value = (key: 'self' | 'total', label: string): Column<SourceLine>[] => [
    { key, label, class: 'number', fixed: true, cell: (row) => <span classList={{ zero: row()[key] === 0 }}>{amount(row()[key])}</span> },
    { key: `${key} share`, label: '%', class: 'number share', fixed: true, cell: (row) => bar(row, key, share) },
  ];
  // Beside the source text, the columns are narrower, and the cells of lines without a value are empty.
  const beside = (key: 'self' | 'total', label: string): Column<SourceLine> => (
    { key, label, class: 'number share', fixed: true, title: (row) => share(row[key]), cell: (row) => <Show when={row().total > 0}>{bar(row, key, amount)}</Show> }
  );
  const line: Column<SourceLine> = { key: 'line', label: 'Line', class: 'number line-number', fixed: true, cell: (row) => (row().line > 0 ? String(row().line) : '?'), title: (row) => (row.line > 0 ? where(row.line) : 'Unknown line') };
  const written: Column<SourceLine> = { key: 'text', label: 'Source', class: 'source-text', fixed: true, title: (row) => row.text.trim(), cell: (row) => row().text };
  const columns = createMemo(() => (source.lines() ? [line, beside('self', 'Self'), beside('total', 'Total'), written] : [line, ...value('self', 'Self'), ...value('total', 'Total')]));
  return (
    <>
      <div class="part-head">
        <h2 title={props.of.name}>{props.of.name}</h2>
        <span class="facts">
          <span title={props.of.file}>{props.of.file === '' ? 'unknown file' : props.of.file}</span>
          <span>self <b>{amount(props.of.self)}</b> {share(props.of.self)}</span>
          <span>total <b>{amount(props.of.total)}</b> {share(props.of.total)}</span>
          <span>{formatWhole(props.of.lines.length)} {props.of.lines.length === 1 ? 'line' : 'lines'}</span>
        </span>
        <Show when={page()}>{(href) => <a href={href()} target="_blank" rel="noopener noreferrer">Open in the repository</a>}</Show>
      </div>
      <SourceFacts of={props.of} source={source} />
      <Grid
        label={`Lines of ${props.of.name}`}
        class={source.lines() ? 'line-grid with-source' : 'line-grid'}
        columns={columns()}
        rows={rows()}
        height={24}
        none="No lines"
        of={`${props.of.name}\n${props.of.file}`}
        reveal={{ index: hottest, count: source.lines() ? 1 : 0 }}
        onSelect={(row) => void copy(row.line > 0 && props.of.file !== '' ? where(row.line) : props.of.name)}
      />
    </>
  );
}

/** Shows the problems with the source file of the function. If several files match, shows a choice of them. */
function SourceFacts(props: { of: FunctionLines; source: Source }) {
  const last = (): number => props.of.lines.at(-1)?.line ?? 0;
  return (
    <Show when={folder() && props.of.file !== ''}>
      <Switch>
        <Match when={props.source.error()}>{(error) => <p class="half-note bad" role="alert">Cannot read the source: {error().message}</p>}</Match>
        <Match when={props.source.files().length === 0}><p class="half-note muted">{props.of.file} is not in {folder()?.name}.</p></Match>
        <Match when={props.source.files().length > 1}>
          <label class="half-note muted">
            {formatWhole(props.source.files().length)} files match this path; shown is{' '}
            <select class="field" onChange={(event) => props.source.choose(event.currentTarget.value)}>
              <For each={props.source.files()}>{({ path }) => <option value={path} selected={path === props.source.shown()?.path}>{path}</option>}</For>
            </select>
          </label>
        </Match>
      </Switch>
      <Show when={props.source.lines() && last() > props.source.lines()!.length}>
        <p class="half-note bad" role="alert">{props.source.shown()?.path} has {formatWhole(props.source.lines()!.length)} lines. It is not the version that was profiled.</p>
      </Show>
    </Show>
  );
}
