// The Services view: which services there are, what each takes of the fleet's CPU and memory, and how that went.

import { createEffect, createMemo, For, Match, on, onCleanup, onMount, Show, Switch } from 'solid-js';
import { Failure, Notice, NothingStored } from '../components/Notice.tsx';
import { follow } from '../components/Rail.tsx';
import { Icon } from '../components/Icon.tsx';
import { Spark } from '../components/Spark.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { profileTypes, services } from '../lib/api.ts';
import { createRange } from '../lib/clock.ts';
import { formatMoment, formatShare, formatValue, type Unit } from '../lib/format.ts';
import { isTyping } from '../lib/keys.ts';
import { createLoader } from '../lib/loader.ts';
import { nearestRange } from '../lib/nearest.ts';
import { isCpu, isMemoryInUse, profileType } from '../lib/profile-types.ts';
import { go, href, state } from '../lib/router.ts';
import { filterItems } from '../lib/suggest.ts';
import { chartSeries, meanOf, sumOf, sumPoints } from '../lib/series.ts';
import type { Range } from '../lib/time.ts';

interface Measure {
  /** Over the time in which it was measured. */
  mean: number;
  /** What it took in all, which is what a share is of: who ran for a minute took little, however busy. */
  sum: number;
  /** Seconds between points. */
  step: number;
  points: [number, number][];
}

interface Service {
  name: string;
  types: number;
  cpu?: Measure;
  memory?: Measure;
}

/** All services together: `mean` over the time in which any was measured. */
type Whole = Pick<Measure, 'mean' | 'sum'>;

interface Fleet {
  services: Service[];
  cpu: Whole;
  memory: Whole;
  range: Range;
}

/** Charts of services hold few points: they are a hundred pixels wide. */
const POINTS = 60;

async function loadFleet(range: Range, signal: AbortSignal): Promise<Fleet> {
  const found = await services(range, signal);
  const types = [...new Set([...found.values()].flat())];
  const ask = async (wanted: (type: string) => boolean): Promise<Map<string, Measure>> => {
    const answers = await Promise.all(types.filter(wanted).slice(0, 3).map((id) => chartSeries(profileType(id), '{}', range, ['service_name'], POINTS, signal)));
    const out = new Map<string, Measure>();
    for (const name of found.keys()) {
      const lines = answers.flatMap((answer) => answer.lines).filter(({ labels }) => labels.service_name === name);
      const points = sumPoints(lines);
      if (points.length > 0) out.set(name, { points, mean: meanOf(points), sum: sumOf(points), step: Math.max(...answers.map(({ step }) => step)) });
    }
    return out;
  };
  const [cpu, memory] = await Promise.all([ask(isCpu), ask(isMemoryInUse)]);
  const list = [...found].map(([name, its]): Service => {
    const service: Service = { name, types: its.length };
    const ownCpu = cpu.get(name);
    const ownMemory = memory.get(name);
    if (ownCpu) service.cpu = ownCpu;
    if (ownMemory) service.memory = ownMemory;
    return service;
  });
  const whole = (measures: Iterable<Measure>): Whole => {
    const points = sumPoints([...measures]);
    return { mean: meanOf(points), sum: sumOf(points) };
  };
  return { services: list, range, cpu: whole(cpu.values()), memory: whole(memory.values()) };
}

/** What there is to say when the range holds nothing. */
async function whyEmpty(range: Range, signal: AbortSignal): Promise<{ stored: boolean; nearest: Range | null | undefined }> {
  const types = await profileTypes(null, signal);
  const first = types[0];
  if (first === undefined) return { stored: false, nearest: null };
  return { stored: true, nearest: await nearestRange(first, '{}', range, Date.now(), signal) };
}

export function Services() {
  const { range, refresh } = createRange();
  const fleet = createLoader(range, loadFleet);
  const empty = createLoader(() => (fleet.data()?.services.length === 0 ? range() : null), whyEmpty);
  let filter!: HTMLInputElement;

  // Someone who came to the front door of a server with one service wants to see that service.
  const arrived = history.length;
  createEffect(on(fleet.data, (found) => {
    const only = found?.services.length === 1 ? found.services[0] : undefined;
    if (only && history.length === arrived && state().filter === '' && state().service === '') go({ service: only.name }, { to: 'profile', replace: true });
  }));

  const shown = createMemo(() => {
    const all = fleet.data()?.services ?? [];
    const byName = [...all].sort((a, b) => a.name.localeCompare(b.name));
    if (state().sort !== 'name') byName.sort((a, b) => (b.cpu?.sum ?? 0) - (a.cpu?.sum ?? 0) || (b.memory?.sum ?? 0) - (a.memory?.sum ?? 0));
    const hits = new Set(filterItems(byName, state().filter, ({ name }) => name));
    return byName.filter((service) => hits.has(service));
  });
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== '/' || isTyping(event)) return;
    event.preventDefault();
    filter.focus();
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

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Services</h1>
        <Show when={(fleet.data()?.services.length ?? 0) > 0}>
          <div class="facts wide-only">
            <span><b>{fleet.data()!.services.length}</b> services</span>
            <Show when={fleet.data()!.cpu.sum > 0}><span><b>{formatValue(fleet.data()!.cpu.mean, 'cores')}</b> of CPU</span></Show>
            <Show when={fleet.data()!.memory.sum > 0}><span><b>{formatValue(fleet.data()!.memory.mean, 'bytes')}</b> in use</span></Show>
          </div>
        </Show>
        <span class="grow" />
        <span class="with-icon filter-box">
          <Icon name="search" />
          <input ref={filter} class="field" type="search" aria-label="Filter services" placeholder="Filter services" spellcheck={false} value={state().filter} onInput={(event) => go({ filter: event.currentTarget.value }, { replace: true })} />
        </span>
        <div class="group" role="group" aria-label="Order">
          <button type="button" class="button" aria-pressed={state().sort !== 'name'} onClick={() => go({ sort: '' }, { replace: true })}>Biggest</button>
          <button type="button" class="button" aria-pressed={state().sort === 'name'} onClick={() => go({ sort: 'name' }, { replace: true })}>Name</button>
        </div>
        <TimeControls range={range()} busy={fleet.pending()} onRefresh={refresh} />
      </div>
      <div class="progress" data-on={fleet.pending()} />
      <Show when={fleet.error() && fleet.data()}>
        <div class="banner" role="alert"><span>The last refresh failed: {fleet.error()!.message}</span><button type="button" class="button" onClick={fleet.retry}>Try again</button></div>
      </Show>
      <div class="content" classList={{ stale: fleet.pending() && fleet.data() !== undefined }}>
        <Switch>
          <Match when={fleet.error() && !fleet.data()}><Failure what="The services could not be read" error={fleet.error()!} retry={fleet.retry} /></Match>
          <Match when={!fleet.data()}>
            <div class="cards" aria-busy="true">
              <For each={[0, 1, 2, 3, 4, 5]}>{() => <div class="skeleton card-skeleton" />}</For>
            </div>
          </Match>
          <Match when={fleet.data()!.services.length === 0}>
            <Switch>
              <Match when={empty.error()}><Failure what="The store could not be asked what it holds" error={empty.error()!} retry={empty.retry} /></Match>
              <Match when={empty.data() && !empty.data()!.stored}><NothingStored /></Match>
              <Match when={empty.data()}>
                <NothingInRange nearest={empty.data()!.nearest} />
              </Match>
            </Switch>
          </Match>
          <Match when={shown().length === 0}>
            <Notice icon="search" title="No service matches the filter" actions={<button type="button" class="button" onClick={() => go({ filter: '' }, { replace: true })}>Clear the filter</button>} />
          </Match>
          <Match when={true}>
            <ul class="cards">
              <For each={shown()}>{(service) => <Card service={service} fleet={fleet.data()!} />}</For>
            </ul>
          </Match>
        </Switch>
      </div>
    </main>
  );
}

/** Nothing in this range, and the nearest range that has something. */
export function NothingInRange(props: { nearest: Range | null | undefined; what?: string }) {
  return (
    <Notice
      icon="clock"
      title={props.what ?? 'Nothing in this range'}
      actions={
        <>
          <Show when={props.nearest}>
            {(range) => (
              <button type="button" class="button primary" onClick={() => go({ from: String(Math.round(range().start)), until: String(Math.round(range().end)) })}>
                Show {formatMoment(range().start)} – {formatMoment(range().end)}
              </button>
            )}
          </Show>
          <Show when={state().from !== 'now-1h' || state().until !== 'now'}><button type="button" class="button" onClick={() => go({ from: 'now-1h', until: 'now' })}>Last hour</button></Show>
          <button type="button" class="button" onClick={() => go({ from: 'now-1d', until: 'now' })}>Last 24 hours</button>
        </>
      }
    >
      <p>{props.nearest ? 'The nearest profiles are from another time.' : props.nearest === null ? 'No profiles of the last 30 days were found either. Check that the collector runs and sends.' : 'Try another range.'}</p>
    </Notice>
  );
}

function Card(props: { service: Service; fleet: Fleet }) {
  // The share is that of CPU; of memory where nobody measures CPU.
  const share = (): number => (props.fleet.cpu.sum > 0 ? (props.service.cpu?.sum ?? 0) / props.fleet.cpu.sum : props.fleet.memory.sum > 0 ? (props.service.memory?.sum ?? 0) / props.fleet.memory.sum : 0);
  const patch = (): { service: string; filter: string; sort: string } => ({ service: props.service.name, filter: '', sort: '' });
  const measure = (label: string, unit: Unit, value: Measure | undefined, style: string) => (
    <div class="measure">
      <div class="label"><span>{label}</span><Show when={value}><b>{formatValue(value!.mean, unit)}</b></Show></div>
      <Show when={value && value.points.length > 0} fallback={<div class="spark-none">not measured</div>}>
        <Spark class={style} points={value!.points} range={props.fleet.range} step={value!.step} label={`${label} of ${props.service.name} over time`} />
      </Show>
    </div>
  );
  return (
    <li>
      <a class="card" href={href(patch(), 'profile')} onClick={(event) => follow(event, () => go(patch(), { to: 'profile' }))}>
        <header>
          <h2 title={props.service.name}>{props.service.name}</h2>
          <span class="share" title={props.fleet.cpu.sum > 0 ? 'Share of the fleet in CPU' : 'Share of the fleet in memory'}>{formatShare(share())} of fleet</span>
        </header>
        <div class="meter"><i style={{ width: `${share() * 100}%` }} /></div>
        <div class="measures">
          {measure('CPU', 'cores', props.service.cpu, 'cpu')}
          {measure('Memory', 'bytes', props.service.memory, 'memory')}
        </div>
      </a>
    </li>
  );
}
