// The Services view: each service with its share of the fleet's CPU, memory or cost, and its use over time. It shows cards, a
// table, or a map, optionally grouped by a label.

import { createEffect, createMemo, For, Match, on, Show, Switch } from 'solid-js';
import { Amount } from '../components/Amount.tsx';
import { GroupBy } from '../components/GroupBy.tsx';
import { Icon } from '../components/Icon.tsx';
import { Failure, Notice, NothingStored } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { PricesForm } from '../components/PricesForm.tsx';
import { Radios, type Radio } from '../components/Radios.tsx';
import { ServiceCards } from '../components/ServiceCards.tsx';
import { ServiceMap } from '../components/ServiceMap.tsx';
import { ServiceTable } from '../components/ServiceTable.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { WholeSteps } from '../components/WholeSteps.tsx';
import { formatCost, type Prices } from '../lib/cost.ts';
import { formatWhole } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import type { Values } from '../lib/schema.ts';
import { printMatchers } from '../lib/selector.ts';
import { filterItems } from '../lib/suggest.ts';
import { createFleet } from '../models/fleet.ts';
import { createRange } from '../models/range.ts';
import { createPrices, groupsOf, rank, type RankedService } from '../models/ranked.ts';
import { createUrl, follow, hrefTo, visit } from '../router.ts';
import { PROFILE, SEND, SERVICES } from '../urls.ts';

const ORDERS = [['cpu', 'CPU'], ['memory', 'Memory'], ['cost', 'Cost'], ['name', 'Name']] as const;
const WAYS: readonly Radio<Values<typeof SERVICES.keys>['show']>[] = [
  { value: 'cards', label: 'Services as cards', text: 'Cards' },
  { value: 'table', label: 'Services as a table', text: 'Table' },
  { value: 'map', label: 'Services as a map of their shares', text: 'Map' },
];

export default function Services() {
  const { at, go } = createUrl(SERVICES);
  const time = createRange(at);
  const { fleet, empty } = createFleet(time.range, at.group);
  const data = fleet.data;
  const count = createMemo(() => new Set((data()?.services ?? []).map(({ name }) => name)).size);
  let filter!: HTMLInputElement;

  // If the server has only one service, the front page opens that service at once.
  const arrived = history.length;
  createEffect(on(data, (found) => {
    const only = found?.label === '' && found.services.length === 1 ? found.services[0] : undefined;
    if (only && history.length === arrived && at.filter() === '') visit(PROFILE, { service: only.name }, { replace: true });
  }));
  createKeys(() => ({ '/': () => filter.focus() }));

  const prices = createPrices(() => at.sort() === 'cost');
  const known = (): Prices | null => prices.data() ?? null;
  const ranked = createMemo(() => {
    const found = data();
    return found && rank(found, at.sort(), known());
  });
  const shown = createMemo((): readonly RankedService[] => {
    const all = ranked()?.services ?? [];
    if (at.filter() === '') return all;
    const hits = new Set(filterItems(all, at.filter(), ({ name, group }) => `${name} ${group}`));
    return all.filter((service) => hits.has(service));
  });
  const groups = createMemo(() => groupsOf(shown(), at.sort()));
  // The link to a service has no filters except the value of the group that the service is shown in.
  const profileOf = ({ name, group }: RankedService, type = '') => ({ service: name, type, q: printMatchers(data()?.label ? [{ name: data()!.label, op: '=', value: group }] : []) });
  const links = { href: (service: RankedService, type?: string): string => hrefTo(PROFILE, profileOf(service, type)), onFollow: follow };
  const open = (service: RankedService): void => visit(PROFILE, profileOf(service));

  return (
    <main class="view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Services</h1>
        <Show when={data()?.services.length ? data() : undefined}>
          {(found) => (
            <div class="facts wide-only">
              <span><b>{formatWhole(count())}</b> {count() === 1 ? 'service' : 'services'}</span>
              <Show when={found().cpu.sum > 0}><span><Amount value={found().cpu.mean} unit="cores" /> of CPU</span></Show>
              <Show when={found().memory.sum > 0}><span><Amount value={found().memory.mean} unit="bytes" /> in use</span></Show>
              <Show when={ranked()?.cost}>{(cost) => <span title="Projected cost of a month of 730 hours with the same use as in this range"><b>{formatCost(cost(), known()!)}</b> a month</span>}</Show>
            </div>
          )}
        </Show>
        <span class="grow" />
        <span class="with-icon filter-box">
          <Icon name="search" />
          <input ref={filter} class="field" type="search" aria-label="Filter services" placeholder="Filter services" spellcheck={false} value={at.filter()} onInput={(event) => go({ filter: event.currentTarget.value }, { replace: true })} />
        </span>
        <GroupBy label={at.group()} range={time.range()} onPick={(group) => go({ group })} />
        <div class="group" role="group" aria-label="Sort by">
          <For each={ORDERS}>{([sort, label]) => <button type="button" class="button" aria-pressed={at.sort() === sort} onClick={() => go({ sort }, { replace: true })}>{label}</button>}</For>
        </div>
        <Show when={at.sort() === 'cost' && prices.data() !== undefined}><PricesForm prices={known()} onKeep={prices.keep} /></Show>
        <Radios label="Services shown as" choices={WAYS} value={at.show()} onChoose={(show) => go({ show }, { replace: true })} />
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={go} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
      </div>
      <div class="progress" data-on={fleet.pending()} />
      <Show when={data() && fleet.error()}>
        {(error) => <div class="banner" role="alert"><span>The refresh failed, older data is shown: {error().message}</span><button type="button" class="button" onClick={fleet.retry}>Try again</button></div>}
      </Show>
      <Show when={at.sort() === 'cost' && prices.error()}>
        {(error) => <div class="banner" role="alert"><span>Cannot load the prices: {error().message}</span><button type="button" class="button" onClick={prices.retry}>Try again</button></div>}
      </Show>
      <Show when={at.sort() === 'cost' && prices.data() === null}>
        <div class="banner plain" role="status"><span>Set the price of a core-hour and of a GiB-hour to see costs. Until then, services are sorted by CPU.</span></div>
      </Show>
      <div class="content" classList={{ 'services-whole': at.show() !== 'cards' }} aria-busy={fleet.pending()}>
        <Switch>
          <Match when={!data() && fleet.error()}>{(error) => <Failure what="Cannot load the services" error={error()} retry={fleet.retry} />}</Match>
          <Match when={!data()}>
            <div class="cards" aria-busy="true">
              <For each={[0, 1, 2, 3, 4, 5]}>{() => <div class="skeleton card-skeleton" />}</For>
            </div>
          </Match>
          <Match when={data()?.services.length === 0}>
            <Switch>
              <Match when={empty.error()}>{(error) => <Failure what="Cannot find out what is stored" error={error()} retry={empty.retry} />}</Match>
              <Match when={empty.data()?.stored === false}><NothingStored send={hrefTo(SEND)} onFollow={follow} onRefresh={time.refresh} /></Match>
              <Match when={empty.data()}>{(found) => <NothingInRange nearest={found().nearest} onRange={go} />}</Match>
            </Switch>
          </Match>
          <Match when={shown().length === 0}>
            <Notice icon="search" title="No service matches the filter" actions={<button type="button" class="button" onClick={() => go({ filter: '' }, { replace: true })}>Clear the filter</button>} />
          </Match>
          <Match when={ranked()}>
            {(found) => (
              <>
                <WholeSteps range={data()!.range} step={data()!.step} />
                <Switch fallback={<ServiceCards groups={groups()} label={data()!.label} what={found().what} prices={known()} range={data()!.range} {...links} />}>
                  <Match when={at.show() === 'table'}>
                    <ServiceTable ranked={found()} services={shown()} label={data()!.label} order={at.sort()} prices={known()} onOrder={(sort) => go({ sort }, { replace: true })} onOpen={open} />
                  </Match>
                  <Match when={at.show() === 'map' && groups().every(({ size }) => size === 0)}>
                    <Notice icon="services" title={`No service has a share of ${found().what}`}><p>The table also lists services without measurements.</p></Notice>
                  </Match>
                  <Match when={at.show() === 'map'}><ServiceMap groups={groups()} label={data()!.label} what={found().what} prices={known()} {...links} /></Match>
                </Switch>
              </>
            )}
          </Match>
        </Switch>
      </div>
    </main>
  );
}
