// The live data of one component: a tail of the data that passes through it, with pause, filter and sampling.

import { createEffect, createMemo, createSignal, For, Match, on, onCleanup, Show, Switch } from 'solid-js';
import { formatClock, formatValue } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { isBad, readEntry, searchable, summary, Tail, type Entry, type Labels } from '../pipeline/live.ts';
import { follow, parse, type StreamState } from '../pipeline/stream.ts';
import { pathOfId } from '../pipeline/model.ts';
import { Icon } from './Icon.tsx';
import { Command, Notice } from './Notice.tsx';

/** Maximum number of entries that are kept. */
const MOST = 500;
/** Maximum number of entries that are drawn. The filter also searches the entries that are not drawn. */
const SHOWN = 200;
/** Interval at which the list is redrawn while entries arrive. */
const DRAW_MS = 250;
const SAMPLES: readonly (readonly [string, string])[] = [['1', 'All'], ['0.5', '50%'], ['0.1', '10%'], ['0.01', '1%']];

export function LiveTail(props: { id: string; enabled: boolean }) {
  const [state, setState] = createSignal<StreamState>({ at: 'opening' });
  const [shown, setShown] = createSignal<Entry[]>([]);
  const [paused, setPaused] = createSignal(false);
  const [behind, setBehind] = createSignal(0);
  const [filter, setFilter] = createSignal('');
  const [sample, setSample] = createSignal('1');
  const tail = new Tail(MOST);
  let count = 0;
  let dirty = false;
  // Copies the tail to the list on the page. While paused, the timer does not call this, so only the tail changes.
  const show = (): void => {
    dirty = false;
    setShown(tail.list());
    setBehind(0);
  };

  // Memos: their sources change every few seconds, but the stream must restart only when a value changes.
  const id = createMemo(() => props.id);
  const enabled = createMemo(() => props.enabled);
  createEffect(on([id, sample, enabled], ([id, share, enabled]) => {
    tail.clear();
    show();
    setPaused(false);
    if (!enabled) return;
    const stop = new AbortController();
    void follow(`api/v0/web/debug/${pathOfId(id)}?format=json&sampleProb=${share}`, {
      entries: (texts) => {
        const now = Date.now();
        tail.add(texts.map((text) => readEntry(parse(text), (count += 1), now)));
        dirty = true;
        if (paused()) setBehind((before) => before + texts.length);
      },
      state: setState,
    }, stop.signal);
    const timer = setInterval(() => dirty && !paused() && show(), DRAW_MS);
    onCleanup(() => {
      stop.abort();
      clearInterval(timer);
    });
  }));
  const toggle = (): void => {
    setPaused(!paused());
    if (!paused()) show();
  };
  createKeys(() => ({ p: toggle }));
  const found = createMemo(() => {
    const words = filter().toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return shown();
    return shown().filter((entry) => {
      const text = searchable(entry);
      return words.every((word) => text.includes(word));
    });
  });
  const status = (): string => {
    const now = state();
    if (paused()) return behind() > 0 ? `Paused, ${behind()} newer` : 'Paused';
    return now.at === 'open' ? 'Live' : now.at === 'waiting' ? `${now.reason}; retrying` : now.at === 'opening' ? 'Connecting' : 'Refused by the collector';
  };

  return (
    <Show
      when={props.enabled}
      fallback={
        <Notice icon="pause" title="Live debugging is off">
          <p>Flow rates are always counted. To see the data itself, add this to the configuration and reload:</p>
          <Command text="livedebugging { enabled = true }" />
        </Notice>
      }
    >
      <div class="live-tools">
        <button type="button" class="button" aria-pressed={paused()} onClick={toggle}><Icon name={paused() ? 'play' : 'pause'} />{paused() ? 'Resume' : 'Pause'}</button>
        <span class="with-icon grow">
          <Icon name="search" />
          <input class="field" type="search" aria-label="Filter live data" placeholder="Filter" spellcheck={false} value={filter()} onInput={(event) => setFilter(event.currentTarget.value)} />
        </span>
        <select class="field" aria-label="Share of entries to show" value={sample()} onChange={(event) => setSample(event.currentTarget.value)}>
          <For each={SAMPLES}>{([share, label]) => <option value={share}>{label}</option>}</For>
        </select>
        <button type="button" class="button" onClick={() => (tail.clear(), show())}>Clear</button>
      </div>
      <div class="live-status" role="status"><i class="live-dot" data-on={state().at === 'open' && !paused()} />{status()}</div>
      <Switch>
        <Match when={state().at === 'refused'}>
          <Notice icon="alert" error title="Cannot load the live data"><p>{(state() as { reason: string }).reason}</p></Notice>
        </Match>
        <Match when={shown().length === 0}>
          <p class="muted none">No data yet. New data appears here.</p>
        </Match>
        <Match when={found().length === 0}>
          <p class="muted none">None of the last {shown().length} entries matches the filter.</p>
        </Match>
        <Match when={true}>
          <ol class="live-list" aria-label="Live data, newest first">
            <For each={found().slice(0, SHOWN)}>{(entry) => <Row entry={entry} />}</For>
          </ol>
          <Show when={found().length > SHOWN}><p class="muted none">{found().length - SHOWN} older entries also match. Use a narrower filter to see them.</p></Show>
        </Match>
      </Switch>
    </Show>
  );
}

function Row(props: { entry: Entry }) {
  const [open, setOpen] = createSignal(false);
  const millis = (): string => String(new Date(props.entry.time).getMilliseconds()).padStart(3, '0');
  return (
    <li classList={{ bad: isBad(props.entry), dropped: props.entry.kind === 'relabel' && props.entry.after === null }}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <time>{formatClock(props.entry.time, true)}.{millis()}</time>
          <span class="kind">{props.entry.kind}</span>
          <span class="what">{summary(props.entry)}</span>
        </summary>
        <Show when={open()}><Body entry={props.entry} /></Show>
      </details>
    </li>
  );
}

function Body(props: { entry: Entry }) {
  const { entry } = props;
  switch (entry.kind) {
    case 'target':
    case 'profile':
      return <LabelList labels={entry.labels} />;
    case 'relabel':
      return (
        <>
          <h4>Before</h4>
          <LabelList labels={entry.before} />
          <h4>Rules</h4>
          <Show when={entry.steps.length > 0} fallback={<p class="muted">No rule changed anything.</p>}>
            <ol class="steps">
              <For each={entry.steps}>
                {(step) => (
                  <li>
                    <b>{step.rule + 1}. {step.action}</b>
                    <Show when={step.dropped}><span class="gone"> dropped</span></Show>
                    <For each={Object.entries(step.set)}>{([name, value]) => <code class="set">+ {name} = {JSON.stringify(value)}</code>}</For>
                    <For each={step.removed}>{(name) => <code class="gone">− {name}</code>}</For>
                  </li>
                )}
              </For>
            </ol>
          </Show>
          <h4>After</h4>
          <Show when={entry.after} fallback={<p class="gone">dropped</p>}>{(after) => <LabelList labels={after()} before={entry.before} />}</Show>
        </>
      );
    case 'scrape':
    case 'write':
      return (
        <dl class="label-list">
          <dt>{entry.kind === 'scrape' ? 'url' : 'endpoint'}</dt><dd>{entry.kind === 'scrape' ? entry.url : entry.endpoint}</dd>
          <dt>size</dt><dd>{formatValue(entry.bytes, 'bytes')}</dd>
          <dt>duration</dt><dd>{formatValue(entry.seconds * 1e9, 'ns')}</dd>
          <dt>outcome</dt><dd>{entry.outcome}</dd>
          <Show when={entry.error !== ''}><dt>error</dt><dd class="gone">{entry.error}</dd></Show>
        </dl>
      );
    default:
      return <p>{summary(entry)}</p>;
  }
}

/** A list of labels. With `before`, new and changed labels are marked. */
function LabelList(props: { labels: Labels; before?: Labels }) {
  return (
    <dl class="label-list">
      <For each={Object.entries(props.labels)}>
        {([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd classList={{ set: props.before !== undefined && props.before[name] !== value }}>{value}</dd>
          </>
        )}
      </For>
    </dl>
  );
}
