// The Labels view breaks one label down, with one card for each value. A card can filter for its value, exclude it, or
// compare it with another value.

import { createEffect, createMemo, createSignal, For, Match, on, Show, Switch } from 'solid-js';
import { Absent } from '../components/Absent.tsx';
import { Icon } from '../components/Icon.tsx';
import { Failure, Notice } from '../components/Notice.tsx';
import { NothingInRange } from '../components/NothingInRange.tsx';
import { Picker } from '../components/Picker.tsx';
import { SelectionBar } from '../components/SelectionBar.tsx';
import { ValueCard } from '../components/ValueCard.tsx';
import { WholeSteps } from '../components/WholeSteps.tsx';
import { formatWhole } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { printMatchers, type Matcher } from '../lib/selector.ts';
import { filterItems } from '../lib/suggest.ts';
import { absolute } from '../lib/time.ts';
import { createCatalogue, createDefaults } from '../models/catalogue.ts';
import { createBreakdown } from '../models/labels.ts';
import { createRange } from '../models/range.ts';
import { createSelection } from '../models/selection.ts';
import { createUrl, follow, hrefTo, visit } from '../router.ts';
import { COMPARE, LABELS, PROFILE, SEND, SERVICES } from '../urls.ts';

/** Maximum number of cards. The filter finds the other values. */
const SHOWN = 120;

export default function Labels() {
  const url = createUrl(LABELS);
  const { at, go } = url;
  const time = createRange(at);
  const selection = createSelection(at, time.range);
  const catalogue = createCatalogue(selection);
  const breakdown = createBreakdown(selection.query, at.label);
  createDefaults(catalogue, at, go);
  const [picked, setPicked] = createSignal<readonly string[]>([]);
  let filter: HTMLInputElement | undefined;
  createKeys(() => ({ '/': () => filter?.focus() }));

  createEffect(on([catalogue.labels.data, at.label], ([labels, label]) => {
    if (label === '' && labels?.[0]) go({ label: labels[0] }, { replace: true });
  }));
  createEffect(on([at.label, at.service], () => setPicked([]), { defer: true }));
  const matching = createMemo(() => filterItems(breakdown.data()?.values ?? [], at.filter(), ({ value }) => value));
  const byValue = createMemo(() => new Map(matching().slice(0, SHOWN).map((value) => [value.value, value])));
  const others = (): Matcher[] => selection.matchers().list.filter(({ name }) => name !== at.label());
  const add = (matcher: Matcher): void => go({ q: printMatchers([...selection.matchers().list, matcher]), filter: '' });
  const with_ = (op: '=' | '!=', value: string): Matcher => ({ name: at.label(), op, value });
  const compare = (): void => {
    const [before, after] = picked();
    if (before === undefined) return;
    // A single value is compared with all other values.
    const [q, baseq] = after === undefined ? [with_('=', before), with_('!=', before)] : [with_('=', after), with_('=', before)];
    visit(COMPARE, { with: 'same', q: printMatchers([...others(), q]), baseq: printMatchers([...others(), baseq]) });
  };

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Labels</h1>
      <SelectionBar
        catalogue={catalogue}
        selection={selection}
        time={time}
        from={at.from()}
        until={at.until()}
        busy={catalogue.services.pending() || breakdown.pending()}
        href={url.href({})}
        pinned={time.moves() ? url.href({ ...absolute(time.range()), refresh: null }) : null}
        onService={(service, keeps) => go({ service, label: '', ...(keeps ? {} : { type: '' }) })}
        onType={(type) => go({ type })}
        onFilters={(matchers) => go({ q: printMatchers(matchers) })}
        onRange={go}
        onSeconds={(refresh) => go({ refresh }, { replace: true })}
      >
        <Picker label="Label" placeholder="Find a label" value={at.label()} shown={at.label()} loading={catalogue.labels.pending()} error={catalogue.labels.error()} choices={(catalogue.labels.data() ?? []).map((name) => ({ value: name, label: name }))} onPick={(label) => go({ label, filter: '' })} />
        <span class="with-icon filter-box">
          <Icon name="search" />
          <input ref={filter} class="field" type="search" aria-label="Filter values" placeholder={`Filter ${formatWhole(breakdown.data()?.values.length ?? 0)} values`} spellcheck={false} value={at.filter()} onInput={(event) => go({ filter: event.currentTarget.value }, { replace: true })} />
        </span>
      </SelectionBar>
      <Show when={picked().length > 0}>
        <div class="banner plain" role="status">
          <span>{picked().length === 2 ? `Compare ${picked()[0] || '(none)'} with ${picked()[1] || '(none)'}` : `${picked()[0] || '(none)'}: choose another value, or`}</span>
          <button type="button" class="button primary" onClick={compare}>{picked().length === 2 ? 'Compare' : 'Compare with all others'}</button>
          <button type="button" class="button" onClick={() => setPicked([])}>Clear</button>
        </div>
      </Show>
      <Show when={breakdown.data() && breakdown.error()}>
        {(error) => <div class="banner" role="alert"><span>The refresh failed, older data is shown: {error().message}</span><button type="button" class="button" onClick={breakdown.retry}>Try again</button></div>}
      </Show>
      <div class="content" aria-busy={breakdown.pending()}>
        <Switch>
          <Match when={!catalogue.services.data() && catalogue.services.error()}>{(error) => <Failure what="Cannot load the services" error={error()} retry={catalogue.services.retry} />}</Match>
          <Match when={catalogue.missing()}>
            <Absent catalogue={catalogue} service={at.service()} home={hrefTo(SERVICES)} send={hrefTo(SEND)} onFollow={follow} onService={(service) => go({ service, type: '', label: '' })} onRange={go} onRefresh={time.refresh} />
          </Match>
          <Match when={!breakdown.data() && (breakdown.error() ?? catalogue.labels.error())}>{(error) => <Failure what="Cannot load the values of the label" error={error()} retry={breakdown.error() ? breakdown.retry : catalogue.labels.retry} />}</Match>
          <Match when={catalogue.labels.data()?.length === 0 && at.label() === ''}><Notice icon="labels" title={`${at.service()} has no labels except its name`} /></Match>
          <Match when={!breakdown.data()}><div class="cards" aria-busy="true"><For each={[0, 1, 2, 3]}>{() => <div class="skeleton card-skeleton" />}</For></div></Match>
          <Match when={breakdown.data()?.values.length === 0}><NothingInRange nearest={undefined} what={`No ${selection.type()?.label ?? ''} profiles in this range`} onRange={go} /></Match>
          <Match when={matching().length === 0}><Notice icon="search" title="No value matches the filter" actions={<button type="button" class="button" onClick={() => go({ filter: '' }, { replace: true })}>Clear the filter</button>} /></Match>
          <Match when={breakdown.data()}>
            {(found) => (
              <>
                <WholeSteps range={found().query.range} step={found().step} />
                <ul class="cards">
                  <For each={[...byValue().keys()]}>
                    {(value) => (
                      <Show when={byValue().get(value)}>
                        {(its) => (
                          <ValueCard
                            of={found()}
                            value={its()}
                            picked={picked().includes(value)}
                            href={hrefTo(PROFILE, { q: printMatchers([...others(), with_('=', value)]) })}
                            onFollow={follow}
                            onOnly={() => add(with_('=', value))}
                            onWithout={() => add(with_('!=', value))}
                            onPick={() => setPicked((before) => (before.includes(value) ? before.filter((other) => other !== value) : [...before, value].slice(-2)))}
                          />
                        )}
                      </Show>
                    )}
                  </For>
                </ul>
                <Show when={matching().length > SHOWN}><p class="muted more">{formatWhole(matching().length - SHOWN)} more values with smaller shares. Use the filter to find them.</p></Show>
              </>
            )}
          </Match>
        </Switch>
      </div>
    </main>
  );
}
