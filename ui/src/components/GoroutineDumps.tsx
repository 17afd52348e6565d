// The targets of a scrape component that can send a full goroutine dump, each with a button that downloads it.

import { createMemo, createSignal, For, Show } from 'solid-js';
import { saveFile } from '../lib/pprof.ts';
import { goroutineDump } from '../models/pipeline.ts';
import { dumpName, dumpTargets, type Detail, type DumpTarget } from '../pipeline/model.ts';
import { Icon } from './Icon.tsx';

/** Number of targets that are shown at first. A click adds four times as many. */
const ROWS = 20;

export function GoroutineDumps(props: { detail: Detail }) {
  const [shown, setShown] = createSignal(ROWS);
  const [busy, setBusy] = createSignal('');
  const [failure, setFailure] = createSignal('');
  // Polls bring equal targets; the buttons then stay the same elements and keep the focus.
  const targets = createMemo(() => dumpTargets(props.detail.debugInfo), [], { equals: (a, b) => JSON.stringify(a) === JSON.stringify(b) });
  const download = async ({ url }: DumpTarget): Promise<void> => {
    setBusy(url);
    setFailure('');
    try {
      saveFile(await goroutineDump(props.detail.id, url), dumpName(url, new Date()));
    } catch (error) {
      setFailure(`No goroutine dump: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      setBusy('');
    }
  };
  return (
    <Show when={targets().length > 0}>
      <h3>Goroutines</h3>
      <ul class="links dumps" aria-label="Targets with goroutine dumps">
        <For each={targets().slice(0, shown())}>
          {(target) => (
            <li>
              <span class="name" title={target.url}>{target.name}</span>
              <button
                type="button"
                class="button"
                disabled={busy() !== ''}
                aria-label={`Goroutine dump of ${target.name}`}
                title="Download the stacks of all goroutines. The target stops its goroutines while it writes them."
                onClick={() => void download(target)}
              ><Icon name="download" />{busy() === target.url ? 'Loading ...' : 'Goroutine dump'}</button>
            </li>
          )}
        </For>
      </ul>
      <Show when={failure() !== ''}><p class="dump-failure" role="alert">{failure()}</p></Show>
      <Show when={targets().length > shown()}>
        <button type="button" class="button plain" onClick={() => setShown((count) => count * 5)}>Show more of {targets().length} targets</button>
      </Show>
    </Show>
  );
}
