// All keys, on `?`, and the switch for those that are single letters.

import { For, onMount } from 'solid-js';
import { setSingleKeys, singleKeys } from '../lib/preferences.ts';
import { Icon } from './Icon.tsx';

/** What is done, and by which keys. */
export type KeyHelp = readonly [what: string, keys: readonly string[]];

export function Help(props: { keys: readonly KeyHelp[]; onClose: () => void }) {
  let dialog!: HTMLDialogElement;
  onMount(() => dialog.showModal());
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={() => props.onClose()} onClick={(event) => event.target === dialog && dialog.close()}>
      <header>
        <h2 id="help-title">Keys</h2>
        <button type="button" class="button plain square" aria-label="Close" onClick={() => dialog.close()}><Icon name="close" /></button>
      </header>
      <label class="checkbox keys-switch">
        <input type="checkbox" checked={singleKeys()} onChange={(event) => setSingleKeys(event.currentTarget.checked)} />
        Single letters and signs are keys
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
