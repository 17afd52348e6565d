// Chooses the folder with the source code of a profile. The browser reads the files and sends them nowhere.

import { Show } from 'solid-js';
import { formatWhole } from '../lib/format.ts';
import { closeFolder, folder, takeFolder } from '../models/source.ts';
import { Icon } from './Icon.tsx';

export function SourceBar() {
  let input!: HTMLInputElement;
  return (
    <div class="source-bar">
      <input
        ref={(made) => {
          input = made;
          made.webkitdirectory = true;
        }}
        type="file"
        hidden
        id="source-input"
        onChange={(event) => {
          takeFolder([...(event.currentTarget.files ?? [])]);
          // Without the reset, choosing the same folder again would send no event.
          event.currentTarget.value = '';
        }}
      />
      <Show when={folder()} fallback={<span class="muted">To see the text of the lines, choose the folder with the source code. This browser reads it and sends it nowhere.</span>}>
        {(found) => <span class="facts"><span>source folder <b>{found().name}</b></span><span><b>{formatWhole(found().count)}</b> {found().count === 1 ? 'file' : 'files'}</span></span>}
      </Show>
      <button type="button" class="button" onClick={() => input.click()}><Icon name="file" />{folder() ? 'Choose another folder' : 'Choose a folder'}</button>
      <Show when={folder()}><button type="button" class="button plain" onClick={closeFolder}>Close</button></Show>
    </div>
  );
}
