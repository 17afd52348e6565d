// All keys, on `?`.

import { For, onMount } from 'solid-js';
import type { Route } from '../lib/base.ts';
import { Icon } from './Icon.tsx';

/** What, by which keys, and in which views when not in all. */
type Key = readonly [string, readonly string[], (readonly Route[])?];
const PROFILE: readonly Route[] = ['profile'];
const STORE: readonly Route[] = ['services', 'profile'];
const PIPELINE: readonly Route[] = ['pipeline'];

const KEYS: readonly Key[] = [
  ['Search frames, filter services', ['/'], STORE],
  ['Next, previous match', ['n', 'N'], PROFILE],
  ['Zoom to frame', ['click', 'Enter'], PROFILE],
  ['One frame up; clear', ['Esc'], PROFILE],
  ['Move between frames or rows', ['←', '↑', '↓', '→'], PROFILE],
  ['Zoom to the row of the table', ['z'], PROFILE],
  ['Menu of a frame or row', ['right click', '⇧F10'], PROFILE],
  ['Both, flame graph, table', ['1', '2', '3'], PROFILE],
  ['Root on top or at the bottom', ['f'], PROFILE],
  ['Earlier, later', ['[', ']'], STORE],
  ['Filter components', ['/'], PIPELINE],
  ['Move between components or rows', ['←', '↑', '↓', '→'], PIPELINE],
  ['Open a component; a module', ['Enter', 'double click'], PIPELINE],
  ['Close the panel; leave the module', ['Esc'], PIPELINE],
  ['Graph, table', ['1', '2'], PIPELINE],
  ['Zoom in, out, show all', ['+', '-', '0'], PIPELINE],
  ['Pause the live data', ['p'], PIPELINE],
  ['Refresh', ['r']],
  ['Pick service, profile type', ['s', 'p'], PROFILE],
  ['Light, dark, as the system', ['t']],
  ['This list', ['?']],
];

export function Help(props: { routes: readonly Route[]; onClose: () => void }) {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => props.onClose()} onClick={(event) => event.target === dialog && dialog.close()}>
      <header>
        <h2 id="help-title">Keys</h2>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => dialog.close()}><Icon name="close" /></button>
      </header>
      <dl class="keys">
        <For each={KEYS.filter(([, , views]) => !views || views.some((view) => props.routes.includes(view)))}>
          {([what, keys]) => (
            <div>
              <dt>{what}</dt>
              <dd><For each={keys}>{(key) => <> <kbd>{key}</kbd></>}</For></dd>
            </div>
          )}
        </For>
      </dl>
    </dialog>
  );
}
