// Chooses a file of a profile, and says which files are read.

import { For, onMount } from 'solid-js';
import { Icon } from './Icon.tsx';

const FORMATS: readonly (readonly [name: string, what: string])[] = [
  ['pprof', 'cpu.pprof, heap.pb.gz: go tool pprof, most profilers'],
  ['JFR', 'recording.jfr: Java, async-profiler'],
  ['collapsed stacks', 'main;work 12: a line a stack'],
  ['speedscope', 'a JSON file of speedscope.app'],
  ['perf script', 'perf script > out.txt'],
];

/** `ready` is given a function that opens the browser's dialog. */
export function FileChooser(props: { onFile: (file: File) => void; ready: (open: () => void) => void }) {
  let input!: HTMLInputElement;
  onMount(() => props.ready(() => input.click()));
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        id="file-input"
        onChange={(event) => {
          const chosen = event.currentTarget.files?.[0];
          // The same file may be chosen once more.
          if (chosen) props.onFile(chosen);
          event.currentTarget.value = '';
        }}
      />
      <button type="button" class="button primary" title="Open a file  o" onClick={() => input.click()}><Icon name="file" />Open a file</button>
    </>
  );
}

export function FileFormats() {
  return (
    <dl class="formats" aria-label="Files that are read">
      <For each={FORMATS}>{([name, what]) => <div><dt>{name}</dt><dd>{what}</dd></div>}</For>
    </dl>
  );
}
