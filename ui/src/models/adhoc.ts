// The model of the File view: the profile types of a file, and the flame graph of one of these types, alone or as a difference from stored
// profiles.

import { createMemo, type Accessor } from 'solid-js';
import { byShare, layoutDiff, type Measure, type Sides } from '../flame/diff.ts';
import { layout, type Flame } from '../flame/layout.ts';
import { keptFiles, lookAt, type FileQuestion, type KeptFile } from '../lib/adhoc.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import { profileType, type ProfileType } from '../lib/profile-types.ts';
import { createFlame, type FlameAnswer, type FlameSource } from './flame.ts';

export interface Look {
  /** The file, or the id of a file that the server keeps. */
  source: File | string;
  /** Profile types of the file. */
  types: readonly ProfileType[];
  type: ProfileType;
  flame: Flame;
  /** The values of the stored profiles and of the file, if both are compared. */
  sides?: Sides;
}

export interface AdhocText {
  /** Id of a file that the server keeps. */
  id: Accessor<string>;
  /** Id of the selected profile type of the file. */
  of: Accessor<string>;
  /** Path of the zoomed frame. */
  focus: Accessor<string>;
}

export interface AdhocModel {
  look: Loader<Look>;
  /** The flame graph of the file alone. */
  flame: Loader<FlameAnswer>;
  share: Accessor<Measure>;
}

const NOTHING = { total: new Float64Array(), self: new Float64Array(), sum: 0 };

/** Creates the model. `baseline` selects the stored profiles to compare the file with, null for no comparison. */
export function createAdhoc(text: AdhocText, file: Accessor<File | null>, baseline: Accessor<FileQuestion['baseline']>): AdhocModel {
  const question = createMemo<FileQuestion | null>(() => {
    const dropped = text.id() === '' ? file() : null;
    return dropped === null && text.id() === '' ? null : { file: dropped, id: text.id(), type: text.of(), baseline: baseline() };
  });
  /** The selected file, or its id. Data that was loaded for a different file is not shown. */
  const current = (): File | string => text.id() || (file() ?? '');
  const loaded = createLoader(question, async (asked, signal): Promise<Look> => {
    const { profileTypes, profileType: shown, flamegraph, difference } = await lookAt(asked, signal);
    const known = { source: asked.id || (asked.file as File), types: profileTypes.map(profileType), type: profileType(shown) };
    return difference ? { ...known, ...layoutDiff(difference) } : { ...known, flame: layout(flamegraph ?? { names: [], levels: [] }) };
  });
  const data = createMemo(() => (loaded.data()?.source === current() ? loaded.data() : undefined));
  const error = (): Error | undefined => (loaded.pending() && data() === undefined ? undefined : loaded.error());
  const look: Loader<Look> = { ...loaded, data, error };
  const source = createMemo<FlameSource | null>(() => {
    const found = look.data();
    return found && !found.sides ? { kind: 'file', name: file()?.name ?? text.id(), flame: found.flame } : null;
  });
  const flame = createFlame(source, text.focus);
  return { look, flame, share: createMemo(() => byShare(look.data()?.sides ?? { left: NOTHING, right: NOTHING })) };
}

/** Loads the list of kept files while `wanted` is not null. */
export const createKept = (wanted: Accessor<number | null>): Loader<KeptFile[]> => createLoader(wanted, (_, signal) => keptFiles(signal));

/** Returns the file name at the end of an id. */
export const nameOfId = (id: string): string => id.replace(/^[0-9A-Z]{26}-/, '');
