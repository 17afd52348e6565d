// The panel of one component: its health with the reason, its inputs and outputs, its values, and its live data.

import { createMemo, createSignal, For, Index, Match, Show, Switch } from 'solid-js';
import { copyText } from '../lib/clipboard.ts';
import { formatMoment, formatSpan } from '../lib/format.ts';
import type { Loader } from '../lib/loader.ts';
import { flowText } from '../pipeline/draw.ts';
import { wholeId, type Component, type Detail, type Flows, type Overview } from '../pipeline/model.ts';
import { GoroutineDumps } from './GoroutineDumps.tsx';
import { Icon } from './Icon.tsx';
import { LiveTail } from './LiveTail.tsx';
import { Failure } from './Notice.tsx';
import { Fields, type Opened } from './ValueTree.tsx';

export const TABS = ['overview', 'arguments', 'exports', 'debug', 'live'] as const;
export type Tab = (typeof TABS)[number];
const NAMES: Record<Tab, string> = { overview: 'Overview', arguments: 'Arguments', exports: 'Exports', debug: 'Debug info', live: 'Live' };

export interface ComponentPanelProps {
  /** The component as in the list, without arguments and exports. */
  component: Component;
  detail: Loader<Detail>;
  overview: Overview | undefined;
  flows: Flows;
  tab: Tab;
  onTab: (tab: Tab) => void;
  onSelect: (id: string) => void;
  onOpen: (component: Component) => void;
  onClose: () => void;
}

export function ComponentPanel(props: ComponentPanelProps) {
  let tabs!: HTMLDivElement;
  const opened: Opened = new Map();
  const [copied, setCopied] = createSignal(false);
  // New values arrive every few seconds; equal values are not drawn again.
  const detail = createMemo(() => (props.detail.data()?.id === props.component.id ? props.detail.data() : undefined), undefined, {
    equals: (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b),
  });
  const keys = (event: KeyboardEvent): void => {
    const at = TABS.indexOf(props.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    props.onTab(TABS[(to + TABS.length) % TABS.length]!);
    queueMicrotask(() => tabs.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <aside class="panel-side" aria-label={`Component ${props.component.id}`}>
      <header>
        <div class="grow">
          <div class="muted kind-name">{props.component.name}</div>
          <h2 title={props.component.id}>{props.component.label || props.component.localId}</h2>
        </div>
        <button type="button" class="button plain square" aria-label="Copy the component ID" onClick={async () => {
          setCopied(await copyText(props.component.id));
          setTimeout(() => setCopied(false), 1500);
        }}><Icon name={copied() ? 'check' : 'copy'} /></button>
        <button type="button" class="button plain square" aria-label="Close the panel" onClick={() => props.onClose()}><Icon name="close" /></button>
      </header>
      <div class="tabs" role="tablist" aria-label="Parts" ref={tabs} onKeyDown={keys}>
        <For each={TABS}>
          {(tab) => (
            <button type="button" role="tab" id={`tab-${tab}`} aria-selected={props.tab === tab} aria-controls="tab-panel" tabindex={props.tab === tab ? 0 : -1} onClick={() => props.onTab(tab)}>{NAMES[tab]}</button>
          )}
        </For>
      </div>
      <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby={`tab-${props.tab}`} tabindex="0">
        <Switch>
          {/* The stream opens only once the overview says whether live debugging is on. */}
          <Match when={props.tab === 'live' && !props.overview}><div class="skeleton line-skeleton" /></Match>
          <Match when={props.tab === 'live'}>
            <LiveTail id={props.component.id} enabled={props.overview!.live.enabled} />
          </Match>
          <Match when={props.tab === 'overview'}>
            <Summary {...props} />
            <Show when={detail()}>{(loaded) => <GoroutineDumps detail={loaded()} />}</Show>
          </Match>
          <Match when={props.detail.error() && !detail()}><Failure what="Cannot load the component" error={props.detail.error()!} retry={props.detail.retry} /></Match>
          <Match when={!detail()}><div class="skeleton line-skeleton" /><div class="skeleton line-skeleton" /></Match>
          <Match when={props.tab === 'arguments'}><Fields fields={detail()!.arguments} path="arguments" opened={opened} none="This component has no arguments." /></Match>
          <Match when={props.tab === 'exports'}><Fields fields={detail()!.exports} path="exports" opened={opened} none="This component has no exports." /></Match>
          <Match when={props.tab === 'debug'}><Fields fields={detail()!.debugInfo} path="debug" opened={opened} none="This component has no debug info." /></Match>
        </Switch>
      </div>
    </aside>
  );
}

function Summary(props: ComponentPanelProps) {
  const since = (): string => {
    const { updated } = props.component.health;
    return updated > 0 ? `since ${formatMoment(updated, true)} (${formatSpan(Math.max(0, Date.now() - updated))} ago)` : '';
  };
  const flowing = (ids: readonly string[], into: boolean) =>
    ids.map((localId) => {
      const id = wholeId(props.component.module, localId);
      return { id, localId, text: flowText(into ? props.flows.between(id, props.component.id) : props.flows.between(props.component.id, id)) };
    });
  const links = (title: string, list: () => readonly { id: string; localId: string; text: string }[]) => (
    <Show when={list().length > 0}>
      <h3>{title}</h3>
      <ul class="links">
        <Index each={list()}>
          {(link) => (
            <li>
              <button type="button" class="link" onClick={() => props.onSelect(link().id)}>{link().localId}</button>
              <span class="number">{link().text}</span>
            </li>
          )}
        </Index>
      </ul>
    </Show>
  );
  const plain = (ids: readonly string[]) => ids.map((localId) => ({ id: wholeId(props.component.module, localId), localId, text: '' }));
  return (
    <>
      <div class={`health health-${props.component.health.state}`}>
        <b>{props.component.health.state}</b>
        <span class="muted">{since()}</span>
        <p>{props.component.health.message || 'No reason given.'}</p>
      </div>
      <Show when={props.component.modules.length > 0}>
        <button type="button" class="button" onClick={() => props.onOpen(props.component)}><Icon name="pipeline" />Open the module</button>
      </Show>
      {links('Data from', () => flowing(props.component.feeders, true))}
      {links('Data to', () => flowing(props.component.flowsTo, false))}
      {links('References', () => plain(props.component.referencesTo))}
      {links('Referenced by', () => plain(props.component.referencedBy))}
    </>
  );
}
