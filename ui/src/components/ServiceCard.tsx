// The card of one service: its share of the fleet, its CPU and its memory. CPU and memory are links to the service's profiles of this type.

import { For, Show, type Accessor } from 'solid-js';
import { formatShare, type Unit } from '../lib/format.ts';
import type { Range } from '../lib/time.ts';
import type { Measure, Resource } from '../models/fleet.ts';
import type { Ranked, RankedService } from '../models/ranked.ts';
import { Amount } from './Amount.tsx';
import { Spark } from './Spark.tsx';

type Click = MouseEvent & { currentTarget: HTMLAnchorElement };

export interface ServiceLinks {
  /** Returns the address of the profiles of a service and a type. Without a type, the first profile type of the service is used. */
  href: (service: RankedService, type?: string) => string;
  onFollow: (event: Click) => void;
}

export interface ServiceCardProps extends ServiceLinks {
  service: RankedService;
  range: Range;
  /** The quantity that the share refers to. */
  what: Ranked['what'];
  /** Cost as text; empty if costs are not shown. */
  cost: string;
}

const RESOURCES: readonly { name: Resource; label: string; unit: Unit; none: string }[] = [
  { name: 'cpu', label: 'CPU', unit: 'cores', none: 'No CPU profiles arrive from this service. Scrape its process_cpu profile, or run the eBPF profiler on its host.' },
  { name: 'memory', label: 'Memory', unit: 'bytes', none: 'No profiles of memory in use arrive from this service. Scrape its memory profile, or enable heap profiles in its client library.' },
];

export function ServiceCard(props: ServiceCardProps) {
  const measured = (): boolean => props.service.cpu !== null || props.service.memory !== null;
  const line = (label: string, unit: Unit, measure: Accessor<Measure>, style: string) => (
    <a class="measure" href={props.href(props.service, measure().type)} onClick={(event) => props.onFollow(event)}>
      <span class="label"><span>{label}</span><Amount value={measure().mean} unit={unit} /></span>
      <Spark class={style} points={measure().points} range={props.range} step={measure().step} label={`${label} of ${props.service.name} over time`} />
    </a>
  );
  return (
    <li class="card">
      <header>
        <h2 title={props.service.name}><a href={props.href(props.service)} onClick={(event) => props.onFollow(event)}>{props.service.name}</a></h2>
        <Show when={props.service.share !== null}>
          <span class="share" title={`Share of the ${props.what} of all services`}>{formatShare(props.service.share ?? 0)} of {props.what}</span>
        </Show>
        <Show when={props.cost}><b class="cost" title="Projected cost of a month of 730 hours with the same use as in this range">{props.cost}</b></Show>
      </header>
      <div class="meter"><i style={{ width: `${(props.service.share ?? 0) * 100}%` }} /></div>
      <Show
        when={measured()}
        fallback={
          <ul class="types" aria-label={`Profiles of ${props.service.name}`}>
            <For each={props.service.types.slice(0, 6)}>
              {(type) => <li><a class="button" href={props.href(props.service, type.id)} onClick={(event) => props.onFollow(event)}>{type.label}</a></li>}
            </For>
          </ul>
        }
      >
        <div class="measures">
          <For each={RESOURCES}>
            {({ name, label, unit, none }) => (
              <Show
                when={props.service[name]}
                fallback={<div class="measure"><span class="label"><span>{label}</span></span><details class="spark-none"><summary>not measured</summary><p>{none}</p></details></div>}
              >
                {(measure) => line(label, unit, measure, name)}
              </Show>
            )}
          </For>
        </div>
      </Show>
    </li>
  );
}
