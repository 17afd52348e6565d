// The Samples view: single profiles over time. For an opened profile, it shows the labels and the flame graph, and offers the pprof file.

import { createMemo, For, Match, Show, Switch } from 'solid-js';
import { Absent } from '../components/Absent.tsx';
import { Amount } from '../components/Amount.tsx';
import { DotChart } from '../components/DotChart.tsx';
import { DotLegend } from '../components/DotLegend.tsx';
import { DOT_STYLES } from '../components/dots.ts';
import { MergedPane } from '../components/MergedPane.tsx';
import { Failure, Notice } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { Radios } from '../components/Radios.tsx';
import { SampleTable } from '../components/SampleTable.tsx';
import { SelectionBar } from '../components/SelectionBar.tsx';
import { mergedPprof } from '../lib/api.ts';
import { copyGoToolPprof } from '../lib/copy-line.ts';
import { formatMoment, formatValue, formatWhole } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { gzip, saveFile } from '../lib/pprof.ts';
import { printMatchers } from '../lib/selector.ts';
import { speedscopeLink } from '../lib/speedscope.ts';
import { absolute } from '../lib/time.ts';
import { say } from '../lib/toast.ts';
import { createCatalogue, createDefaults } from '../models/catalogue.ts';
import { createFlame, type FlameSource } from '../models/flame.ts';
import { createRange } from '../models/range.ts';
import { needsWhole } from '../models/recipe.ts';
import { createOpened, createSamples, createSpans, questionOf, type Sample } from '../models/samples.ts';
import { createSelection } from '../models/selection.ts';
import { createUrl, follow, hrefTo, type Url } from '../router.ts';
import { SAMPLES, SEND, SERVICES } from '../urls.ts';

export default function Samples() {
  const url = createUrl(SAMPLES);
  const { at, go } = url;
  const time = createRange(at);
  const selection = createSelection(at, time.range);
  const catalogue = createCatalogue(selection);
  const samples = createSamples(selection.query);
  createDefaults(catalogue, at, go);
  const close = { profile: '', span: '', focus: '', sel: '', search: '' };
  const open = (sample: Sample): void => go({ ...close, profile: sample.key });

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Samples</h1>
      <SelectionBar
        catalogue={catalogue}
        selection={selection}
        time={time}
        from={at.from()}
        until={at.until()}
        busy={catalogue.services.pending() || samples.pending()}
        href={url.href({})}
        pinned={time.moves() ? url.href({ ...absolute(time.range()), refresh: null }) : null}
        onService={(service, keeps) => go({ ...close, service, ...(keeps ? {} : { type: '' }) })}
        onType={(type) => go({ ...close, type })}
        onFilters={(matchers) => go({ ...close, q: printMatchers(matchers) })}
        onRange={go}
        onSeconds={(refresh) => go({ refresh }, { replace: true })}
      />
      <Show when={samples.data() && samples.error()}>
        {(error) => <div class="banner" role="alert"><span>The refresh failed, older data is shown: {error().message}</span><button type="button" class="button" onClick={samples.retry}>Try again</button></div>}
      </Show>
      <Switch>
        <Match when={!catalogue.services.data() && catalogue.services.error()}>{(error) => <div class="fill"><Failure what="Cannot load the services" error={error()} retry={catalogue.services.retry} /></div>}</Match>
        <Match when={catalogue.missing()}>
          <div class="fill"><Absent catalogue={catalogue} service={at.service()} home={hrefTo(SERVICES)} send={hrefTo(SEND)} onFollow={follow} onService={(service) => go({ ...close, service, type: '' })} onRange={go} onRefresh={time.refresh} /></div>
        </Match>
        <Match when={!samples.data() && samples.error()}>{(error) => <div class="fill"><Failure what="Cannot load the list of profiles" error={error()} retry={samples.retry} /></div>}</Match>
        <Match when={!samples.data()}><div class="fill" aria-busy="true" /></Match>
        <Match when={samples.data()?.count === 0 && at.profile() === ''}><div class="fill"><NothingInRange nearest={undefined} what={`No ${selection.type()?.label ?? ''} profiles match in this range`} onRange={go} /></div></Match>
        <Match when={samples.data()}>
          {(found) => (
            <>
              <section class="panel" aria-label="Profiles over time">
                <div class="panel-head">
                  <h2>{found().type.label}</h2>
                  <div class="facts"><span><b>{formatWhole(found().count)}</b> profiles</span><span>largest <Amount value={found().most} unit={found().type.unit} /></span></div>
                  <span class="spring" />
                  <Show when={found().samples.length > 0}><Radios label="Dot style" choices={DOT_STYLES} value={at.dots()} onChoose={(dots) => go({ dots }, { replace: true })} /></Show>
                </div>
                <div classList={{ stale: samples.pending() }}><DotChart data={found()} style={at.dots()} opened={at.profile()} onOpen={open} onZoom={(range) => go(absolute(range))} /></div>
                <DotLegend data={found()} style={at.dots()} />
              </section>
              <Show when={at.profile() !== ''} fallback={<div class="pane"><SampleTable data={found()} opened="" onOpen={open} /></div>}>
                <Opened url={url} onClose={() => go(close)} />
              </Show>
            </>
          )}
        </Match>
      </Switch>
    </main>
  );

  function Opened(props: { url: Url<typeof SAMPLES.keys>; onClose: () => void }) {
    const sample = createOpened(at.profile, selection.type);
    const source = createMemo<FlameSource | null>(() => {
      const found = sample.data();
      const type = selection.type();
      if (!found || !type) return null;
      const query = questionOf(found, type);
      const only = at.span() !== '' ? { spans: [at.span()] } : {};
      return found.id === '' ? { kind: 'merged', query, ...only } : { kind: 'single', query, profile: found.id, ...only };
    });
    const spans = createSpans(sample.data, selection.type);
    const flame = createFlame(source, at.focus, needsWhole(at));
    const stacks = createMemo(() => {
      const from = flame.data()?.source;
      return from && 'query' in from ? from.query : null;
    });
    const amount = (value: number): string => formatValue(value, selection.type()?.unit ?? 'count');
    // Escape closes the profile only when the flame graph has no zoom, search or selection to clear.
    createKeys(() => (at.focus() === '' && at.search() === '' && at.sel() === '' && at.pane() === 'flame' ? { Escape: () => props.onClose() } : {}));
    const speedscopeOf = (found: Sample): string => {
      const type = selection.type();
      if (!type) return '';
      const { selector, range } = questionOf(found, type);
      return speedscopeLink(type.id, selector, range, `${at.service()} ${type.label}, ${formatMoment(found.time, true)}`);
    };
    const copyLine = (found: Sample): void => {
      const type = selection.type();
      if (!type) return;
      const { selector, range } = questionOf(found, type);
      void copyGoToolPprof(type.id, selector, range);
    };
    const download = (found: Sample): void => {
      const type = selection.type();
      if (!type) return;
      const { selector, range } = questionOf(found, type);
      mergedPprof(type.id, selector, range).then(gzip).then(
        (blob) => saveFile(blob, `${at.service()}.${type.id.split(':').slice(0, 2).join('.')}.${new Date(found.time).toISOString()}.pb.gz`.replace(/[^\w.-]+/g, '_')),
        (error: unknown) => say(`The download failed: ${error instanceof Error ? error.message : String(error)}`),
      );
    };
    return (
      <Switch>
        <Match when={sample.error() ?? flame.error()}>{(error) => <div class="fill"><Failure what="Cannot load the profile" error={error()} retry={sample.error() ? sample.retry : flame.retry} /></div>}</Match>
        <Match when={sample.data() === null}>
          <div class="fill"><Notice icon="samples" title="The profile does not exist, or is no longer stored" actions={<button type="button" class="button primary" onClick={() => props.onClose()}>All profiles</button>}><p>It may have been downsampled into a longer profile, or deleted when its retention ended.</p></Notice></div>
        </Match>
        <Match when={sample.data()}>
          {(found) => (
            <>
              <section class="panel opened" aria-label="Opened profile">
                <div class="panel-head">
                  <h2>{formatMoment(found().time, true)}</h2>
                  <div class="facts">
                    <span>value <Amount value={found().total} unit={selection.type()?.unit ?? 'count'} /></span>
                    <span><b>{formatWhole(found().count)}</b> stacks</span>
                    <Show when={found().duration > 0}><span>over <Amount value={found().duration} unit="ns" /></span></Show>
                    <Show when={found().id}>{(id) => <span>id <b>{id()}</b></span>}</Show>
                  </div>
                  <span class="spring" />
                  <a class="button" target="_blank" rel="noopener" href={speedscopeOf(found())}>Open in speedscope</a>
                  <button type="button" class="button" title="Copy a command line that opens this profile in go tool pprof" onClick={() => copyLine(found())}>Copy for go tool pprof</button>
                  <button type="button" class="button" onClick={() => download(found())}>Download pprof</button>
                  <button type="button" class="button" onClick={() => props.onClose()}>All profiles</button>
                </div>
                <Show when={spans.data()?.length || at.span() !== ''}>
                  <div class="span-list" role="group" aria-label="Spans">
                    <span class="muted">spans</span>
                    <button type="button" class="button" aria-pressed={at.span() === ''} onClick={() => go({ span: '', focus: '' })}>All stacks</button>
                    <For each={spans.data() ?? []}>
                      {({ span, trace, value }) => <button type="button" class="button" aria-pressed={at.span() === span} title={trace === '' ? span : `span ${span}\ntrace ${trace}`} onClick={() => go({ span, focus: '' })}><code>{span.slice(0, 8)}</code> {amount(value)}</button>}
                    </For>
                  </div>
                </Show>
                <ul class="label-list" aria-label="Labels">
                  <For each={Object.entries(found().labels).sort()}>{([name, value]) => <li><span class="muted">{name}</span> {value}</li>}</For>
                </ul>
              </section>
              <Show when={flame.data()} fallback={<div class="fill" aria-busy="true" />}>
                {(answer) => <MergedPane flame={answer().flame} of={at.profile()} amount={amount} stacks={stacks()} stale={flame.pending()} at={at} onChange={go} />}
              </Show>
            </>
          )}
        </Match>
      </Switch>
    );
  }
}
