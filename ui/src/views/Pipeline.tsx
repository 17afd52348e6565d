// The Pipeline view: the components of a collector as a graph or a table, the data flow between them, and the health, values and live
// data of each. Modules open as graphs of their own. The view sends its requests to the collector that serves the page.

import '../style/pipeline.css';
import { createEffect, createMemo, For, Match, on, Show, Switch } from 'solid-js';
import { ComponentPanel, TABS, type Tab } from '../components/ComponentPanel.tsx';
import { ComponentTable } from '../components/ComponentTable.tsx';
import { Icon } from '../components/Icon.tsx';
import { Command, Failure, Notice } from '../components/Notice.tsx';
import { PipelineGraph } from '../components/PipelineGraph.tsx';
import { ApiError } from '../lib/api.ts';
import { formatMoment } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import { filterItems } from '../lib/suggest.ts';
import { createPipeline } from '../models/pipeline.ts';
import { modulePath, type Component, type HealthState } from '../pipeline/model.ts';
import { createUrl } from '../router.ts';
import { PIPELINE } from '../urls.ts';

const STATES: readonly HealthState[] = ['exited', 'unhealthy', 'unknown', 'healthy'];

export default function Pipeline() {
  const { at, go } = createUrl(PIPELINE);
  const data = createPipeline(at.module, at.sel);
  let filter!: HTMLInputElement;

  const components = createMemo(() => data.components.data(), undefined, { equals: (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b) });
  const counts = createMemo(() => {
    const found = new Map<HealthState, number>();
    for (const { health } of components() ?? []) found.set(health.state, (found.get(health.state) ?? 0) + 1);
    return STATES.flatMap((name) => (found.has(name) ? [{ name, count: found.get(name)! }] : []));
  });
  const matching = createMemo((): readonly Component[] | null => {
    if (at.filter().trim() === '' && at.health() === '') return null;
    const left = (components() ?? []).filter(({ health }) => at.health() === '' || health.state === at.health());
    return filterItems(left, at.filter(), ({ id, health }) => `${id} ${health.state} ${health.message}`);
  });
  const matched = createMemo(() => {
    const found = matching();
    if (found === null) return null;
    const kept = new Set(found);
    return new Set((components() ?? []).flatMap((component, place) => (kept.has(component) ? [place] : [])));
  });
  const rows = createMemo((): readonly Component[] => {
    const kept = matched();
    return (components() ?? []).filter((_, place) => kept === null || kept.has(place));
  });
  const selected = createMemo(() => components()?.find(({ id }) => id === at.sel()));
  const tab = (): Tab => TABS.find((name) => name === at.tab()) ?? 'overview';
  const isTable = (): boolean => at.view() === 'table';

  const select = (id: string): void => go({ sel: id }, { replace: at.sel() !== '' && id !== '' });
  const enter = (module: string): void => go({ module, sel: '', filter: '', health: '' });
  const open = (component: Component): void => {
    const module = component.modules[0];
    if (module !== undefined) enter(module);
  };
  const leave = (): void => {
    const path = modulePath(at.module());
    enter(path[path.length - 2] ?? '');
  };

  createKeys(() => ({
    '/': () => filter.focus(),
    1: () => go({ view: 'both' }, { replace: true }),
    2: () => go({ view: 'table' }, { replace: true }),
    r: data.refresh,
    Escape: () => {
      if (at.sel() !== '') close();
      else if (at.module() !== '') leave();
    },
  }));
  const close = (): void => {
    go({ sel: '' });
    // Return the focus to the graph or table, for users of the keyboard.
    document.getElementById(isTable() ? 'components' : 'pipeline')?.focus({ preventScroll: true });
  };
  // Close the panel of a component that a reload has removed.
  createEffect(on([components, at.sel], ([found, id]) => {
    if (found && id !== '' && !found.some((component) => component.id === id) && !data.components.pending()) go({ sel: '' }, { replace: true });
  }));

  const load = (): { success: boolean; time: number; text: string } | null => data.overview.data()?.load ?? null;
  const loaded = createMemo(load, undefined, { equals: (a, b) => JSON.stringify(a) === JSON.stringify(b) });
  return (
    <main class="view pipeline-view" id="main" tabindex="-1">
      <div class="bar">
        <h1>Pipeline</h1>
        <Show when={(components()?.length ?? 0) > 0}>
          <div class="group" role="group" aria-label="Filter by health">
            <For each={counts()}>
              {({ name, count }) => (
                <button type="button" class={`button health-button health-${name}`} aria-pressed={at.health() === name} onClick={() => go({ health: at.health() === name ? '' : name }, { replace: true })}>
                  <i class="health-dot" />{count} {name}
                </button>
              )}
            </For>
          </div>
        </Show>
        <span class="grow" />
        <Show when={loaded()?.success}>
          <span class="muted wide-only load-note">configuration loaded {formatMoment(loaded()!.time, true)}</span>
        </Show>
        <span class="with-icon filter-box">
          <Icon name="search" />
          <input ref={filter} class="field" type="search" aria-label="Filter components" placeholder="Filter components" spellcheck={false} value={at.filter()} onInput={(event) => go({ filter: event.currentTarget.value }, { replace: true })} />
        </span>
        <div class="group" role="group" aria-label="Show as">
          <button type="button" class="button" aria-pressed={!isTable()} onClick={() => go({ view: 'both' }, { replace: true })}><Icon name="pipeline" />Graph</button>
          <button type="button" class="button" aria-pressed={isTable()} onClick={() => go({ view: 'table' }, { replace: true })}><Icon name="table" />Table</button>
        </div>
      </div>
      <Show when={data.components.error() && components()}>
        <div class="banner" role="alert"><span>The refresh failed, older data is shown: {data.components.error()!.message}</span><button type="button" class="button" onClick={data.refresh}>Try again</button></div>
      </Show>
      <Show when={loaded() && !loaded()!.success}>
        <div class="banner load-failed" role="alert">
          <details>
            <summary>The reload at {formatMoment(loaded()!.time, true)} failed. The previous configuration is still in force.</summary>
            <pre tabindex="0">{loaded()!.text}</pre>
          </details>
        </div>
      </Show>
      <Show when={at.module() !== ''}>
        <nav class="crumbs" aria-label="Modules">
          <ol>
            <li><button type="button" onClick={() => enter('')}>root</button></li>
            <For each={modulePath(at.module())}>
              {(module, index) => (
                <li>
                  <Icon name="right" />
                  <Show when={index() < modulePath(at.module()).length - 1} fallback={<span class="here" aria-current="page">{module.split('/').pop()}</span>}>
                    <button type="button" onClick={() => enter(module)}>{module.split('/').pop()}</button>
                  </Show>
                </li>
              )}
            </For>
          </ol>
        </nav>
      </Show>
      <div class="pipeline-body">
        <Switch>
          <Match when={data.components.error() && !components()}>
            <div class="fill"><Unreadable error={data.components.error()!} retry={data.components.retry} module={at.module()} onRoot={() => enter('')} /></div>
          </Match>
          <Match when={!components()}><div class="fill" aria-busy="true"><div class="skeleton graph-skeleton" /></div></Match>
          <Match when={components()!.length === 0}>
            <div class="fill">
              <Notice icon="pipeline" title={at.module() === '' ? 'The configuration has no components' : 'The module has no components'}>
                <p>A pipeline needs a component that produces profiles and one that receives them, for example:</p>
                <Command text={'pyroscope.scrape "default" { ... }   pyroscope.write "default" { ... }'} />
                <p>After a change, reload the collector with SIGHUP or with a request to <code>/-/reload</code>.</p>
              </Notice>
            </div>
          </Match>
          <Match when={true}>
            <div class="pipeline-main" id="components" tabindex="-1">
              <Show
                when={isTable()}
                fallback={<PipelineGraph components={components()!} flows={data.flows()} matched={matched()} selected={at.sel()} onSelect={select} onOpen={open} />}
              >
                <ComponentTable components={rows()} flows={data.flows()} selected={at.sel()} sort={at.sort()} onSort={(sort) => go({ sort }, { replace: true })} onSelect={select} />
              </Show>
            </div>
            <Show when={selected()?.id} keyed>
              {(id) => (
                <ComponentPanel
                  component={selected() ?? components()!.find((component) => component.id === id)!}
                  detail={data.detail}
                  overview={data.overview.data()}
                  flows={data.flows()}
                  tab={tab()}
                  onTab={(name) => go({ tab: name === 'overview' ? '' : name }, { replace: true })}
                  onSelect={select}
                  onOpen={open}
                  onClose={close}
                />
              )}
            </Show>
          </Match>
        </Switch>
      </div>
    </main>
  );
}

function Unreadable(props: { error: Error; retry: () => void; module: string; onRoot: () => void }) {
  const missing = (): boolean => props.error instanceof ApiError && props.error.status === 404;
  return (
    <Show when={missing()} fallback={<Failure what="Cannot load the components" error={props.error} retry={props.retry} />}>
      <Show
        when={props.module !== ''}
        fallback={
          <Notice icon="compass" title="No collector runs here">
            <p>This server stores profiles and runs no components. A collector shows its pipeline on its own port:</p>
            <Command text="alluvium run config.alloy   # http://localhost:12345/graph" />
          </Notice>
        }
      >
        <Notice icon="compass" title={`Module ${props.module} does not exist`} actions={<button type="button" class="button primary" onClick={() => props.onRoot()}>Go to the root</button>}>
          <p>A reload may have removed it.</p>
        </Notice>
      </Show>
    </Show>
  );
}
