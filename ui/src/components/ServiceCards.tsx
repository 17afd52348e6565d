// Cards of services, in groups if there are any. If there are many services, cards are created only down to the scroll position.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from 'solid-js';
import { formatCost, type Prices } from '../lib/cost.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { printing } from '../lib/printing.ts';
import type { Range } from '../lib/time.ts';
import { together, type Group, type Ranked } from '../models/ranked.ts';
import { Amount } from './Amount.tsx';
import { ServiceCard, type ServiceLinks } from './ServiceCard.tsx';

export interface ServiceCardsProps extends ServiceLinks {
  groups: readonly Group[];
  /** The label that services are grouped by, empty for none. */
  label: string;
  what: Ranked['what'];
  prices: Prices | null;
  range: Range;
}

/** Number of cards that are added at a time. In print, at least `PRINTED` cards are shown, or all if there are fewer. */
const CHUNK = 60;
const PRINTED = 200;

export function ServiceCards(props: ServiceCardsProps) {
  const [limit, setLimit] = createSignal(CHUNK);
  const all = createMemo(() => props.groups.reduce((sum, { services }) => sum + services.length, 0));
  // Groups and cards are keyed by name, so that a refresh draws only what has changed.
  const groups = createMemo(() => {
    let left = printing() ? Math.max(PRINTED, limit()) : limit();
    const out = new Map<string, { group: Group; keys: readonly string[] }>();
    for (const group of props.groups) {
      if (left <= 0) break;
      const keys = group.services.slice(0, left).map(({ key }) => key);
      left -= keys.length;
      out.set(group.name, { group, keys });
    }
    return out;
  });
  const byKey = createMemo(() => new Map(props.groups.flatMap(({ services }) => services.map((service) => [service.key, service] as const))));
  const cost = (amount: number | null): string => (amount === null || props.prices === null ? '' : formatCost(amount, props.prices));
  return (
    <>
      <For each={[...groups().keys()]}>
        {(name) => (
          <Show when={groups().get(name)}>
            {(found) => (
              <section class="service-group" aria-label={props.label === '' ? 'Services' : `${props.label} ${name || '(none)'}`}>
                <Show when={props.label !== ''}><GroupHead group={found().group} label={props.label} what={props.what} cost={cost(sumOf(found().group))} /></Show>
                <ul class="cards">
                  <For each={found().keys}>
                    {(key) => (
                      <Show when={byKey().get(key)}>
                        {(service) => <ServiceCard service={service()} range={props.range} what={props.what} cost={cost(service().cost)} href={props.href} onFollow={props.onFollow} />}
                      </Show>
                    )}
                  </For>
                </ul>
              </section>
            )}
          </Show>
        )}
      </For>
      <Show when={all() > limit()}><More left={all() - limit()} onMore={() => setLimit((before) => before + CHUNK)} /></Show>
    </>
  );
}

const sumOf = ({ services }: Group): number | null => services.reduce<number | null>((sum, { cost }) => (cost === null ? sum : (sum ?? 0) + cost), null);

function GroupHead(props: { group: Group; label: string; what: Ranked['what']; cost: string }) {
  const cpu = createMemo(() => together(props.group.services, 'cpu'));
  const memory = createMemo(() => together(props.group.services, 'memory'));
  return (
    <header class="group-head">
      <h2><span class="muted">{props.label}</span> {props.group.name || '(none)'}</h2>
      <div class="facts">
        <span><b>{formatWhole(props.group.services.length)}</b> {props.group.services.length === 1 ? 'service' : 'services'}</span>
        <Show when={cpu()}>{(value) => <span><Amount value={value()} unit="cores" /></span>}</Show>
        <Show when={memory()}>{(value) => <span><Amount value={value()} unit="bytes" /></span>}</Show>
        <Show when={props.group.share !== null}><span><b>{formatShare(props.group.share ?? 0)}</b> of {props.what}</span></Show>
        <Show when={props.cost}><span><b>{props.cost}</b> a month</span></Show>
      </div>
    </header>
  );
}

/** A button that adds more cards when it is scrolled near the visible part, or when it is pressed. */
function More(props: { left: number; onMore: () => void }) {
  let button!: HTMLButtonElement;
  onMount(() => {
    const observer = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && props.onMore(), { rootMargin: '400px' });
    // While the button stays near the visible part, the observer reports it only once. So the button is observed again after each addition.
    createEffect(on(() => props.left, () => {
      observer.unobserve(button);
      observer.observe(button);
    }));
    onCleanup(() => observer.disconnect());
  });
  return <button type="button" class="button more-services" ref={button} onClick={() => props.onMore()}>{formatWhole(props.left)} more</button>;
}
