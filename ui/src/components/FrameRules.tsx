// The rules that are applied to a flame graph before it is shown. A menu adds rules, and turns rules on and off. A row lists the active
// rules, each with a button that removes it. Without rules there is no row.

import { createMemo, For, Show } from 'solid-js';
import { shortName } from '../flame/packages.ts';
import { PRESETS, presetOfNames } from '../flame/presets.ts';
import { isPlain, PLAIN, type Recipe } from '../flame/recipe.ts';
import type { Shaped, Tree } from '../flame/tree.ts';
import { RULES } from './frame-actions.ts';
import { Icon } from './Icon.tsx';
import { Menu, type Action } from './Menu.tsx';
import { Popover } from './Popover.tsx';

export interface FrameRulesProps {
  recipe: Recipe;
  onRecipe: (patch: Partial<Recipe>) => void;
}

export function FramesMenu(props: FrameRulesProps & { tree: Tree; searched: string; flip: boolean; onFlip: () => void }) {
  /** The presets that match frames of this graph, and those that are active. */
  const present = () => {
    const { names, files, mappings } = props.tree.flame;
    const found = new Set(presetOfNames(names, files, mappings));
    return PRESETS.filter(({ key }, index) => found.has(index + 1) || props.recipe.fold.includes(key));
  };
  const actions = (presets = present()): (Action | null)[] => [
    { label: 'Invert: from leaves to callers', hint: 'i', on: props.recipe.invert, run: () => props.onRecipe({ invert: !props.recipe.invert }) },
    { label: 'Collapse recursion', hint: 'g', on: props.recipe.recursion, run: () => props.onRecipe({ recursion: !props.recipe.recursion }) },
    { label: 'Root at the bottom', hint: 'f', on: props.flip, run: props.onFlip },
    ...(presets.length > 0 ? [null] : []),
    ...presets.map(({ key, label }) => ({
      label: `Fold ${label}`,
      on: props.recipe.fold.includes(key),
      run: () => props.onRecipe({ fold: props.recipe.fold.includes(key) ? props.recipe.fold.filter((other) => other !== key) : [...props.recipe.fold, key] }),
    })),
    null,
    { label: 'Only stacks that match the search', hint: 'O', disabled: props.searched === '', run: () => props.onRecipe(RULES.only(props.searched)(props.recipe)) },
    { label: 'Exclude stacks that match the search', disabled: props.searched === '', run: () => props.onRecipe(RULES.without(props.searched)(props.recipe)) },
    { label: 'Hide frames that match the search', hint: 'X', disabled: props.searched === '', run: () => props.onRecipe(RULES.hide(props.searched)(props.recipe)) },
    null,
    { label: 'Remove all rules', hint: '0', disabled: isPlain(props.recipe), run: () => props.onRecipe(PLAIN) },
  ];
  return (
    <Popover label="Frames" haspopup="menu" align="right" title="Rules for frames" trigger={<><Icon name="frames" /><span class="wide-only">Frames</span><Icon name="down" class="chevron" /></>}>
      {(close) => <Menu label="Frames" actions={actions()} close={close} />}
    </Popover>
  );
}

interface Rule {
  what: string;
  name: string;
  patch: Partial<Recipe>;
}

export function FrameRules(props: FrameRulesProps & { shaped: Shaped; shown: { share: string; value: string } }) {
  const spoken = (text: string): string => (text.startsWith('=') ? shortName(text.slice(1)) : text);
  const rules = createMemo((): Rule[] => {
    const { recipe } = props;
    const each = (key: 'only' | 'without' | 'hide', what: string): Rule[] => recipe[key].map((text) => ({ what, name: spoken(text), patch: { [key]: recipe[key].filter((other) => other !== text) } }));
    return [
      ...each('only', 'only stacks with'),
      ...each('without', 'exclude stacks with'),
      ...each('hide', 'hide frames'),
      ...(recipe.package === '' ? [] : [{ what: 'only package', name: recipe.package, patch: { package: '' } }]),
      ...recipe.fold.map((key) => ({ what: 'folded', name: PRESETS.find((preset) => preset.key === key)?.label ?? key, patch: { fold: recipe.fold.filter((other) => other !== key) } })),
      ...(recipe.recursion ? [{ what: 'recursion', name: 'collapsed', patch: { recursion: false } }] : []),
      ...(recipe.invert ? [{ what: 'inverted', name: 'from leaves to callers', patch: { invert: false } }] : []),
    ];
  });
  const missing = (): boolean => {
    const { flame } = props.shaped.shown;
    return (flame.total[0] ?? 0) < flame.sum * (1 - 1e-9);
  };
  return (
    <Show when={rules().length > 0}>
      <div class="rules" role="group" aria-label="Rules for frames">
        <ul class="chips">
          <For each={rules()}>
            {(rule) => (
              <li class="chip">
                <span class="edit"><span class="op">{rule.what}</span><span class="text" title={rule.name}>{rule.name}</span></span>
                <button type="button" class="remove" aria-label={`Remove rule: ${rule.what} ${rule.name}`} onClick={() => props.onRecipe(rule.patch)}><Icon name="close" /></button>
              </li>
            )}
          </For>
        </ul>
        <For each={props.shaped.errors}>{(error) => <span class="match bad" role="alert">{error}</span>}</For>
        <span class="grow" />
        <Show when={missing()}><span class="match" role="status">Shown: {props.shown.value}, <b>{props.shown.share}</b> of total</span></Show>
        <button type="button" class="button plain" title="Remove all rules  0" onClick={() => props.onRecipe(PLAIN)}>Remove all rules</button>
      </div>
    </Show>
  );
}
