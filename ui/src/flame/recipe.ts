// What is done to a flame graph before it is shown: which stacks count, which frames are taken out of them, which become
// one, and from which end they are read. Everything is named by text, so that a link can say it.

import type { Flame } from './layout.ts';
import { placeOf } from './packages.ts';
import { PRESETS, presetOfNames } from './presets.ts';
import { compileSearch } from './search.ts';

export interface Recipe {
  /** Only stacks with a frame that matches, for each of these. */
  only: readonly string[];
  /** No stacks with a frame that matches one of these. */
  without: readonly string[];
  /** Frames that match are taken out; what they have falls to their callers. */
  hide: readonly string[];
  /** Only frames of this package, and only stacks that have one; empty for all. */
  package: string;
  /** Keys of presets: frames of one that are called by frames of the same become one with them. */
  fold: readonly string[];
  /** A function that is called again below itself is shown where it was called first. */
  recursion: boolean;
  /** From the leaves to their callers. */
  invert: boolean;
}

export const PLAIN: Recipe = { only: [], without: [], hide: [], package: '', fold: [], recursion: false, invert: false };

/** The graph is shown as it came. */
export const isPlain = (recipe: Recipe): boolean => !recipe.invert && keepsFrames(recipe);

/** Nothing is left out and no frame changes its place among its callers. */
export const keepsFrames = ({ only, without, hide, package: one, fold, recursion }: Recipe): boolean => only.length + without.length + hide.length + fold.length === 0 && one === '' && !recursion;

/** A recipe for the names of one graph: a flag a name. */
export interface Plan {
  /** Each is met by a frame of every stack that counts. */
  only: Uint8Array[];
  without: Uint8Array;
  hidden: Uint8Array;
  /** The preset that a name is folded with, 0 for none. */
  group: Uint8Array;
  recursion: boolean;
  /** Which texts cannot be read, and why. */
  errors: string[];
}

/** The most texts that stacks have to match: those after it are not looked at. */
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
