// The flame graph and the table of one response, with their controls: search, breadcrumb, rules for frames, the choice of view,
// and the menu of a frame. The owner holds the zoom, the search and the selection.

import { createEffect, createMemo, createSignal, For, on, Show, type JSX } from 'solid-js';
import { findPath, pathText, widest, type Flame } from '../flame/layout.ts';
import { exactly, findName, nameText } from '../flame/names.ts';
import { PLAIN, type Recipe } from '../flame/recipe.ts';
import { compileSearch, searchFlame, stepThrough, type Found } from '../flame/search.ts';
import { hottest } from '../flame/top.ts';
import type { Tree } from '../flame/tree.ts';
import { createKeys } from '../lib/keys.ts';
import type { Change, Reader, Values } from '../lib/schema.ts';
import { createShape, readRecipe } from '../models/recipe.ts';
import type { Query } from '../models/selection.ts';
import type { FLAME } from '../urls.ts';
import { Crumbs } from './Crumbs.tsx';
import { FlameGraph } from './FlameGraph.tsx';
import type { FlameLook } from './FlameLook.ts';
import { FlameSearch } from './FlameSearch.tsx';
import { frameActions, packageOf, RULES, type FrameDeeds } from './frame-actions.ts';
import { FrameRules, FramesMenu } from './FrameRules.tsx';
import { Icon, type IconName } from './Icon.tsx';
import { ContextMenu } from './Menu.tsx';
import { Notice } from './Notice.tsx';
import { PANES, Part, type Pane } from './Parts.tsx';
import { Radios } from './Radios.tsx';
import { Split } from './Split.tsx';

type View = Values<typeof FLAME>['view'];

const VIEWS: readonly { view: View; label: string; icon: IconName }[] = [
  { view: 'flame', label: 'Graph only', icon: 'flame' },
  { view: 'both', label: 'Graph and table', icon: 'both' },
  { view: 'table', label: 'Table only', icon: 'table' },
];
/** A step of the search zooms until the matching frame has at least this share of the width. */
const VISIBLE_SHARE = 0.02;

export interface FlamePaneProps {
  tree: Tree;
  /** Key of the profile. A new key scrolls back to the root. */
  of: string;
  look: FlameLook;
  /** The query that returns the lines of functions; null or absent if there is none. */
  stacks?: Query | null;
  /** Further controls, and a legend between them and the flame graph. */
  tools?: JSX.Element;
  legend?: JSX.Element;
  /** True while a newer response is loading. */
  stale: boolean;
  at: Reader<typeof FLAME>;
  onChange: Change<typeof FLAME>;
}

export function FlamePane(props: FlamePaneProps) {
  let search!: HTMLInputElement;
  const at = props.at;
  /** Path of the frame that the search has stepped to. */
  const [stepped, setStepped] = createSignal('');
  const [hovered, setHovered] = createSignal(-1);
  const [reveal, setReveal] = createSignal(0);
  const [menu, setMenu] = createSignal<{ name: number; node: number; x: number; y: number }>();

  const recipe = createMemo(() => readRecipe(at));
  const shaped = createShape(() => props.tree, recipe);
  const shown = createMemo(() => shaped().shown);
  const flame = (): Flame => shown().flame;
  const focus = createMemo(() => Math.max(0, findPath(flame(), at.focus())));
  const selected = createMemo(() => (at.sel() === '' ? -1 : findName(flame().names, at.sel())));
  const panes = createMemo(() => PANES.filter(({ value }) => value === 'flame' || value === 'callers' || (props.look.amount !== null && (value !== 'list' || props.stacks))));
  const pane = createMemo<Pane>(() => (panes().some(({ value }) => value === at.pane()) ? at.pane() : 'flame'));

  // If a rule removes the zoomed frame, zoom to the widest frame of the same function.
  createEffect(on(flame, (now, before) => {
    if (!before || before.names !== now.names || at.focus() === '' || findPath(now, at.focus()) >= 0) return;
    const node = findPath(before, at.focus());
    if (node >= 0) zoom(widest(now, before.name[node]!), true);
  }));

  const found = createMemo<{ result: Found | null; error: string }>(() => {
    try {
      const matches = compileSearch(at.search()) ?? (selected() >= 0 ? (name: string) => name === flame().names[selected()] : null);
      return { result: matches ? searchFlame(flame(), matches) : null, error: '' };
    } catch (error) {
      return { result: null, error: error instanceof Error ? error.message : String(error) };
    }
  });
  const current = createMemo(() => (stepped() === '' ? -1 : findPath(flame(), stepped())));
  const place = createMemo(() => found().result?.nodes.indexOf(current()) ?? -1);
  const matching = createMemo(() => props.look.sum(shown(), found().result?.nodes ?? []));
  const zoomedSum = createMemo(() => props.look.sum(shown(), [focus()]));
  const matched = (): Uint8Array | null => {
    const { result } = found();
    return result && (result.nodes.length > 0 || at.search() !== '') ? result.names : null;
  };
  createEffect(on([at.search, at.sel], () => setStepped(''), { defer: true }));

  const searchFor = (text: string): void => props.onChange({ search: text }, { replace: true });
  const step = (by: 1 | -1): void => {
    const node = stepThrough(found().result?.nodes ?? [], current(), by);
    if (node < 0) return;
    if (pane() !== 'flame') props.onChange({ pane: 'flame' });
    setStepped(pathText(flame(), node));
    // If the frame is too narrow to see, zoom to a caller in which it is wide enough.
    const { start, total, parent } = flame();
    const zoomed = focus();
    const inside = start[node]! >= start[zoomed]! && start[node]! + total[node]! <= start[zoomed]! + total[zoomed]!;
    if (inside && total[node]! >= total[zoomed]! * VISIBLE_SHARE) return;
    let caller = node;
    while (parent[caller]! > 0 && total[node]! >= total[parent[caller]!]! * VISIBLE_SHARE * 2) caller = parent[caller]!;
    zoom(caller, true);
  };
  const zoom = (node: number, replace = false): void => {
    props.onChange({ focus: node <= 0 ? '' : pathText(flame(), node) }, { replace });
  };
  /** Zooms from another view or from the table, and switches to the flame graph. */
  const zoomTo = (node: number): void => props.onChange({ focus: node <= 0 ? '' : pathText(flame(), node), pane: 'flame' });
  const up = (): void => {
    if (pane() !== 'flame') props.onChange({ pane: 'flame' });
    else if (focus() > 0) zoom(flame().parent[focus()] ?? 0);
    else if (at.focus() !== '') zoom(0);
    else if (at.search() !== '') searchFor('');
    else if (at.sel() !== '') props.onChange({ sel: '' }, { replace: true });
  };
  const select = (name: number): void => {
    const text = nameText(flame().names[name] ?? '');
    // All views except the flame graph show the selected function, so a click there never clears the selection.
    if (pane() !== 'flame') props.onChange({ sel: text });
    else props.onChange({ sel: text === at.sel() ? '' : text }, { replace: true });
  };
  const walk = (name: string): void => props.onChange({ sel: nameText(name), pane: pane() === 'flame' ? 'callers' : pane() });
  const show = (view: View) => (): void => props.onChange({ view }, { replace: true });
  const open = (next: Pane) => (): void => {
    if (panes().some(({ value }) => value === next)) props.onChange({ pane: next, ...(at.view() === 'table' ? { view: 'both' } : {}) });
  };
  const flip = (): void => props.onChange({ orient: at.orient() === 'flame' ? 'icicle' : 'flame' }, { replace: true });
  const rule = (patch: (recipe: Recipe) => Partial<Recipe>): void => props.onChange(patch(recipe()));

  /** The function that all views except the flame graph show: the selected one, else the zoomed one, else the one with the largest own value. */
  const looked = createMemo(() => (at.sel() !== '' ? selected() : focus() > 0 ? flame().name[focus()]! : hottest(shaped().calls.flame)));
  /** The function that a key applies to: the hovered one, else the selected one, else the zoomed one. */
  const atHand = (): number => (hovered() >= 0 ? hovered() : selected() >= 0 ? selected() : focus() > 0 ? flame().name[focus()]! : -1);
  const about = (run: (name: string) => void) => (): void => {
    const name = atHand();
    if (name >= 0 && name !== flame().name[0]) run(flame().names[name]!);
  };
  const deeds: FrameDeeds = {
    zoom: zoomTo,
    walk: (name) => props.onChange({ sel: nameText(name), pane: 'callers' }),
    showInTable: (name) => {
      props.onChange({ sel: nameText(name), filter: '', view: at.view() === 'flame' ? 'both' : at.view() }, { replace: true });
      setReveal((count) => count + 1);
    },
    search: searchFor,
    rule,
  };
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
    4: open('flame'),
    5: open('callers'),
    6: open('peek'),
    7: open('graph'),
    8: open('list'),
    c: about(deeds.walk),
    o: about((name) => rule(RULES.only(exactly(name)))),
    x: about((name) => rule(RULES.hide(exactly(name)))),
    O: () => at.search() !== '' && rule(RULES.only(at.search())),
    X: () => at.search() !== '' && rule(RULES.hide(at.search())),
    k: about(() => packageOf(flame(), atHand()) !== '' && rule(() => ({ package: packageOf(flame(), atHand()) }))),
    i: () => rule(({ invert }) => ({ invert: !invert })),
    g: () => rule(({ recursion }) => ({ recursion: !recursion })),
    0: () => rule(() => PLAIN),
  }));
  const empty = (): boolean => (shaped().calls.flame.total[0] ?? 0) === 0 && props.tree.flame.sum > 0;
  const openMenu = (name: number, node: number, x: number, y: number): void => void setMenu({ name, node, x, y });

  return (
    <>
      <div class="tools">
        <FlameSearch
          ref={(input) => { search = input; }}
          text={at.search()}
          found={found()}
          matching={matching()}
          place={place()}
          onText={searchFor}
          onStep={step}
          onClear={() => props.onChange({ search: '', sel: '' }, { replace: true })}
        />
        <span class="grow" />
        {props.tools}
        <Radios label="View" value={pane()} choices={panes()} onChoose={(next) => open(next)()} />
        <FramesMenu recipe={recipe()} tree={props.tree} searched={at.search()} flip={at.orient() === 'flame'} onFlip={flip} onRecipe={(patch) => rule(() => patch)} />
        <div class="group" role="group" aria-label="Panes">
          <For each={VIEWS}>
            {(choice) => (
              <button type="button" class="button square" aria-label={choice.label} title={choice.label} aria-pressed={at.view() === choice.view} onClick={show(choice.view)}>
                <Icon name={choice.icon} />
              </button>
            )}
          </For>
        </div>
      </div>
      <FrameRules recipe={recipe()} shaped={shaped()} shown={props.look.sum(shown(), [0])} onRecipe={(patch) => rule(() => patch)} />
      <Show when={at.view() !== 'table' && pane() === 'flame'}>
        <Crumbs tree={shown()} focus={focus()} zoomed={zoomedSum()} onZoom={(node) => zoom(node)} />
      </Show>
      {props.legend}
      <Split
        showLeft={at.view() !== 'table'}
        showRight={at.view() !== 'flame'}
        left={
          <div class="pane" classList={{ stale: props.stale }} aria-busy={props.stale}>
            <Show when={!empty()} fallback={<div class="fill"><Notice icon="empty" title="No stacks match" actions={<button type="button" class="button primary" onClick={() => rule(() => PLAIN)}>Remove all rules</button>}><p>No stack of this profile matches all of the rules above.</p></Notice></div>}>
              <Show when={pane() === 'flame' ? undefined : (pane() as Exclude<Pane, 'flame'>)} fallback={
                <FlameGraph
                  id="flame"
                  label="Flame graph"
                  tree={shown()}
                  of={props.of}
                  look={props.look}
                  flip={at.orient() === 'flame'}
                  focus={focus()}
                  matched={matched()}
                  current={current()}
                  selected={selected()}
                  hovered={hovered()}
                  onFocus={(node) => zoom(node)}
                  onOpen={deeds.walk}
                  onHover={setHovered}
                  onMenu={(node, x, y) => openMenu(flame().name[node] ?? 0, node, x, y)}
                />
              }>
                {(part) => (
                  <Show when={looked() >= 0 || part() === 'graph'} fallback={<div class="fill"><Notice icon="empty" title="The function is not in this profile" actions={<button type="button" class="button" onClick={() => props.onChange({ sel: '' })}>Show the largest function</button>}><p>{at.sel()}</p></Notice></div>}>
                    <Part
                      pane={part()}
                      tree={shaped().calls}
                      of={props.of}
                      recipe={recipe()}
                      look={props.look}
                      name={looked()}
                      hovered={hovered()}
                      stacks={props.stacks ?? null}
                      nodes={at.nodes()}
                      onNodes={(nodes) => props.onChange({ nodes }, { replace: true })}
                      onWalk={walk}
                      onHover={setHovered}
                      onMenu={(name, x, y) => openMenu(name, widest(flame(), name), x, y)}
                    />
                  </Show>
                )}
              </Show>
            </Show>
          </div>
        }
        right={
          <div class="pane" aria-busy={props.stale}>
            {props.look.table({
              get tree() { return shaped().calls; },
              get sort() { return at.sort(); },
              get filter() { return at.filter(); },
              get selected() { return selected(); },
              get hovered() { return hovered(); },
              get reveal() { return reveal(); },
              onSort: (sort) => props.onChange({ sort }, { replace: true }),
              onFilter: (filter) => props.onChange({ filter }, { replace: true }),
              onSelect: select,
              onZoom: (node) => zoomTo(drawnNode(node)),
              onHover: setHovered,
              onMenu: (name, node, x, y) => openMenu(name, drawnNode(node), x, y),
            })}
          </div>
        }
      />
      <Show when={menu()} keyed>
        {(opened) => <ContextMenu x={opened.x} y={opened.y} label={`Actions for ${flame().names[opened.name]}`} actions={frameActions(flame(), opened.name, opened.node, deeds)} close={() => setMenu(undefined)} />}
      </Show>
    </>
  );

  /** Returns the drawn node for a node of the table. The drawn graph may be inverted, the table never is. */
  function drawnNode(node: number): number {
    const { calls } = shaped();
    return calls === shown() ? node : widest(flame(), calls.flame.name[node] ?? -1);
  }
}
