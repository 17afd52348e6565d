// All keys, on `?`.

import { For, onMount } from 'solid-js';
import { Icon } from './Icon.tsx';

const KEYS: readonly (readonly [string, readonly string[]])[] = [
  ['Search frames, filter services', ['/']],
  ['Next, previous match', ['n', 'N']],
  ['Zoom to frame', ['click', 'Enter']],
  ['One frame up; clear', ['Esc']],
  ['Move between frames or rows', ['←', '↑', '↓', '→']],
  ['Zoom to the row of the table', ['z']],
  ['Menu of a frame or row', ['right click', '⇧F10']],
  ['Both, flame graph, table', ['1', '2', '3']],
  ['Root on top or at the bottom', ['f']],
  ['Earlier, later', ['[', ']']],
  ['Refresh', ['r']],
  ['Pick service, profile type', ['s', 'p']],
  ['Light, dark, as the system', ['t']],
  ['This list', ['?']],
];

export function Help(props: { onClose: () => void }) {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => props.onClose()} onClick={(event) => event.target === dialog && dialog.close()}>
      <header>
        <h2 id="help-title">Keys</h2>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => dialog.close()}><Icon name="close" /></button>
      </header>
      <dl class="keys">
        <For each={KEYS}>
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
