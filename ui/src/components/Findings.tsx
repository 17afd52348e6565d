// The functions whose share rose by more than noise, the largest rise first; or the reason why the changes are not known.

import { For, Match, Switch } from 'solid-js';
import { nameText } from '../flame/names.ts';
import { shortName } from '../flame/packages.ts';
import { formatShare, formatSigned } from '../lib/format.ts';
import type { Loader } from '../lib/loader.ts';
import type { Changes, Rise } from '../models/changes.ts';

export function Findings(props: { changes: Loader<Changes>; /** The selected function, as in the URL. */ selected: string; onPick: (name: string) => void }) {
  const rises = (): readonly Rise[] => {
    const found = props.changes.data();
    return found?.kind === 'tested' ? found.rises : [];
  };
  return (
    <div class="findings" role="status" aria-busy={props.changes.pending()}>
      <Switch fallback={<span class="muted">Looking for changes that noise does not explain …</span>}>
        <Match when={props.changes.error()}>
          {(error) => <><span class="bad">Cannot tell changes from noise: {error().message}</span> <button type="button" class="button" onClick={props.changes.retry}>Try again</button></>}
        </Match>
        <Match when={props.changes.data()?.kind === 'too few'}><span class="muted">There are too few profiles to tell changes from noise. Choose longer ranges.</span></Match>
        <Match when={props.changes.data() && rises().length === 0}><span class="muted">No function's own share rose by more than its normal variation.</span></Match>
        <Match when={rises().length > 0}>
          <span>Increases beyond noise:</span>
          <ul>
            <For each={rises()}>
              {(rise) => (
                <li>
                  <button type="button" class="button" aria-pressed={props.selected === nameText(rise.name)} title={`${rise.name}: ${formatShare(rise.left)} before, ${formatShare(rise.right)} after`} onClick={() => props.onPick(nameText(rise.name))}>
                    <span class="value">{shortName(rise.name)}</span><span class="number">{formatSigned((rise.right - rise.left) * 100, (points) => points.toFixed(1))} points</span>
                  </button>
                </li>
              )}
            </For>
          </ul>
        </Match>
      </Switch>
    </div>
  );
}
