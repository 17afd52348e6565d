// The card of one value of a label: its share, its values over time, its top function, and its actions.

import { createSignal, onCleanup, onMount, Show } from 'solid-js';
import { shortName } from '../flame/packages.ts';
import { formatShare, formatValue } from '../lib/format.ts';
import { createTop, type Breakdown, type LabelValue } from '../models/labels.ts';
import { Amount } from './Amount.tsx';
import { Spark } from './Spark.tsx';

export interface ValueCardProps {
  of: Breakdown;
  value: LabelValue;
  /** True if the value is selected for a comparison. */
  picked: boolean;
  href: string;
  onFollow: (event: MouseEvent & { currentTarget: HTMLAnchorElement }) => void;
  onOnly: () => void;
  onWithout: () => void;
  onPick: () => void;
}

export function ValueCard(props: ValueCardProps) {
  let card!: HTMLLIElement;
  // The top function is loaded once the card is visible.
  const [seen, setSeen] = createSignal(false);
  const top = createTop(() => (seen() ? props.of : null), props.value.value);
  onMount(() => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      setSeen(true);
      observer.disconnect();
    });
    observer.observe(card);
    onCleanup(() => observer.disconnect());
  });
  const name = (): string => props.value.value || '(none)';
  const mean = (): string => formatValue(props.value.mean, props.of.query.type.chartUnit);
  return (
    <li class="card" ref={card}>
      <header>
        <h2 title={props.value.value}><a href={props.href} onClick={(event) => props.onFollow(event)}>{name()}</a></h2>
        <span class="share" title="Share of this label value in the total of the selected profiles">{formatShare(props.value.share)}</span>
      </header>
      <div class="meter" aria-hidden="true"><i style={{ width: `${props.value.share * 100}%` }} /></div>
      <div class="measure">
        <span class="label"><span>mean <Amount value={props.value.mean} unit={props.of.query.type.chartUnit} /></span></span>
        <Spark points={props.value.points} range={props.of.query.range} step={props.of.step} label={`${name()} over time, mean ${mean()}`} />
      </div>
      <p class="top-function">
        <Show when={!top.error()} fallback={<span class="bad">{top.error()?.message}</span>}>
          <Show when={top.data()} fallback={<span class="muted">{top.pending() || !seen() ? '…' : 'No function has a self value'}</span>}>
            {(found) => <><span class="text" title={found().name}>{shortName(found().name)}</span><b title="Self value of the function, as a share of the total of the profiles with this label value">{formatShare(found().share)}</b></>}
          </Show>
        </Show>
      </p>
      <div class="group" role="group" aria-label={`Actions for ${name()}`}>
        <button type="button" class="button" onClick={() => props.onOnly()}>Only</button>
        <button type="button" class="button" onClick={() => props.onWithout()}>Without</button>
        <button type="button" class="button" aria-pressed={props.picked} onClick={() => props.onPick()}>Compare</button>
      </div>
    </li>
  );
}
