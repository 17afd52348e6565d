// The Profile view: which service, which profile, which filters, when; the time chart, and below it flame graph and table.

import { createEffect, createMemo, For, Match, on, Show, Switch } from 'solid-js';
import { ChartPanel } from '../components/ChartPanel.tsx';
import { Download } from '../components/Download.tsx';
import { Filters } from '../components/Filters.tsx';
import { FlamePane } from '../components/FlamePane.tsx';
import { Failure, Notice, NothingStored } from '../components/Notice.tsx';
import { absolute, NothingInRange } from '../components/NothingInRange.tsx';
import { Picker } from '../components/Picker.tsx';
import { Share } from '../components/Share.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { formatRange } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { GROUPS, profileType } from '../lib/profile-types.ts';
import { printMatcher, printMatchers } from '../lib/selector.ts';
import { isRelative, type Range } from '../lib/time.ts';
import { createProfile, type ProfileModel } from '../models/profile.ts';
import { createRange } from '../models/range.ts';
import { createUrl, hrefTo, visit, type Url } from '../router.ts';
import { PROFILE, SERVICES } from '../urls.ts';

type ProfileUrl = Url<typeof PROFILE.keys>;

const open = (id: string) => (): void => document.getElementById(id)?.click();

export default function Profile() {
  const url = createUrl(PROFILE);
  const { at, go } = url;
  const time = createRange(at);
  const data = createProfile(at, time);
  const { services: all, types, missing } = data.catalogue;

  // Without a service or a type in the link, the first there is; written to the URL, so that every state is a link.
  createEffect(on([all.data, at.service], ([known, service]) => {
    const first = known?.keys().next().value;
    if (service === '' && first !== undefined) go({ service: first }, { replace: true });
  }));
  createEffect(on([types, at.type], ([known, type]) => {
    if (type === '' && known[0]) go({ type: known[0].id }, { replace: true });
  }));

  const typeChoices = createMemo(() => {
    const ambiguous = (label: string): boolean => types().filter((type) => type.label === label).length > 1;
    const choices = types().map((type) => ({ value: type.id, label: type.label, group: type.group, hint: ambiguous(type.label) ? type.id : '' }));
    return choices.sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group));
  });
  createKeys(() => ({ s: open('pick-service'), p: open('pick-type') }));

  const busy = (): boolean => all.pending() || data.chart.pending() || data.flame.pending();
  const typeMissing = createMemo(() => {
    const type = data.type();
    return all.data() && !all.pending() && !missing() && type !== null && types().length > 0 && !types().some(({ id }) => id === type.id) ? type : null;
  });
  const relative = (): boolean => at.from() === '' || isRelative(at.from()) || isRelative(at.until());

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Profile</h1>
      <div class="bar">
        <Picker
          id="pick-service"
          label="Service"
          placeholder="Find a service"
          value={at.service()}
          shown={at.service()}
          loading={all.pending()}
          choices={[...(all.data()?.keys() ?? [])].map((name) => ({ value: name, label: name }))}
          onPick={(service) => {
            // The type stays when the new service has it; zoom and selection belong to the old picture.
            const keep = all.data()?.get(service)?.includes(at.type()) ?? false;
            go({ service, focus: '', sel: '', ...(keep ? {} : { type: '' }) });
          }}
        />
        <Picker
          id="pick-type"
          label="Profile"
          placeholder="Find a profile type"
          value={at.type()}
          shown={data.type()?.label ?? ''}
          loading={all.pending()}
          choices={typeChoices()}
          onPick={(type) => go({ type, focus: '' })}
        />
        <Filters service={at.service()} matchers={data.matchers().list} range={time.range()} onChange={(matchers) => go({ q: printMatchers(matchers) })} />
        <span class="grow" />
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={go} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
        <Share href={url.href({})} pinned={relative() ? url.href({ ...absolute(time.range()), refresh: null }) : null} />
        <Download query={data.query()} service={at.service()} flame={data.flame.data()?.flame} focus={at.focus()} flip={at.orient() === 'flame'} />
      </div>
      <div class="progress" data-on={busy()} />
      <Show when={data.matchers().error}>
        <div class="banner" role="alert"><span>The filters in the link cannot be read: {data.matchers().error}</span><button type="button" class="button" onClick={() => go({ q: '' })}>Remove them</button></div>
      </Show>
      <Switch>
        <Match when={!all.data() && all.error()}>
          {(error) => <div class="fill"><Failure what="The services could not be read" error={error()} retry={all.retry} /></div>}
        </Match>
        <Match when={missing()}>
          <div class="fill"><Absent data={data} url={url} onRefresh={time.refresh} /></div>
        </Match>
        <Match when={typeMissing()}>
          {(type) => (
            <div class="fill">
              <Notice icon="empty" title={`${at.service()} has no ${type().label} profiles in this range`} actions={<For each={types().slice(0, 6)}>{(other) => <button type="button" class="button" onClick={() => go({ type: other.id }, { replace: true })}>{other.label}</button>}</For>}>
                <p>It has these:</p>
              </Notice>
            </div>
          )}
        </Match>
        <Match when={data.nothingMatches()}>
          <div class="fill"><NothingMatches data={data} url={url} /></div>
        </Match>
        <Match when={true}>
          <ChartPanel
            title={data.type()?.chartTitle ?? ''}
            chart={data.chart}
            labels={data.catalogue.labels}
            by={at.by()}
            table={at.chart() === 'table'}
            note={time.since()}
            onBy={(by) => go({ by })}
            onTable={(table) => go({ chart: table ? 'table' : 'line' }, { replace: true })}
            onZoom={(range: Range) => go(absolute(range))}
            onOnly={(name, value) => go({ by: '', q: printMatchers([...data.matchers().list.filter((matcher) => matcher.name !== name), { name, op: '=', value }]) })}
          />
          <Flames data={data} url={url} />
        </Match>
      </Switch>
    </main>
  );
}

/** The flame graph and its table, or why they are not there. */
function Flames(props: { data: ProfileModel; url: ProfileUrl }) {
  const { at, go } = props.url;
  const { flame } = props.data;
  return (
    <Switch>
      <Match when={!flame.data() && flame.error()}>
        {(error) => <div class="fill"><Failure what="The flame graph could not be made" error={error()} retry={flame.retry} /></div>}
      </Match>
      <Match when={!flame.data()}><FlameSkeleton /></Match>
      <Match when={props.data.onlyZeros()}>
        <div class="fill"><OnlyZeros data={props.data} url={props.url} /></div>
      </Match>
      <Match when={flame.data()}>
        {(answer) => (
          <>
            <Show when={flame.error()}>
              {(error) => <div class="banner" role="alert"><span>This flame graph is older: {error().message}</span><button type="button" class="button" onClick={flame.retry}>Try again</button></div>}
            </Show>
            <Show when={props.data.onlyShares()}>
              {(error) => <div class="banner" role="alert"><span>Values are not known, only shares: they are of the chart's mean, and the chart could not be read: {error().message}</span><button type="button" class="button" onClick={props.data.chart.retry}>Try again</button></div>}
            </Show>
            <Show when={answer().gone && at.focus() !== ''}>
              <div class="banner" role="status"><span>The frame that was zoomed to is not in this range. All frames are shown.</span><button type="button" class="button" onClick={() => go({ focus: '' }, { replace: true })}>Forget it</button></div>
            </Show>
            <FlamePane flame={answer().flame} of={`${at.type()} ${at.service()} ${at.q()}`} amount={props.data.amount()} stale={flame.pending()} at={at} onChange={go} />
          </>
        )}
      </Match>
    </Switch>
  );
}

function Absent(props: { data: ProfileModel; url: ProfileUrl; onRefresh: () => void }) {
  const { at, go } = props.url;
  const { absence } = props.data.catalogue;
  const nearest = (): Range | null | undefined => {
    const found = absence.data();
    return found && 'nearest' in found ? found.nearest : undefined;
  };
  const similar = (): string[] => {
    const found = absence.data();
    return found?.kind === 'no such service' ? found.similar : [];
  };
  const is = (kind: string): boolean => absence.data()?.kind === kind;
  return (
    <Switch>
      <Match when={absence.error()}>{(error) => <Failure what="The store could not be asked what it holds" error={error()} retry={absence.retry} />}</Match>
      <Match when={is('nothing stored')}><NothingStored onRefresh={props.onRefresh} /></Match>
      <Match when={is('nothing in range')}><NothingInRange nearest={nearest()} onRange={go} /></Match>
      <Match when={is('service elsewhere')}><NothingInRange nearest={nearest()} what={`${at.service()} has no profiles in this range`} onRange={go} /></Match>
      <Match when={is('no such service')}>
        <Notice
          icon="compass"
          title={`There is no service ${at.service()}`}
          actions={
            <>
              <For each={similar()}>{(name) => <button type="button" class="button primary" onClick={() => go({ service: name, type: '', focus: '', sel: '' })}>{name}</button>}</For>
              <a class="button" href={hrefTo(SERVICES)} onClick={(event) => (event.preventDefault(), visit(SERVICES))}>All services</a>
            </>
          }
        >
          <p>{similar().length > 0 ? 'Did you mean one of these?' : 'No name is like it. The last 30 days hold nothing of it either.'}</p>
        </Notice>
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
        <p>In this range nothing has all of these labels.</p>
      </Notice>
    </Show>
  );
}

/** Profiles arrive, but nothing was recorded in them: why that may be, and where to look instead. */
function OnlyZeros(props: { data: ProfileModel; url: ProfileUrl }) {
  const type = () => props.data.type() ?? profileType('');
  return (
    <Notice
      icon="empty"
      title={`Only zeros: ${props.url.at.service()} recorded no ${type().label.toLowerCase()} in this range`}
      actions={
        <For each={props.data.catalogue.types().filter(({ id }) => id !== type().id).slice(0, 4)}>
          {(other) => <button type="button" class="button" onClick={() => props.url.go({ type: other.id, focus: '' })}>{other.label}</button>}
        </For>
      }
    >
      <p>The profiles arrive, and all their values are zero. {type().whenZero}</p>
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
