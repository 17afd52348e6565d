// The rules for a flame graph: the stacks to keep, the frames to remove or merge, and the direction. All can be
// written as text, so that a link can contain them.

import type { Flame } from './layout.ts';
import { placeOf } from './packages.ts';
import { PRESETS, presetOfNames } from './presets.ts';
import { compileSearch } from './search.ts';

export interface Recipe {
  /** Keeps only stacks that have a matching frame for each of these texts. */
  only: readonly string[];
  /** Excludes stacks with a frame that matches one of these texts. */
  without: readonly string[];
  /** Removes matching frames and adds their values to their callers. */
  hide: readonly string[];
  /** Keeps only frames of this package, and stacks with such a frame; empty for all packages. */
  package: string;
  /** Keys of presets. A frame is merged into its caller if both belong to the same preset. */
  fold: readonly string[];
  /** Shows a recursive function only at its first call in a stack. */
  recursion: boolean;
  /** Shows the graph from the leaves to their callers. */
  invert: boolean;
}

export const PLAIN: Recipe = { only: [], without: [], hide: [], package: '', fold: [], recursion: false, invert: false };

/** Whether the graph is shown unchanged. */
export const isPlain = (recipe: Recipe): boolean => !recipe.invert && keepsFrames(recipe);

/** Whether all frames are kept, each below the same callers. */
export const keepsFrames = ({ only, without, hide, package: one, fold, recursion }: Recipe): boolean => only.length + without.length + hide.length + fold.length === 0 && one === '' && !recursion;

/** A recipe resolved for one graph, with a flag for each name. */
export interface Plan {
  /** The flags for the texts of `only`. A stack is kept if it has a flagged frame for each text. */
  only: Uint8Array[];
  without: Uint8Array;
  hidden: Uint8Array;
  /** The preset by which a name is folded, 0 for none. */
  group: Uint8Array;
  recursion: boolean;
  /** Errors of texts that cannot be parsed. */
  errors: string[];
}

/** Maximum number of texts that stacks have to match; further texts are ignored. */
const MOST_ONLY = 30;

export function planOf(flame: Flame, recipe: Recipe): Plan {
  const { names } = flame;
  const errors: string[] = [];
  const match = (text: string): Uint8Array | null => {
    try {
      const matches = compileSearch(text);
      return matches && Uint8Array.from(names, (name, index) => Number(index !== flame.name[0] && matches(name)));
    } catch (error) {
      errors.push(`${text}: ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  };
  const any = (texts: readonly string[]): Uint8Array => {
    const flags = new Uint8Array(names.length);
    for (const found of texts.map(match)) found?.forEach((flag, name) => { flags[name]! |= flag; });
    return flags;
  };
  const only = recipe.only.slice(0, MOST_ONLY).map(match).filter((flags) => flags !== null);
  const hidden = any(recipe.hide);
  if (recipe.package !== '') {
    const inside = Uint8Array.from(names, (name, index) => Number(index !== flame.name[0] && placeOf(name, flame.mappings[index], flame.files[index]).package === recipe.package));
    only.push(inside);
    inside.forEach((flag, name) => { hidden[name]! |= 1 - flag; });
  }
  return { only, without: any(recipe.without), hidden, group: groups(flame, recipe.fold), recursion: recipe.recursion, errors };
}

function groups({ names, files, mappings }: Flame, fold: readonly string[]): Uint8Array {
  if (fold.length === 0) return new Uint8Array(names.length);
  const wanted = PRESETS.map(({ key }) => fold.includes(key));
  return presetOfNames(names, files, mappings).map((preset) => (preset > 0 && wanted[preset - 1] ? preset : 0));
}
