// The Profile view: the service, the profile type, the filters and the range; the time chart; the flame graph and its table.

import { createMemo, createSignal, For, Match, Show, Switch } from 'solid-js';
import { Absent } from '../components/Absent.tsx';
import { ChartPanel } from '../components/ChartPanel.tsx';
import { Download, type Drawing } from '../components/Download.tsx';
import { Filters } from '../components/Filters.tsx';
import { MergedPane } from '../components/MergedPane.tsx';
import { MetricPanel } from '../components/MetricPanel.tsx';
import { Failure, Notice } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { Pickers } from '../components/Pickers.tsx';
import { Share } from '../components/Share.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { colourNames, DARK, LIGHT, packagePaint } from '../flame/colours.ts';
import { findPath } from '../flame/layout.ts';
import { still } from '../flame/png.ts';
import { shapeTree } from '../flame/tree.ts';
import { formatRange, formatShare } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import { profileType } from '../lib/profile-types.ts';
import { printMatcher, printMatchers } from '../lib/selector.ts';
import { absolute } from '../lib/time.ts';
import { createDefaults } from '../models/catalogue.ts';
import { createMetric } from '../models/metric.ts';
import { createProfile, type ProfileModel } from '../models/profile.ts';
import { createRange } from '../models/range.ts';
import { readRecipe } from '../models/recipe.ts';
import { createUrl, follow, hrefTo, visit, type Url } from '../router.ts';
import { COMPARE, PROFILE, SEND, SERVICES } from '../urls.ts';

type ProfileUrl = Url<typeof PROFILE.keys>;

export default function Profile() {
  const url = createUrl(PROFILE);
  const { at, go } = url;
  const time = createRange(at);
  const data = createProfile(at, time);
  const { services: all, types, missing } = data.catalogue;

  /** The metric covers the requested range. The profile's chart may begin later. */
  const metric = createMetric(at.metric, time.range);
  const [adding, setAdding] = createSignal(false);
  createDefaults(data.catalogue, at, go);

  const busy = (): boolean => all.pending() || data.chart.pending() || data.flame.pending();
  const typeMissing = createMemo(() => {
    const type = data.type();
    return all.data() && !all.pending() && !missing() && type !== null && types().length > 0 && !types().some(({ id }) => id === type.id) ? type : null;
  });

  const drawing = (): Drawing | null => {
    const whole = data.flame.data()?.flame;
    if (!whole) return null;
    const { flame } = shapeTree({ flame: whole, sides: null, reads: 'callees' }, readRecipe(at)).shown;
    const paint = packagePaint(flame, colourNames(flame.names, flame.mappings, flame.files, dark() ? DARK : LIGHT));
    return {
      ...still(flame, Math.max(0, findPath(flame, at.focus())), at.orient() === 'flame', paint),
      title: `${at.service()}, ${data.type()?.label ?? ''}, ${formatRange(time.range())}`,
      values: (node) => `total ${data.amount()(flame.total[node] ?? 0)}, ${formatShare((flame.total[node] ?? 0) / flame.sum)}${at.invert() ? '' : `, self ${data.amount()(flame.self[node] ?? 0)}`}`,
    };
  };

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Profile</h1>
      <div class="bar">
        <Pickers
          catalogue={data.catalogue}
          service={at.service()}
          type={data.type()}
          onService={(service, keeps) => go({ service, focus: '', sel: '', ...(keeps ? {} : { type: '' }) })}
          onType={(type) => go({ type, focus: '' })}
        />
        <Filters service={at.service()} matchers={data.matchers().list} range={time.range()} onChange={(matchers) => go({ q: printMatchers(matchers) })} />
        <span class="grow" />
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={go} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
        <Share href={url.href({})} pinned={time.moves() ? url.href({ ...absolute(time.range()), refresh: null }) : null} />
        <Download queries={data.query() ? [{ name: '', query: data.query()! }] : []} service={at.service()} ready={data.flame.data() !== undefined} drawing={drawing} />
      </div>
      <div class="progress" data-on={busy()} />
      <Show when={data.matchers().error}>
        <div class="banner" role="alert"><span>Cannot parse the filters in the link: {data.matchers().error}</span><button type="button" class="button" onClick={() => go({ q: '' })}>Remove them</button></div>
      </Show>
      <Show when={at.span()}>
        {(span) => <div class="banner plain" role="status"><span>The flame graph shows only stacks of span <code>{span()}</code>. The chart shows all stacks.</span><button type="button" class="button" onClick={() => go({ span: '', focus: '' })}>All stacks</button></div>}
      </Show>
      <Switch>
        <Match when={!all.data() && all.error()}>
          {(error) => <div class="fill"><Failure what="Cannot load the services" error={error()} retry={all.retry} /></div>}
        </Match>
        <Match when={missing()}>
          <div class="fill"><Absent catalogue={data.catalogue} service={at.service()} home={hrefTo(SERVICES)} send={hrefTo(SEND)} onFollow={follow} onService={(service) => go({ service, type: '', focus: '', sel: '' })} onRange={go} onRefresh={time.refresh} /></div>
        </Match>
        <Match when={typeMissing()}>
          {(type) => (
            <div class="fill">
              <Notice icon="empty" title={`${at.service()} has no ${type().label} profiles in this range`} actions={<For each={types().slice(0, 6)}>{(other) => <button type="button" class="button" onClick={() => go({ type: other.id }, { replace: true })}>{other.label}</button>}</For>}>
                <p>It has these profile types:</p>
              </Notice>
            </div>
          )}
        </Match>
        <Match when={data.nothingMatches()}>
          <div class="fill"><NothingMatches data={data} url={url} /></div>
        </Match>
        <Match when={true}>
          <Show when={metric.available.data() && (at.metric() !== '' || adding())}>
            <MetricPanel
              metric={metric}
              query={at.metric()}
              range={data.chart.data()?.range ?? time.range()}
              onQuery={(query) => go({ metric: query })}
              onRange={(range) => go(absolute(range))}
              onClose={() => {
                setAdding(false);
                go({ metric: '' });
              }}
            />
          </Show>
          <ChartPanel
            tools={<Show when={metric.available.data() && at.metric() === '' && !adding()}><button type="button" class="button" title="Show a Prometheus metric above this chart, over the same time" onClick={() => setAdding(true)}>Metric</button></Show>}
            title={data.type()?.chartTitle ?? ''}
            chart={data.chart}
            labels={data.catalogue.labels}
            by={at.by()}
            table={at.chart() === 'table'}
            note={time.since()}
            onBy={(by) => go({ by })}
            onTable={(table) => go({ chart: table ? 'table' : 'line' }, { replace: true })}
            actions={[
              { label: 'Zoom', icon: 'search', run: (range) => go(absolute(range)) },
              { label: 'Compare with the time before', icon: 'compare', run: (comparison) => visit(COMPARE, { comparison, with: 'before' }) },
            ]}
            onOnly={(name, value) => go({ by: '', q: printMatchers([...data.matchers().list.filter((matcher) => matcher.name !== name), { name, op: '=', value }]) })}
          />
          <Flames data={data} url={url} />
        </Match>
      </Switch>
    </main>
  );
}

/** The flame graph and its table, or the reason why there are none. */
function Flames(props: { data: ProfileModel; url: ProfileUrl }) {
  const { at, go } = props.url;
  const { flame } = props.data;
  return (
    <Switch>
      <Match when={!flame.data() && flame.error()}>
        {(error) => <div class="fill"><Failure what="Cannot load the flame graph" error={error()} retry={flame.retry} /></div>}
      </Match>
      <Match when={!flame.data()}><FlameSkeleton /></Match>
      <Match when={props.data.onlyZeros()}>
        <div class="fill"><OnlyZeros data={props.data} url={props.url} /></div>
      </Match>
      <Match when={flame.data()}>
        {(answer) => (
          <>
            <Show when={flame.error()}>
              {(error) => <div class="banner" role="alert"><span>The refresh failed, an older flame graph is shown: {error().message}</span><button type="button" class="button" onClick={flame.retry}>Try again</button></div>}
            </Show>
            <Show when={props.data.onlyShares()}>
              {(error) => <div class="banner" role="alert"><span>Only shares are shown. The values need the mean of the chart, and the chart cannot be loaded: {error().message}</span><button type="button" class="button" onClick={props.data.chart.retry}>Try again</button></div>}
            </Show>
            <Show when={answer().gone && at.focus() !== ''}>
              <div class="banner" role="status"><span>The zoomed frame is not in this range. All frames are shown.</span><button type="button" class="button" onClick={() => go({ focus: '' }, { replace: true })}>Reset zoom</button></div>
            </Show>
            <MergedPane flame={answer().flame} of={`${at.type()} ${at.service()} ${at.q()}`} amount={props.data.amount()} stacks={props.data.drawn()} stale={flame.pending()} at={at} onChange={go} />
          </>
        )}
      </Match>
    </Switch>
  );
}

function NothingMatches(props: { data: ProfileModel; url: ProfileUrl }) {
  const { at, go } = props.url;
  const matchers = () => props.data.matchers().list;
  return (
    <Show
      when={matchers().length > 0}
      fallback={<NothingInRange nearest={props.data.nearest.data()} what={`No ${props.data.type()?.label ?? ''} profiles of ${at.service()} in this range`} onRange={go} />}
    >
      <Notice
        icon="empty"
        title="No profile matches the filters"
        actions={
          <>
            <For each={matchers()}>
              {(matcher) => <button type="button" class="button" onClick={() => go({ q: printMatchers(matchers().filter((other) => other !== matcher)) })}>Without {printMatcher(matcher)}</button>}
            </For>
            <Show when={props.data.nearest.data()}>
              {(to) => <button type="button" class="button primary" onClick={() => go(absolute(to()))}>Show {formatRange(to())}</button>}
            </Show>
          </>
        }
      >
        <p>In this range, no profile matches all filters at the same time.</p>
      </Notice>
    </Show>
  );
}

/** The notice for profiles whose values are all zero: a likely reason, and the other profile types. */
function OnlyZeros(props: { data: ProfileModel; url: ProfileUrl }) {
  const type = () => props.data.type() ?? profileType('');
  return (
    <Notice
      icon="empty"
      title={`All values are zero: ${props.url.at.service()} recorded no ${type().label.toLowerCase()} in this range`}
      actions={
        <For each={props.data.catalogue.types().filter(({ id }) => id !== type().id).slice(0, 4)}>
          {(other) => <button type="button" class="button" onClick={() => props.url.go({ type: other.id, focus: '' })}>{other.label}</button>}
        </For>
      }
    >
      <p>Profiles arrive, but all their values are zero. {type().whenZero}</p>
    </Notice>
  );
}

function FlameSkeleton() {
  return (
    <div class="fill flame-skeleton" aria-busy="true">
      <For each={[100, 92, 92, 80, 61, 58, 40, 22]}>{(width) => <div class="skeleton" style={{ width: `${width * 0.62}%` }} />}</For>
    </div>
  );
}
