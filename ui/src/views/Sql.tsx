// The SQL view: a statement, and its rows as a table, lines, bars, a flame graph, or a file. If the URL contains a statement, the view runs it when it opens.

import { createEffect, createMemo, createSignal, For, Match, on, Show, Switch } from 'solid-js';
import { Icon } from '../components/Icon.tsx';
import { MergedPane } from '../components/MergedPane.tsx';
import { Menu } from '../components/Menu.tsx';
import { Notice } from '../components/Notice.tsx';
import { Popover } from '../components/Popover.tsx';
import { Radios, type Radio } from '../components/Radios.tsx';
import { Share } from '../components/Share.tsx';
import { SqlEditor } from '../components/SqlEditor.tsx';
import { SqlBars, SqlLines, SqlTable } from '../components/SqlResult.tsx';
import { layout } from '../flame/layout.ts';
import { formatSpan, formatValue, formatWhole } from '../lib/format.ts';
import { saveFile } from '../lib/pprof.ts';
import type { Values } from '../lib/schema.ts';
import { sqlFile } from '../lib/sql.ts';
import { flameOf } from '../lib/sql-shape.ts';
import { EXAMPLES, type Example } from '../lib/sql-words.ts';
import type { Range } from '../lib/time.ts';
import { say } from '../lib/toast.ts';
import { createCompletion } from '../models/completion.ts';
import { createRun } from '../models/sql.ts';
import { createUrl } from '../router.ts';
import { SQL } from '../urls.ts';

type Shown = Values<typeof SQL.keys>['show'];

const WAYS: readonly Radio<Shown>[] = [
  { value: 'table', label: 'Rows as a table', text: 'Table' },
  { value: 'line', label: 'Rows as lines over time', text: 'Lines' },
  { value: 'bar', label: 'Rows as bars', text: 'Bars' },
  { value: 'flame', label: 'Rows of flamegraph() as a flame graph', text: 'Flame graph' },
];
const DAY = 86_400_000;
const EMPTY = { query: '', focus: '', sel: '', search: '' };

export default function Sql() {
  const url = createUrl(SQL);
  const { at, go } = url;
  const [text, setText] = createSignal(at.query());
  const work = createRun();
  const complete = createCompletion((): Range => ({ start: Date.now() - DAY, end: Date.now() }));

  const run = (query = text(), show: Shown = at.show()): void => {
    if (query.trim() === '') return;
    setText(query);
    go({ ...EMPTY, query, show });
    work.run(query);
  };
  const example = ({ query, show }: Example): void => run(query, show);
  // A link or the Back button changes the statement in the URL: run it.
  createEffect(on(at.query, (query) => {
    if (query === '' || query === work.history()[0] && (work.progress() !== null || work.last()?.query === query)) return;
    setText(query);
    work.run(query);
  }));
  const flame = createMemo(() => {
    const message = at.show() === 'flame' ? flameOf(work.last()?.rows ?? []) : null;
    return message && layout(message);
  });
  const save = (format: 'csv' | 'parquet') => (): void => {
    const query = work.last()?.query ?? text();
    sqlFile(query, format).then((blob) => saveFile(blob, `alluvium.${format}`), (error: unknown) => say(`The download failed: ${error instanceof Error ? error.message : String(error)}`));
  };
  const short = (query: string): string => query.replace(/\s+/g, ' ').slice(0, 90);

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>SQL</h1>
        <Popover label="Examples" named haspopup="menu" trigger={<>Examples<Icon name="down" class="chevron" /></>}>
          {(close) => <Menu label="Examples" close={close} actions={EXAMPLES.map((one) => ({ label: one.title, run: () => example(one) }))} />}
        </Popover>
        <Popover label="History" named haspopup="menu" disabled={work.history().length === 0} trigger={<>History<Icon name="down" class="chevron" /></>}>
          {(close) => <Menu label="History" close={close} actions={work.history().map((query) => ({ label: short(query), run: () => run(query) }))} />}
        </Popover>
        <span class="grow" />
        <Share href={url.href({})} pinned={null} />
        <Popover label="Download" haspopup="menu" class="button square" align="right" title="Download" disabled={!work.last()} trigger={<Icon name="download" />}>
          {(close) => <Menu label="Download" close={close} actions={[{ label: 'Rows', hint: '.csv', run: save('csv') }, { label: 'Rows with their types', hint: '.parquet', run: save('parquet') }]} />}
        </Popover>
      </div>
      <div class="progress" data-on={work.progress() !== null} />
      <div class="sql-head">
        <SqlEditor text={text()} complete={complete} onText={setText} onRun={run} onCancel={work.cancel} />
        <div class="sql-tools">
          <Show
            when={work.progress()}
            fallback={<button type="button" class="button primary" disabled={text().trim() === ''} onClick={() => run()}><Icon name="play" />Run</button>}
          >
            {(now) => <><button type="button" class="button" onClick={work.cancel}><Icon name="close" />Cancel</button><span class="muted">{formatSpan(now().since)}{now().bytes > 0 ? `, ${formatValue(now().bytes, 'bytes')} so far` : ''}</span></>}
          </Show>
          <Show when={work.last() && !work.progress()}>
            <span class="muted" role="status">{formatWhole(work.last()?.rows.length ?? 0)} {work.last()?.rows.length === 1 ? 'row' : 'rows'} in {formatSpan(work.last()?.took ?? 0)}</span>
          </Show>
          <span class="spring" />
          <Radios label="Rows shown as" value={at.show()} choices={WAYS} onChoose={(show) => go({ show }, { replace: true })} />
        </div>
      </div>
      <Show when={work.error()}>
        {(error) => <div class="banner sql-error" role="alert"><pre tabindex="0">{error().message}</pre></div>}
      </Show>
      <Show
        when={work.last()}
        fallback={
          <div class="fill">
            <Notice icon="sql" title="Query profiles with SQL" actions={<For each={EXAMPLES.slice(0, 5)}>{(one) => <button type="button" class="button" onClick={() => example(one)}>{one.title}</button>}</For>}>
              <p>Tables: flat (one row for each sample; start here), profiles, samples, stacks, series. Functions: flamegraph, top, diff, pprof.</p>
            </Notice>
          </div>
        }
      >
        {(last) => (
          <div class="pane sql-result" classList={{ stale: work.progress() !== null }}>
            <Switch fallback={<SqlTable rows={last().rows} />}>
              <Match when={at.show() === 'line'}><SqlLines rows={last().rows} /></Match>
              <Match when={at.show() === 'bar'}><SqlBars rows={last().rows} /></Match>
              <Match when={at.show() === 'flame' && flame()}>
                {(found) => <MergedPane flame={found()} of={last().query} amount={formatWhole} stale={false} at={at} onChange={go} />}
              </Match>
              <Match when={at.show() === 'flame'}><p class="muted more">A flame graph needs the columns level, x, total, self and function, as <code>flamegraph()</code> returns them.</p></Match>
            </Switch>
          </div>
        )}
      </Show>
    </main>
  );
}
