// The Compare view: a baseline and a comparison, each with its filters and with a chart in which the user drags its range. It
// lists the functions whose share rose by more than noise, and shows the difference as a flame graph and a table.

import { createMemo, For, Match, Show, Switch } from 'solid-js';
import { Absent } from '../components/Absent.tsx';
import { CompareLabels } from '../components/CompareLabels.tsx';
import { CompareSide } from '../components/CompareSide.tsx';
import { DiffPane, diffPaint } from '../components/DiffPane.tsx';
import { Download, type Drawing } from '../components/Download.tsx';
import { Findings } from '../components/Findings.tsx';
import { Icon } from '../components/Icon.tsx';
import { Failure, Notice } from '../components/Notice.tsx';
import { Picker } from '../components/Picker.tsx';
import { Pickers } from '../components/Pickers.tsx';
import { Share } from '../components/Share.tsx';
import { TimeControls } from '../components/TimeControls.tsx';
import { pairAt } from '../flame/diff.ts';
import { findPath } from '../flame/layout.ts';
import { still } from '../flame/png.ts';
import { shapeTree } from '../flame/tree.ts';
import { formatPair, formatRange, formatShare } from '../lib/format.ts';
import { contrast, dark } from '../lib/preferences.ts';
import { printMatchers } from '../lib/selector.ts';
import { absolute, type Range } from '../lib/time.ts';
import { createDefaults } from '../models/catalogue.ts';
import { createCompare, type With } from '../models/compare.ts';
import { createRange } from '../models/range.ts';
import { readRecipe } from '../models/recipe.ts';
import { createUrl, follow, hrefTo } from '../router.ts';
import { COMPARE, SEND, SERVICES } from '../urls.ts';

const WAYS: readonly { value: With; label: string }[] = [
  { value: 'halves', label: 'the first half of the range' },
  { value: 'before', label: 'the time before' },
  { value: 'day', label: 'the same time a day earlier' },
  { value: 'week', label: 'the same time a week earlier' },
  { value: 'same', label: 'the same time, other filters' },
  { value: 'range', label: 'a separate range' },
];

export default function Compare() {
  const url = createUrl(COMPARE);
  const { at, go } = url;
  const time = createRange(at);
  const data = createCompare(at, time);
  const { left, right, catalogue, flame } = data;
  createDefaults(catalogue, at, go);

  const busy = (): boolean => catalogue.services.pending() || left.chart.pending() || right.chart.pending() || flame.pending();
  /** Both ranges as absolute times, for a link whose range does not move with the present. */
  const pinned = () => ({ ...absolute(time.range()), refresh: null, with: 'range' as const, comparison: right.range(), baseline: left.range() });
  const choose = (how: With): void => go({ with: how, baseline: how === 'range' ? left.range() : null, ...(how === 'range' ? { comparison: right.range() } : how === 'halves' ? { comparison: null } : {}) });
  const drag = (side: 'left' | 'right', range: Range): void => {
    // Once the user moves one of the two halves, both sides have absolute ranges.
    if (side === 'left') go({ with: 'range', baseline: range, comparison: right.range() });
    else if (at.with() === 'halves') go({ with: 'range', comparison: range, baseline: left.range() });
    else go({ comparison: range });
  };
  const compareValues = (label: string, before: string, after: string): void => {
    const others = right.selection.matchers().list.filter(({ name }) => name !== label);
    const of = (value: string): string => printMatchers([...others, { name: label, op: '=', value }]);
    go({ with: 'same', comparison: null, baseline: null, q: of(after), baseq: of(before) });
  };
  const swap = (): void => go({
    with: 'range', comparison: left.range(), baseline: right.range(),
    service: at.baseservice() || at.service(), baseservice: at.baseservice() === '' ? '' : at.service(),
    q: at.baseq() ?? at.q(), baseq: at.baseq() === null ? null : at.q(),
  });
  const services = createMemo(() => [...(catalogue.services.data()?.keys() ?? [])].map((name) => ({ value: name, label: name })));
  const top = (): number => Math.max(left.chart.data()?.max ?? 0, right.chart.data()?.max ?? 0);
  const queries = () => {
    const asked = data.queries();
    return asked ? [{ name: 'Baseline', query: asked.left }, { name: 'Comparison', query: asked.right }] : [];
  };
  const drawing = (): Drawing | null => {
    const found = data.difference();
    if (!found) return null;
    const { flame, sides } = shapeTree({ flame: found.flame, sides: found.sides, reads: 'callees' }, readRecipe(at)).shown;
    if (!sides) return null;
    const rate = data.rate();
    const paint = diffPaint(sides, at.by() === 'rate' && rate ? rate : data.share(), contrast(), dark());
    return {
      ...still(flame, Math.max(0, findPath(flame, at.focus())), at.orient() === 'flame', paint),
      title: `${found.right.type.label} of ${found.left.selector}, ${formatRange(found.left.range)} → ${found.right.selector}, ${formatRange(found.right.range)}`,
      values: (node) => `${formatPair(data.share()(pairAt(sides, node)), formatShare)}${rate ? `, ${formatPair(rate(pairAt(sides, node)), data.amount)}` : ''}`,
    };
  };

  return (
    <main class="view" id="main" tabindex="-1">
      <h1 class="visually-hidden">Compare</h1>
      <div class="bar">
        <Pickers
          catalogue={catalogue}
          service={at.service()}
          type={right.selection.type()}
          onService={(service, keeps) => go({ service, focus: '', sel: '', ...(keeps ? {} : { type: '' }) })}
          onType={(type) => go({ type, focus: '' })}
        />
        <Picker label="with" placeholder="Compare with" value={at.with()} shown={WAYS.find(({ value }) => value === at.with())?.label ?? ''} choices={WAYS} onPick={(how) => choose(how as With)} />
        <CompareLabels selector={right.selection.query()?.selector ?? '{}'} range={time.range()} versions={data.versions.data() ?? null} onPick={compareValues} />
        <button type="button" class="button square" aria-label="Swap the sides" title="Swap the sides" onClick={swap}><Icon name="swap" /></button>
        <span class="grow" />
        <TimeControls from={at.from() || 'now-1h'} until={at.until()} range={time.range()} name={time.since()} seconds={time.seconds()} onRange={(range) => go({ ...range, ...(at.with() === 'range' ? {} : { comparison: null }) })} onSeconds={(refresh) => go({ refresh }, { replace: true })} onRefresh={time.refresh} />
        <Share href={url.href({})} pinned={time.moves() ? url.href(pinned()) : null} />
        <Download queries={queries()} service={at.service()} ready={data.difference() !== null} drawing={drawing} />
      </div>
      <div class="progress" data-on={busy()} />
      <For each={[right.selection, left.selection]}>
        {(selection) => <Show when={selection.matchers().error}>{(error) => <div class="banner" role="alert"><span>Cannot parse the filters in the link: {error()}</span><button type="button" class="button" onClick={() => go({ q: '', baseq: null })}>Remove them</button></div>}</Show>}
      </For>
      <Switch>
        <Match when={!catalogue.services.data() && catalogue.services.error()}>
          {(error) => <div class="fill"><Failure what="Cannot load the services" error={error()} retry={catalogue.services.retry} /></div>}
        </Match>
        <Match when={catalogue.missing()}>
          <div class="fill"><Absent catalogue={catalogue} service={at.service()} home={hrefTo(SERVICES)} send={hrefTo(SEND)} onFollow={follow} onService={(service) => go({ service, type: '', focus: '', sel: '' })} onRange={go} onRefresh={time.refresh} /></div>
        </Match>
        <Match when={true}>
          <div class="sides">
            <CompareSide name="Baseline" side={left} top={top()} onFilters={(matchers) => go({ baseq: printMatchers(matchers) })} onRange={(range) => drag('left', range)}>
              <Picker label="of" placeholder="Find a service" value={left.selection.service()} shown={left.selection.service()} choices={services()} onPick={(service) => go({ baseservice: service === at.service() ? '' : service })} />
            </CompareSide>
            <CompareSide name="Comparison" side={right} top={top()} onFilters={(matchers) => go({ q: printMatchers(matchers), baseq: at.baseq() ?? at.q() })} onRange={(range) => drag('right', range)} />
          </div>
          <Switch>
            <Match when={!data.difference() && flame.error()}>
              {(error) => <div class="fill"><Failure what="Cannot load the difference" error={error()} retry={flame.retry} /></div>}
            </Match>
            <Match when={!data.difference()}><div class="fill" aria-busy="true" /></Match>
            <Match when={data.empty()}>
              {(side) => (
                <div class="fill">
                  <Notice
                    icon="clock"
                    title={`No profiles in the range of the ${side() === 'left' ? 'baseline' : 'comparison'}`}
                    actions={
                      <>
                        <Show when={data.nearest.data()}>{(range) => <button type="button" class="button primary" onClick={() => drag(side(), range())}>Use {formatRange(range())}</button>}</Show>
                        <button type="button" class="button" onClick={() => go({ with: 'halves', comparison: null, baseline: null })}>Compare the halves of the range</button>
                      </>
                    }
                  >
                    <p>{data.nearest.data() ? 'The nearest profiles are outside this range.' : 'Drag another range in its chart, or use other filters.'}</p>
                  </Notice>
                </div>
              )}
            </Match>
            <Match when={data.difference()}>
              {(found) => (
                <>
                  <Show when={flame.error()}>
                    {(error) => <div class="banner" role="alert"><span>The refresh failed, an older difference is shown: {error().message}</span><button type="button" class="button" onClick={flame.retry}>Try again</button></div>}
                  </Show>
                  <Show when={found().gone && at.focus() !== ''}>
                    <div class="banner" role="status"><span>The zoomed frame is not in these ranges. All frames are shown.</span><button type="button" class="button" onClick={() => go({ focus: '' }, { replace: true })}>Reset zoom</button></div>
                  </Show>
                  <Findings changes={data.changes} selected={at.sel()} onPick={(name) => go({ sel: name === at.sel() ? '' : name })} />
                  <DiffPane
                    flame={found().flame}
                    sides={found().sides}
                    of={`${at.type()} ${at.service()} ${at.q()} ${at.baseservice()} ${at.baseq() ?? ''}`}
                    by={at.by()}
                    onBy={(by) => go({ by }, { replace: true })}
                    share={data.share()}
                    rate={data.rate()}
                    amount={data.amount}
                    changes={data.changes.pending() ? undefined : data.changes.data()}
                    stale={flame.pending()}
                    at={at}
                    onChange={go}
                  />
                </>
              )}
            </Match>
          </Switch>
        </Match>
      </Switch>
    </main>
  );
}
