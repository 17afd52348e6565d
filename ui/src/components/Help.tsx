// The list of keys, opened with `?`, with the switch for single-letter keys and a button for the tour.

import { For, onMount, Show } from 'solid-js';
import { setSingleKeys, singleKeys } from '../lib/preferences.ts';
import { Icon } from './Icon.tsx';

/** An action and its keys. */
export type KeyHelp = readonly [what: string, keys: readonly string[]];

export interface HelpProps {
  keys: readonly KeyHelp[];
  /** Starts the tour; absent if the page has none. */
  onTour?: (() => void) | undefined;
  onClose: () => void;
}

export function Help(props: HelpProps) {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => props.onClose()} onClick={(event) => event.target === dialog && dialog.close()}>
      <header>
        <h2 id="help-title">Keyboard shortcuts</h2>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => dialog.close()}><Icon name="close" /></button>
      </header>
      <Show when={props.onTour}>
        {(onTour) => (
          <div class="keys-switch">
            <button type="button" class="button" onClick={() => {
              dialog.close();
              onTour()();
            }}><Icon name="compass" />Take a tour in five steps</button>
          </div>
        )}
      </Show>
      <label class="checkbox keys-switch">
        <input type="checkbox" checked={singleKeys()} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
        Enable single-key shortcuts
      </label>
      <dl class="keys">
        <For each={props.keys}>
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
