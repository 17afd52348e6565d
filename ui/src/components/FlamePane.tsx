// Flame graph and table of one answer, with their tools: search, breadcrumb, which of the two is shown, the menu of a
// frame. What is zoomed, searched and selected belongs to the owner.

import { createEffect, createMemo, createSignal, For, on, onCleanup, Show, type JSX } from 'solid-js';
import { ancestors, findPath, pathText, type Flame } from '../flame/layout.ts';
import { shortName } from '../flame/packages.ts';
import { compileSearch, searchFlame, stepThrough, type Found } from '../flame/search.ts';
import { copyText } from '../lib/clipboard.ts';
import { formatWhole } from '../lib/format.ts';
import { createKeys } from '../lib/keys.ts';
import type { Change, Reader, Values } from '../lib/schema.ts';
import { say } from '../lib/toast.ts';
import type { FLAME } from '../urls.ts';
import { FlameGraph } from './FlameGraph.tsx';
import type { FlameLook } from './FlameLook.ts';
import { Icon, type IconName } from './Icon.tsx';
import { ContextMenu, type Action } from './Menu.tsx';
import { Split } from './Split.tsx';

type View = Values<typeof FLAME>['view'];

const VIEWS: readonly { view: View; label: string; icon: IconName }[] = [
  { view: 'flame', label: 'Flame graph', icon: 'flame' },
  { view: 'both', label: 'Both', icon: 'both' },
  { view: 'table', label: 'Table', icon: 'table' },
];
/** A step of the search zooms in until its frame has this share of the width. */
const VISIBLE_SHARE = 0.02;

export interface FlamePaneProps {
  flame: Flame;
  /** What it is of: when that changes, one begins at the root again. */
  of: string;
  look: FlameLook;
  /** More tools, and what stands between them and the flame graph. */
  tools?: JSX.Element;
  legend?: JSX.Element;
  /** A newer one is on its way. */
  stale: boolean;
  at: Reader<typeof FLAME>;
  onChange: Change<typeof FLAME>;
}

export function FlamePane(props: FlamePaneProps) {
  let search!: HTMLInputElement;
  const at = props.at;
  const [typed, setTyped] = createSignal(at.search());
  /** Path of the frame that the search has stepped to. */
  const [stepped, setStepped] = createSignal('');
  const [hovered, setHovered] = createSignal(-1);
  const [reveal, setReveal] = createSignal(0);
  const [menu, setMenu] = createSignal<{ name: number; node: number; x: number; y: number }>();

  const focus = createMemo(() => Math.max(0, findPath(props.flame, at.focus())));
  const selected = createMemo(() => (at.sel() === '' ? -1 : props.flame.names.indexOf(at.sel())));
  const nameOf = (node: number): string => props.flame.names[props.flame.name[node] ?? -1] ?? '';

  const found = createMemo<{ result: Found | null; error: string }>(() => {
    try {
      const matches = compileSearch(at.search()) ?? (selected() >= 0 ? (name: string) => name === at.sel() : null);
      return { result: matches ? searchFlame(props.flame, matches) : null, error: '' };
    } catch (error) {
      return { result: null, error: error instanceof Error ? error.message : String(error) };
    }
  });
  const current = createMemo(() => (stepped() === '' ? -1 : findPath(props.flame, stepped())));
  const place = createMemo(() => found().result?.nodes.indexOf(current()) ?? -1);
  createEffect(on([at.search, at.sel], () => setStepped(''), { defer: true }));
  createEffect(on(at.search, (text) => text !== typed() && setTyped(text), { defer: true }));

  let timer: ReturnType<typeof setTimeout> | undefined;
  const searchFor = (text: string): void => {
    setTyped(text);
    clearTimeout(timer);
    timer = setTimeout(() => props.onChange({ search: text }, { replace: true }), 120);
  };
  const step = (by: 1 | -1): void => {
    const node = stepThrough(found().result?.nodes ?? [], current(), by);
    if (node < 0) return;
    setStepped(pathText(props.flame, node));
    // Where the frame could hardly be seen, zoom to a caller in which it can.
    const { start, total, parent } = props.flame;
    const zoomed = focus();
    const inside = start[node]! >= start[zoomed]! && start[node]! + total[node]! <= start[zoomed]! + total[zoomed]!;
    if (inside && total[node]! >= total[zoomed]! * VISIBLE_SHARE) return;
    let caller = node;
    while (parent[caller]! > 0 && total[node]! >= total[parent[caller]!]! * VISIBLE_SHARE * 2) caller = parent[caller]!;
    zoom(caller, true);
  };
  const zoom = (node: number, replace = false): void => {
    props.onChange({ focus: node <= 0 ? '' : pathText(props.flame, node) }, { replace });
  };
  const up = (): void => {
    if (focus() > 0) zoom(props.flame.parent[focus()] ?? 0);
    else if (at.focus() !== '') zoom(0);
    else if (at.search() !== '') searchFor('');
    else if (at.sel() !== '') props.onChange({ sel: '' }, { replace: true });
  };
  const select = (name: number): void => {
    const text = props.flame.names[name] ?? '';
    props.onChange({ sel: text === at.sel() ? '' : text }, { replace: true });
  };
  const show = (view: View) => (): void => props.onChange({ view }, { replace: true });
  const flip = (): void => props.onChange({ orient: at.orient() === 'flame' ? 'icicle' : 'flame' }, { replace: true });
  createKeys(() => (menu() ? {} : {
    '/': () => {
      search.focus();
      search.select();
    },
    n: () => step(1),
    N: () => step(-1),
    Escape: up,
    f: flip,
    1: show('both'),
    2: show('flame'),
    3: show('table'),
  }));
  onCleanup(() => clearTimeout(timer));

  const actions = (name: number, node: number): (Action | null)[] => {
    const text = props.flame.names[name] ?? '';
    const file = props.flame.files[name] ?? '';
    const line = props.flame.line[node] ?? 0;
    const where = file === '' ? '' : line > 0 ? `${file}:${line}` : file;
    const copy = (what: string) => async (): Promise<void> => say((await copyText(what)) ? 'Copied' : 'The browser did not allow copying');
    return [
      { label: 'Focus', hint: 'Enter', run: () => zoom(node) },
      { label: 'Show in table', run: () => {
        props.onChange({ sel: text, filter: '', view: at.view() === 'flame' ? 'both' : at.view() }, { replace: true });
        setReveal((count) => count + 1);
      } },
      { label: 'Search for this', run: () => searchFor(text) },
      null,
      { label: 'Copy name', run: copy(text) },
      { label: 'Copy file:line', disabled: where === '', run: copy(where) },
    ];
  };
  const chain = createMemo(() => ancestors(props.flame, focus()));
  /** The root, the nearest callers, and a hole between them when they are many. */
  const crumbs = createMemo<(number | null)[]>(() => {
    const all = chain();
    return all.length <= 6 ? all : [0, null, ...all.slice(-4)];
  });
  const zoomed = createMemo(() => props.look.sum([focus()]));
  const matching = createMemo(() => props.look.sum(found().result?.nodes ?? []));

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
              <Show when={result().nodes.length > 0} fallback={at.search() ? 'No frame matches' : ''}>
                <b>{matching().share}</b> · {matching().value} · {place() >= 0 ? `${formatWhole(place() + 1)} of ` : ''}{formatWhole(result().nodes.length)} {result().nodes.length === 1 ? 'place' : 'places'}
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
              props.onChange({ search: '', sel: '' }, { replace: true });
            }}><Icon name="close" /></button>
          </div>
        </Show>
        <span class="grow" />
        {props.tools}
        <button type="button" class="button" aria-pressed={at.orient() === 'flame'} title="Root on top or at the bottom  f" onClick={flip}>
          <Icon name="flip" /><span class="wide-only">{at.orient() === 'flame' ? 'Root at the bottom' : 'Root on top'}</span>
        </button>
        <div class="group" role="group" aria-label="Shown">
          <For each={VIEWS}>
            {(choice) => (
              <button type="button" class="button square" aria-label={choice.label} title={choice.label} aria-pressed={at.view() === choice.view} onClick={show(choice.view)}>
                <Icon name={choice.icon} />
              </button>
            )}
          </For>
        </div>
      </div>
      <Show when={at.view() !== 'table'}>
        <nav class="crumbs" aria-label="Callers of the zoomed frame">
          <ol>
            <For each={crumbs()}>
              {(node, index) => (
                <li>
                  <Show when={index() > 0}><Icon name="right" /></Show>
                  <Show when={node !== null} fallback={<span class="muted" title={chain().slice(1, -4).map((node) => nameOf(node)).join('\n')}>…</span>}>
                    <Show when={node !== focus()} fallback={<span class="here" aria-current="location" title={nameOf(node ?? 0)}>{shortName(nameOf(node ?? 0))}</span>}>
                      <button type="button" title={nameOf(node ?? 0)} onClick={() => zoom(node ?? 0)}>{shortName(nameOf(node ?? 0))}</button>
                    </Show>
                  </Show>
                </li>
              )}
            </For>
          </ol>
          <span class="facts">
            <span><b>{zoomed().value}</b></span>
            <Show when={focus() > 0} fallback={<span class="wide-only">{formatWhole(props.flame.count)} frames</span>}>
              <span><b>{zoomed().share}</b><span class="wide-only"> of all</span></span>
              <button type="button" onClick={() => zoom(0)}>Reset zoom</button>
            </Show>
          </span>
        </nav>
      </Show>
      {props.legend}
      <Split
          showLeft={at.view() !== 'table'}
          showRight={at.view() !== 'flame'}
          left={
            <div class="pane" classList={{ stale: props.stale }} aria-busy={props.stale}>
              <FlameGraph
                flame={props.flame}
                of={props.of}
                look={props.look}
                flip={at.orient() === 'flame'}
                focus={focus()}
                matched={found().result && ((found().result?.nodes.length ?? 0) > 0 || at.search() !== '') ? (found().result?.names ?? null) : null}
                current={current()}
                selected={selected()}
                hovered={hovered()}
                onFocus={(node) => zoom(node)}
                onHover={setHovered}
                onMenu={(node, x, y) => setMenu({ name: props.flame.name[node] ?? 0, node, x, y })}
              />
            </div>
          }
          right={
            <div class="pane" aria-busy={props.stale}>
              {props.look.table({
                get sort() { return at.sort(); },
                get filter() { return at.filter(); },
                get selected() { return selected(); },
                get hovered() { return hovered(); },
                get reveal() { return reveal(); },
                onSort: (sort) => props.onChange({ sort }, { replace: true }),
                onFilter: (filter) => props.onChange({ filter }, { replace: true }),
                onSelect: select,
                onZoom: (node) => zoom(node),
                onHover: setHovered,
                onMenu: (name, node, x, y) => setMenu({ name, node, x, y }),
              })}
            </div>
          }
        />
      <Show when={menu()} keyed>
        {(open) => <ContextMenu x={open.x} y={open.y} label={`Actions of ${props.flame.names[open.name]}`} actions={actions(open.name, open.node)} close={() => setMenu(undefined)} />}
      </Show>
    </>
  );
}
