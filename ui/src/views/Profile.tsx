// The Profile view: which service, which profile, which filters, when; the time chart, and below it flame graph and table.

import { createEffect, createMemo, createResource, For, Match, on, onCleanup, onMount, Show, Switch } from 'solid-js';
import { Chart } from '../components/Chart.tsx';
import { Filters } from '../components/Filters.tsx';
import { Icon } from '../components/Icon.tsx';
import { Menu, type Action } from '../components/Menu.tsx';
import { Failure, Notice, NothingStored } from '../components/Notice.tsx';
import { Picker } from '../components/Picker.tsx';
import { Popover } from '../components/Popover.tsx';
import { Share } from '../components/Share.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { collapsed } from '../flame/layout.ts';
import { labelNames, mergedPprof } from '../lib/api.ts';
import { createRange } from '../lib/clock.ts';
import { formatMoment, formatValue } from '../lib/format.ts';
import { isTyping } from '../lib/keys.ts';
import { saveFile } from '../lib/pprof.ts';
import { GROUPS, profileType } from '../lib/profile-types.ts';
import { go, state } from '../lib/router.ts';
import { printMatcher, printMatchers } from '../lib/selector.ts';
import { say } from '../lib/toast.ts';
import type { Range } from '../lib/time.ts';
import { FlamePane } from './FlamePane.tsx';
import { createProfileData } from './profile-data.ts';
import { NothingInRange } from './Services.tsx';

export function Profile() {
  const { range, refresh } = createRange();
  const data = createProfileData(range);

  // Without a service or a type in the link, the first there is; written to the URL, so that every state is a link.
  createEffect(on([data.all.data, data.service], ([all, service]) => {
    const first = all?.keys().next().value;
    if (service === '' && first !== undefined) go({ service: first }, { replace: true });
  }));
  createEffect(on([data.types, () => state().type], ([types, type]) => {
    if (type === '' && types[0]) go({ type: types[0].id }, { replace: true });
  }));

  const typeChoices = createMemo(() =>
    data.types().map((type) => ({ value: type.id, label: type.label, group: type.group, hint: ambiguous(type.label) ? type.id : '' })),
  );
  const ambiguous = (label: string): boolean => data.types().filter((type) => type.label === label).length > 1;
  const groupChoices = createMemo(() => typeChoices().sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group)));

  const keys = (event: KeyboardEvent): void => {
    if (isTyping(event) || event.defaultPrevented) return;
    const id = { s: 'pick-service', p: 'pick-type' }[event.key];
    if (!id) return;
    event.preventDefault();
    document.getElementById(id)?.click();
  };
  const manual = (event: Event): void => {
    if ((event as CustomEvent<string>).detail === 'refresh') refresh();
  };
  onMount(() => {
    document.addEventListener('keydown', keys);
    document.addEventListener('alluvium', manual);
    onCleanup(() => {
      document.removeEventListener('keydown', keys);
      document.removeEventListener('alluvium', manual);
    });
  });

  const busy = (): boolean => data.all.pending() || data.chart.pending() || data.flame.pending();
  const lost = (): boolean => data.missing() !== null;
  const typeMissing = createMemo(() => {
    const type = data.type();
    return data.all.data() && !data.all.pending() && !lost() && type !== null && data.types().length > 0 && !data.types().some(({ id }) => id === type.id) ? type : null;
  });
  const zoomTime = (to: Range): void => go({ from: String(Math.round(to.start)), until: String(Math.round(to.end)) });

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Profile</h1>
      <div class="bar">
        <Picker
          id="pick-service"
          label="Service"
          placeholder="Find a service"
          value={state().service}
          shown={state().service}
          loading={data.all.pending()}
          choices={[...(data.all.data()?.keys() ?? [])].map((name) => ({ value: name, label: name }))}
          onPick={(service) => {
            // The type stays when the new service has it; zoom and selection belong to the old picture.
            const keep = data.all.data()?.get(service)?.includes(state().type) ?? false;
            go({ service, focus: '', sel: '', ...(keep ? {} : { type: '' }) });
          }}
        />
        <Picker
          id="pick-type"
          label="Profile"
          placeholder="Find a profile type"
          value={state().type}
          shown={state().type === '' ? '' : profileType(state().type).label}
          loading={data.all.pending()}
          choices={groupChoices()}
          onPick={(type) => go({ type, focus: '' })}
        />
        <Filters
          service={state().service}
          matchers={data.matchers().list}
          range={range()}
          onChange={(matchers) => go({ q: printMatchers(matchers) })}
        />
        <span class="grow" />
        <TimeControls range={range()} busy={busy()} onRefresh={refresh} />
        <Share range={range()} />
        <Download data={data} range={range()} />
      </div>
      <div class="progress" data-on={busy()} />
      <Show when={data.matchers().error}>
        <div class="banner" role="alert"><span>The filters in the link cannot be read: {data.matchers().error}</span><button type="button" class="button" onClick={() => go({ q: '' })}>Remove them</button></div>
      </Show>
      <Switch>
        <Match when={data.all.error() && !data.all.data()}>
          <div class="fill"><Failure what="The services could not be read" error={data.all.error()!} retry={data.all.retry} /></div>
        </Match>
        <Match when={lost()}>
          <div class="fill"><Absent data={data} /></div>
        </Match>
        <Match when={typeMissing()}>
          {(type) => (
            <div class="fill">
              <Notice icon="empty" title={`${state().service} has no ${type().label} profiles in this range`} actions={<For each={data.types().slice(0, 6)}>{(other) => <button type="button" class="button" onClick={() => go({ type: other.id }, { replace: true })}>{other.label}</button>}</For>}>
                <p>It has these:</p>
              </Notice>
            </div>
          )}
        </Match>
        <Match when={data.nothingMatches()}>
          <div class="fill">
            <Show
              when={data.matchers().list.length > 0}
              fallback={<NothingInRange nearest={data.nearest.data()} what={`No ${data.type()?.label ?? ''} profiles of ${state().service} in this range`} />}
            >
              <Notice
                icon="empty"
                title="No profile matches the filters"
                actions={
                  <>
                    <For each={data.matchers().list}>
                      {(matcher) => (
                        <button type="button" class="button" onClick={() => go({ q: printMatchers(data.matchers().list.filter((other) => other !== matcher)) })}>Without {printMatcher(matcher)}</button>
                      )}
                    </For>
                    <Show when={data.nearest.data()}>
                      {(to) => <button type="button" class="button primary" onClick={() => zoomTime(to())}>Show {formatMoment(to().start)} – {formatMoment(to().end)}</button>}
                    </Show>
                  </>
                }
              >
                <p>In this range nothing has all of these labels.</p>
              </Notice>
            </Show>
          </div>
        </Match>
        <Match when={true}>
          <ChartPanel data={data} range={range()} onZoom={zoomTime} />
          <Switch>
            <Match when={data.flame.error() && !data.flame.data()}>
              <div class="fill"><Failure what="The flame graph could not be made" error={data.flame.error()!} retry={data.flame.retry} /></div>
            </Match>
            <Match when={!data.flame.data()}><FlameSkeleton /></Match>
            <Match when={data.onlyZeros()}>
              <div class="fill"><OnlyZeros data={data} /></div>
            </Match>
            <Match when={data.flame.data()}>
              {(answer) => (
                <>
                  <Show when={data.flame.error()}>
                    {(error) => <div class="banner" role="alert"><span>This picture is older: {error().message}</span><button type="button" class="button" onClick={data.flame.retry}>Try again</button></div>}
                  </Show>
                  <FlamePane flame={answer().flame} amount={data.amount()} stale={data.flame.pending()} />
                </>
              )}
            </Match>
          </Switch>
        </Match>
      </Switch>
    </main>
  );
}

type Data = ReturnType<typeof createProfileData>;

function ChartPanel(props: { data: Data; range: Range; onZoom: (range: Range) => void }) {
  // Asked anew for another service or range, not for every letter of a search.
  const wanted = createMemo(() => props.data.query());
  const [labels] = createResource(wanted, (query) => labelNames(query.selector, query.range).catch(() => [] as string[]));
  const chart = props.data.chart;
  const type = () => props.data.type();
  const choices = createMemo(() => [{ value: '', label: 'no label' }, ...(labels.latest ?? []).filter((name) => name !== 'service_name').map((name) => ({ value: name, label: name }))]);
  return (
    <section class="panel" aria-label="Over time">
      <div class="panel-head">
        <h2>{type()?.chartTitle ?? ''}</h2>
        <Show when={chart.data() && chart.data()!.lines.length > 0}>
          <div class="facts">
            <span>mean <b>{formatValue(chart.data()!.mean, type()?.chartUnit ?? 'count')}</b></span>
            <span>max <b>{formatValue(chart.data()!.max, type()?.chartUnit ?? 'count')}</b></span>
          </div>
        </Show>
        <span class="spring" />
        <Picker label="Split by" placeholder="Find a label" value={state().by} shown={state().by || 'no label'} choices={choices()} loading={labels.loading} onPick={(by) => go({ by })} />
      </div>
      <Show
        when={!chart.error() || chart.data()}
        fallback={<div class="chart"><div class="chart-empty"><span role="alert">{chart.error()?.message} <button type="button" class="button" onClick={chart.retry}>Try again</button></span></div></div>}
      >
        <Show when={chart.data()} fallback={<div class="chart"><div class="skeleton chart-skeleton" /></div>}>
          {(found) => (
            <div classList={{ stale: chart.pending() }}>
              <Chart lines={found().lines} range={props.range} step={found().step} unit={type()?.chartUnit ?? 'count'} title={type()?.chartTitle ?? ''} onZoom={props.onZoom} />
              <Show when={state().by !== ''}>
                <div class="legend" role="group" aria-label="Lines">
                  <For each={found().lines}>
                    {(line) => (
                      <button type="button" title={line.value === undefined ? '' : `Only ${state().by}=${line.value}`} disabled={line.value === undefined} onClick={() => props.data.only(state().by, line.value!)}>
                        <i class="swatch" style={{ background: line.colour.startsWith('--') ? `var(${line.colour})` : line.colour }} />
                        {line.label}
                      </button>
                    )}
                  </For>
                </div>
              </Show>
            </div>
          )}
        </Show>
      </Show>
    </section>
  );
}

function Absent(props: { data: Data }) {
  const found = () => props.data.absence.data();
  const nearest = (): Range | null | undefined => {
    const absence = found();
    return absence && 'nearest' in absence ? absence.nearest : undefined;
  };
  const similar = (): string[] => {
    const absence = found();
    return absence?.kind === 'no such service' ? absence.similar : [];
  };
  return (
    <Switch>
      <Match when={props.data.absence.error()}><Failure what="The store could not be asked what it holds" error={props.data.absence.error()!} retry={props.data.absence.retry} /></Match>
      <Match when={found()?.kind === 'nothing stored'}><NothingStored /></Match>
      <Match when={found()?.kind === 'nothing in range'}><NothingInRange nearest={nearest()} /></Match>
      <Match when={found()?.kind === 'service elsewhere'}><NothingInRange nearest={nearest()} what={`${state().service} has no profiles in this range`} /></Match>
      <Match when={found()?.kind === 'no such service'}>
        <Notice
          icon="compass"
          title={`There is no service ${state().service}`}
          actions={
            <>
              <For each={similar()}>{(name) => <button type="button" class="button primary" onClick={() => go({ service: name, type: '', focus: '', sel: '' })}>{name}</button>}</For>
              <button type="button" class="button" onClick={() => go({ service: '', type: '' }, { to: 'services' })}>All services</button>
            </>
          }
        >
          <p>{similar().length > 0 ? 'Did you mean one of these?' : 'No name is like it. The last 30 days hold nothing of it either.'}</p>
        </Notice>
      </Match>
    </Switch>
  );
}

/** Profiles arrive, but nothing was recorded in them: why that may be, and where to look instead. */
function OnlyZeros(props: { data: Data }) {
  const type = () => props.data.type();
  return (
    <Notice
      icon="empty"
      title={`Only zeros: ${state().service} recorded no ${type()?.label.toLowerCase() ?? 'samples'} in this range`}
      actions={
        <For each={props.data.types().filter(({ id }) => id !== type()?.id).slice(0, 4)}>
          {(other) => <button type="button" class="button" onClick={() => go({ type: other.id, focus: '' })}>{other.label}</button>}
        </For>
      }
    >
      <p>The profiles arrive, and all their values are zero. {type()?.whenZero ?? ''}</p>
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

function Download(props: { data: Data; range: Range }) {
  const name = (): string => {
    const stamp = new Date(props.range.start).toISOString().slice(0, 16).replace(/:/g, '');
    return `${state().service}.${state().type.split(':').slice(0, 2).join('.')}.${stamp}`.replace(/[^\w.-]+/g, '_');
  };
  const pprof = async (): Promise<void> => {
    const query = props.data.query();
    if (!query) return;
    try {
      saveFile(await mergedPprof(query.type.id, query.selector, query.range), `${name()}.pb.gz`);
    } catch (error) {
      say(`The download failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  const actions = (): Action[] => [
    { label: 'pprof', hint: '.pb.gz', run: () => void pprof() },
    { label: 'Collapsed stacks', hint: '.txt', run: () => {
      const answer = props.data.flame.data();
      if (answer) saveFile(new Blob([collapsed(answer.flame)], { type: 'text/plain' }), `${name()}.txt`);
    } },
    { label: 'Picture', hint: '.png', run: () => {
      document.querySelector<HTMLCanvasElement>('.flame canvas')?.toBlob((blob) => blob && saveFile(blob, `${name()}.png`));
    } },
  ];
  return (
    <Popover label="Download" haspopup="menu" class="button square" align="right" title="Download" disabled={!props.data.flame.data()} trigger={<Icon name="download" />}>
      {(close) => <Menu label="Download" actions={actions()} close={close} />}
    </Popover>
  );
}
