// The Services view: which services there are, what each takes of the fleet's CPU and memory, and how that went.

import { createEffect, createMemo, For, Match, on, Show, Switch } from 'solid-js';
import { Amount } from '../components/Amount.tsx';
import { Icon } from '../components/Icon.tsx';
import { Failure, Notice, NothingStored } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { ServiceCard } from '../components/ServiceCard.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { createKeys } from '../lib/keys.ts';
import { filterItems } from '../lib/suggest.ts';
import { createFleet, type Fleet, type Resource, type Service } from '../models/fleet.ts';
import { createRange } from '../models/range.ts';
import { createUrl, follow, hrefTo, visit } from '../router.ts';
import { PROFILE, SEND, SERVICES } from '../urls.ts';

const ORDERS = [['cpu', 'CPU'], ['memory', 'Memory'], ['name', 'Name']] as const;

export default function Services() {
  const { at, go } = createUrl(SERVICES);
  const time = createRange(at);
  const { fleet, empty } = createFleet(time.range);
  const data = fleet.data;
  let filter!: HTMLInputElement;

  // Someone who came to the front door of a server with one service wants to see that service.
  const arrived = history.length;
  createEffect(on(data, (found) => {
    const only = found?.services.length === 1 ? found.services[0] : undefined;
    if (only && history.length === arrived && at.filter() === '') visit(PROFILE, { service: only.name }, { replace: true });
  }));
  createKeys(() => ({ '/': () => filter.focus() }));

  /** What shares are of: what is sorted by, else what somebody measures. */
  const resource = (found: Fleet): Resource => (at.sort() === 'memory' || found.cpu.sum === 0 ? 'memory' : 'cpu');
  const shown = createMemo((): Service[] => {
    const all = [...(data()?.services ?? [])].sort((a, b) => a.name.localeCompare(b.name));
    const sort = at.sort();
    if (sort !== 'name') {
      const other = sort === 'cpu' ? 'memory' : 'cpu';
      all.sort((a, b) => (b[sort]?.sum ?? -1) - (a[sort]?.sum ?? -1) || (b[other]?.sum ?? -1) - (a[other]?.sum ?? -1));
    }
    const hits = new Set(filterItems(all, at.filter(), ({ name }) => name));
    return all.filter((service) => hits.has(service));
  });
  // Cards are known by their name, so that a refresh draws only what has changed.
  const byName = createMemo(() => new Map(shown().map((service) => [service.name, service])));

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Services</h1>
        <Show when={data()?.services.length ? data() : undefined}>
          {(found) => (
            <div class="facts wide-only">
              <span><b>{found().services.length}</b> {found().services.length === 1 ? 'service' : 'services'}</span>
              <Show when={found().cpu.sum > 0}><span><Amount value={found().cpu.mean} unit="cores" /> of CPU</span></Show>
              <Show when={found().memory.sum > 0}><span><Amount value={found().memory.mean} unit="bytes" /> in use</span></Show>
            </div>
          )}
        </Show>
        <span class="grow" />
        <span class="with-icon filter-box">
          <Icon name="search" />
          <input ref={filter} class="field" type="search" aria-label="Filter services" placeholder="Filter services" spellcheck={false} value={at.filter()} onInput={(event) => go({ filter: event.currentTarget.value }, { replace: true })} />
        </span>
        <div class="group" role="group" aria-label="Sort by">
          <For each={ORDERS}>{([sort, label]) => <button type="button" class="button" aria-pressed={at.sort() === sort} onClick={() => go({ sort }, { replace: true })}>{label}</button>}</For>
        </div>
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={go} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
      </div>
      <div class="progress" data-on={fleet.pending()} />
      <Show when={data() && fleet.error()}>
        {(error) => <div class="banner" role="alert"><span>The last refresh failed: {error().message}</span><button type="button" class="button" onClick={fleet.retry}>Try again</button></div>}
      </Show>
      <div class="content" aria-busy={fleet.pending()}>
        <Switch>
          <Match when={!data() && fleet.error()}>{(error) => <Failure what="The services could not be read" error={error()} retry={fleet.retry} />}</Match>
          <Match when={!data()}>
            <div class="cards" aria-busy="true">
              <For each={[0, 1, 2, 3, 4, 5]}>{() => <div class="skeleton card-skeleton" />}</For>
            </div>
          </Match>
          <Match when={data()?.services.length === 0}>
            <Switch>
              <Match when={empty.error()}>{(error) => <Failure what="The store could not be asked what it holds" error={error()} retry={empty.retry} />}</Match>
              <Match when={empty.data()?.stored === false}><NothingStored send={hrefTo(SEND)} onFollow={follow} onRefresh={time.refresh} /></Match>
              <Match when={empty.data()}>{(found) => <NothingInRange nearest={found().nearest} onRange={go} />}</Match>
            </Switch>
          </Match>
          <Match when={shown().length === 0}>
            <Notice icon="search" title="No service matches the filter" actions={<button type="button" class="button" onClick={() => go({ filter: '' }, { replace: true })}>Clear the filter</button>} />
          </Match>
          <Match when={data()}>
            {(found) => (
              <ul class="cards">
                <For each={[...byName().keys()]}>
                  {(name) => (
                    <Show when={byName().get(name)}>
                      {/* Another service: its filters are its own. */}
                      {(service) => <ServiceCard service={service()} fleet={found()} by={resource(found())} href={(type = '') => hrefTo(PROFILE, { service: name, type, q: '' })} onFollow={follow} />}
                    </Show>
                  )}
                </For>
              </ul>
            )}
          </Match>
        </Switch>
      </div>
    </main>
  );
}
