// Flame graph and table of one answer, with their tools: search, breadcrumb, which of the two is shown, the menu of a
// frame. What is zoomed, searched and selected is in the URL.

import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, Show } from 'solid-js';
import { FlameGraph } from '../components/FlameGraph.tsx';
import { Icon, type IconName } from '../components/Icon.tsx';
import { ContextMenu, type Action } from '../components/Menu.tsx';
import { Split } from '../components/Split.tsx';
import { TopTable } from '../components/TopTable.tsx';
import { colourNames, DARK, LIGHT } from '../flame/colours.ts';
import { ancestors, findPath, pathText, type Flame } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import { compileSearch, searchFlame, type Found } from '../flame/search.ts';
import { copyText } from '../lib/clipboard.ts';
import { formatShare, formatWhole } from '../lib/format.ts';
import { isTyping } from '../lib/keys.ts';
import { dark } from '../lib/preferences.ts';
import { go, state } from '../lib/router.ts';
import { say } from '../lib/toast.ts';
import type { View } from '../lib/url-state.ts';

const VIEWS: readonly { view: View; label: string; icon: IconName }[] = [
  { view: 'flame', label: 'Flame graph', icon: 'flame' },
  { view: 'both', label: 'Both', icon: 'both' },
  { view: 'table', label: 'Table', icon: 'table' },
];
/** A step of the search zooms in until its frame has this share of the width. */
const VISIBLE_SHARE = 0.02;

export function FlamePane(props: { flame: Flame; amount: (value: number) => string; stale: boolean }) {
  let search!: HTMLInputElement;
  const [typed, setTyped] = createSignal(state().search);
  const [stepAt, setStepAt] = createSignal(-1);
  const [hovered, setHovered] = createSignal(-1);
  const [reveal, setReveal] = createSignal(0);
  const [menu, setMenu] = createSignal<{ name: number; node: number; x: number; y: number }>();

  const colours = createMemo(() => colourNames(props.flame.names, props.flame.mappings, props.flame.files, dark() ? DARK : LIGHT));
  const focusText = createMemo(() => state().focus);
  const focus = createMemo(() => findPath(props.flame, focusText()));
  const searchText = createMemo(() => state().search);
  const sel = createMemo(() => state().sel);
  const selected = createMemo(() => (sel() === '' ? -1 : props.flame.names.indexOf(sel())));

  const found = createMemo<{ result: Found | null; error: string }>(() => {
    try {
      const matches = compileSearch(searchText()) ?? (selected() >= 0 ? (name: string) => name === sel() : null);
      return { result: matches ? searchFlame(props.flame, matches) : null, error: '' };
    } catch (error) {
      return { result: null, error: error instanceof Error ? error.message : String(error) };
    }
  });
  const current = createMemo(() => found().result?.nodes[stepAt()] ?? -1);
  createEffect(on([searchText, sel, () => props.flame], () => setStepAt(-1), { defer: true }));
  createEffect(on(searchText, (text) => text !== typed() && setTyped(text), { defer: true }));

  let timer: ReturnType<typeof setTimeout> | undefined;
  const searchFor = (text: string): void => {
    setTyped(text);
    clearTimeout(timer);
    timer = setTimeout(() => go({ search: text }, { replace: true }), 120);
  };
  const step = (by: 1 | -1): void => {
    const { result } = found();
    if (!result || result.nodes.length === 0) return;
    const count = result.nodes.length;
    const next = stepAt() < 0 ? (by > 0 ? 0 : count - 1) : (stepAt() + by + count) % count;
    setStepAt(next);
    const node = result.nodes[next]!;
    // Where the frame could hardly be seen, zoom to a caller in which it can.
    const { start, total, parent } = props.flame;
    const at = focus();
    const inside = start[node]! >= start[at]! && start[node]! + total[node]! <= start[at]! + total[at]!;
    if (inside && total[node]! >= total[at]! * VISIBLE_SHARE) return;
    let caller = node;
    while (parent[caller]! > 0 && total[node]! >= total[parent[caller]!]! * VISIBLE_SHARE * 2) caller = parent[caller]!;
    zoom(caller, true);
  };
  const zoom = (node: number, replace = false): void => {
    go({ focus: node <= 0 ? '' : pathText(props.flame, node) }, { replace });
  };
  const up = (): void => {
    if (focus() > 0) zoom(props.flame.parent[focus()]!);
    else if (state().search !== '') searchFor('');
    else if (state().sel !== '') go({ sel: '' }, { replace: true });
  };
  const select = (name: number): void => {
    const text = props.flame.names[name] ?? '';
    go({ sel: text === state().sel ? '' : text }, { replace: true });
  };

  const keys = (event: KeyboardEvent): void => {
    if (isTyping(event) || event.defaultPrevented || menu()) return;
    const views: Record<string, View> = { 1: 'both', 2: 'flame', 3: 'table' };
    if (event.key === '/') {
      search.focus();
      search.select();
    } else if (event.key === 'n') step(1);
    else if (event.key === 'N') step(-1);
    else if (event.key === 'Escape') up();
    else if (event.key === 'f') flip();
    else if (views[event.key]) go({ view: views[event.key]! }, { replace: true });
    else return;
    event.preventDefault();
  };
  const flip = (): void => go({ orient: state().orient === 'flame' ? 'icicle' : 'flame' }, { replace: true });
  onMount(() => {
    document.addEventListener('keydown', keys);
    onCleanup(() => {
      document.removeEventListener('keydown', keys);
      clearTimeout(timer);
    });
  });

  const actions = (name: number, node: number): (Action | null)[] => {
    const text = props.flame.names[name]!;
    const file = props.flame.files[name] ?? '';
    const line = props.flame.line[node]!;
    const place = file === '' ? '' : line > 0 ? `${file}:${line}` : file;
    const copy = (what: string) => async (): Promise<void> => say((await copyText(what)) ? 'Copied' : 'The browser did not allow copying');
    return [
      { label: 'Focus', hint: 'Enter', run: () => zoom(node) },
      { label: 'Show in table', run: () => {
        go({ sel: text, filter: '', view: state().view === 'flame' ? 'both' : state().view }, { replace: true });
        setReveal((count) => count + 1);
      } },
      { label: 'Search for this', run: () => searchFor(text) },
      null,
      { label: 'Copy name', run: copy(text) },
      { label: 'Copy file:line', disabled: place === '', run: copy(place) },
    ];
  };
  const chain = createMemo(() => ancestors(props.flame, focus()));
  /** The root, the nearest callers, and a hole between them when they are many. */
  const crumbs = createMemo<(number | null)[]>(() => {
    const all = chain();
    return all.length <= 6 ? all : [all[0]!, null, ...all.slice(-4)];
  });
  const total = (node: number): number => props.flame.total[node] ?? 0;

  return (
    <>
      <div class="tools">
        <span class="with-icon search">
          <Icon name="search" />
          <input
            ref={search}
            id="search"
            class="field"
            type="search"
            aria-label="Search frames"
            placeholder="Search: text or /regex/"
            spellcheck={false}
            autocomplete="off"
            aria-invalid={found().error !== ''}
            value={typed()}
            onInput={(event) => searchFor(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter') {
                event.preventDefault();
                step(event.shiftKey ? -1 : 1);
              } else if (event.key === 'Escape') {
                event.preventDefault();
                event.stopPropagation();
                if (typed() === '') search.blur();
                else searchFor('');
              }
            }}
          />
        </span>
        <Show when={found().error}><span class="match bad" role="alert">{found().error}</span></Show>
        <Show when={found().result}>
          {(result) => (
            <span class="match" role="status">
              <Show when={result().nodes.length > 0} fallback={searchText() ? 'No frame matches' : ''}>
                <b>{formatShare(result().sum / props.flame.sum)}</b> · {props.amount(result().sum)} · {stepAt() >= 0 ? `${formatWhole(stepAt() + 1)} of ` : ''}{formatWhole(result().nodes.length)} {result().nodes.length === 1 ? 'place' : 'places'}
              </Show>
            </span>
          )}
        </Show>
        <Show when={(found().result?.nodes.length ?? 0) > 0}>
          <div class="group" role="group" aria-label="Matches">
            <button type="button" class="button square" aria-label="Previous match" title="Previous match  N" onClick={() => step(-1)}><Icon name="up" /></button>
            <button type="button" class="button square" aria-label="Next match" title="Next match  n" onClick={() => step(1)}><Icon name="down" /></button>
            <button type="button" class="button square" aria-label="Clear search and selection" title="Clear" onClick={() => {
              clearTimeout(timer);
              setTyped('');
              go({ search: '', sel: '' }, { replace: true });
            }}><Icon name="close" /></button>
          </div>
        </Show>
        <span class="grow" />
        <button type="button" class="button" aria-pressed={state().orient === 'flame'} title="Root on top or at the bottom  f" onClick={flip}>
          <Icon name="flip" /><span class="wide-only">{state().orient === 'flame' ? 'Root at the bottom' : 'Root on top'}</span>
        </button>
        <div class="group" role="group" aria-label="Shown">
          <For each={VIEWS}>
            {(choice) => (
              <button type="button" class="button square" aria-label={choice.label} title={choice.label} aria-pressed={state().view === choice.view} onClick={() => go({ view: choice.view }, { replace: true })}>
                <Icon name={choice.icon} />
              </button>
            )}
          </For>
        </div>
      </div>
      <Show when={state().view !== 'table'}>
        <nav class="crumbs" aria-label="Callers of the zoomed frame">
          <ol>
            <For each={crumbs()}>
              {(node, index) => (
                <li>
                  <Show when={index() > 0}><Icon name="right" /></Show>
                  <Show when={node !== null} fallback={<span class="muted" title={chain().slice(1, -4).map((at) => props.flame.names[props.flame.name[at]!]).join('\n')}>…</span>}>
                    <Show when={node !== focus()} fallback={<span class="here" aria-current="location" title={props.flame.names[props.flame.name[node!]!]}>{shortName(props.flame.names[props.flame.name[node!]!] ?? '')}</span>}>
                      <button type="button" title={props.flame.names[props.flame.name[node!]!]} onClick={() => zoom(node!)}>{shortName(props.flame.names[props.flame.name[node!]!] ?? '')}</button>
                    </Show>
                  </Show>
                </li>
              )}
            </For>
          </ol>
          <span class="facts">
            <span><b>{props.amount(total(focus()))}</b></span>
            <Show when={focus() > 0} fallback={<span class="wide-only">{formatWhole(props.flame.count)} frames</span>}>
              <span><b>{formatShare(total(focus()) / props.flame.sum)}</b><span class="wide-only"> of all</span></span>
              <button type="button" onClick={() => zoom(0)}>Reset zoom</button>
            </Show>
          </span>
        </nav>
      </Show>
      <Split
          showLeft={state().view !== 'table'}
          showRight={state().view !== 'flame'}
          left={
            <div class="pane" classList={{ stale: props.stale }} >
              <FlameGraph
                flame={props.flame}
                colours={colours()}
                amount={props.amount}
                flip={state().orient === 'flame'}
                focus={focus()}
                matched={found().result && (found().result!.nodes.length > 0 || searchText() !== '') ? found().result!.names : null}
                current={current()}
                selected={selected()}
                hovered={hovered()}
                onFocus={(node) => zoom(node)}
                onHover={setHovered}
                onMenu={(node, x, y) => setMenu({ name: props.flame.name[node]!, node, x, y })}
              />
            </div>
          }
          right={
            <div class="pane" classList={{ stale: props.stale }} >
              <TopTable
                flame={props.flame}
                colours={colours()}
                amount={props.amount}
                sort={state().sort}
                filter={state().filter}
                selected={selected()}
                hovered={hovered()}
                reveal={reveal()}
                onSort={(sort) => go({ sort: sort === '-self' ? '' : sort }, { replace: true })}
                onFilter={(filter) => go({ filter }, { replace: true })}
                onSelect={select}
                onZoom={(node) => zoom(node)}
                onHover={setHovered}
                onMenu={(name, node, x, y) => setMenu({ name, node, x, y })}
              />
            </div>
          }
        />
      <Show when={menu()} keyed>
        {(at) => <ContextMenu x={at.x} y={at.y} label={`Actions of ${props.flame.names[at.name]}`} actions={actions(at.name, at.node)} close={() => setMenu(undefined)} />}
      </Show>
    </>
  );
}
