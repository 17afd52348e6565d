// The actions in the menu of a frame.

import type { Flame } from '../flame/layout.ts';
import { exactly, LONGEST_NAME } from '../flame/names.ts';
import { placeOf } from '../flame/packages.ts';
import type { Recipe } from '../flame/recipe.ts';
import { copyText } from '../lib/clipboard.ts';
import { say } from '../lib/toast.ts';
import type { Action } from './Menu.tsx';

export interface FrameDeeds {
  zoom: (node: number) => void;
  walk: (name: string) => void;
  showInTable: (name: string) => void;
  search: (name: string) => void;
  /** Changes the rules of the graph. */
  rule: (patch: (recipe: Recipe) => Partial<Recipe>) => void;
}

const add = (texts: readonly string[], text: string): readonly string[] => (texts.includes(text) ? texts : [...texts, text]);

/** Functions that add a rule to a recipe. A rule selects frames by a text in the syntax of the search. */
export const RULES = {
  only: (text: string) => (recipe: Recipe): Partial<Recipe> => ({ only: add(recipe.only, text) }),
  without: (text: string) => (recipe: Recipe): Partial<Recipe> => ({ without: add(recipe.without, text) }),
  hide: (text: string) => (recipe: Recipe): Partial<Recipe> => ({ hide: add(recipe.hide, text) }),
};

/** Returns the package of a function; empty if the function has none, or if the name of the package is too long for a link. */
export function packageOf(flame: Flame, name: number): string {
  const one = placeOf(flame.names[name] ?? '', flame.mappings[name], flame.files[name]).package;
  return one.length > LONGEST_NAME ? '' : one;
}

/** Returns the actions. `node` is a node of the drawn graph, -1 if the function is not in it. */
export function frameActions(flame: Flame, name: number, node: number, deeds: FrameDeeds): (Action | null)[] {
  const text = flame.names[name] ?? '';
  const file = flame.files[name] ?? '';
  const line = flame.line[node] ?? 0;
  const where = file === '' ? '' : line > 0 ? `${file}:${line}` : file;
  const one = packageOf(flame, name);
  const root = name === (flame.name[0] ?? -1);
  const copy = (what: string) => async (): Promise<void> => say((await copyText(what)) ? 'Copied' : 'The browser did not allow copying');
  return [
    { label: 'Zoom', hint: 'Enter', disabled: node < 0, run: () => deeds.zoom(node) },
    { label: 'Callers and callees', hint: 'c', disabled: root, run: () => deeds.walk(text) },
    { label: 'Show in table', run: () => deeds.showInTable(text) },
    { label: 'Search for this function', run: () => deeds.search(text.length > LONGEST_NAME ? exactly(text) : text) },
    null,
    { label: 'Only stacks with this function', hint: 'o', disabled: root, run: () => deeds.rule(RULES.only(exactly(text))) },
    { label: 'Exclude stacks with this function', disabled: root, run: () => deeds.rule(RULES.without(exactly(text))) },
    { label: 'Hide this function', hint: 'x', disabled: root, run: () => deeds.rule(RULES.hide(exactly(text))) },
    { label: 'Only this package', hint: 'k', disabled: root || one === '', run: () => deeds.rule(() => ({ package: one })) },
    null,
    { label: 'Copy function name', run: copy(text) },
    { label: 'Copy file:line', disabled: where === '', run: copy(where) },
  ];
}
