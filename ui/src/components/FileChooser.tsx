// The button that opens a profile from a file, and the list of supported formats.

import { For, onMount } from 'solid-js';
import { Icon } from './Icon.tsx';

const FORMATS: readonly (readonly [name: string, what: string])[] = [
  ['pprof', 'cpu.pprof, heap.pb.gz: go tool pprof, most profilers'],
  ['JFR', 'recording.jfr: Java, async-profiler'],
  ['collapsed stacks', 'main;work 12: one stack per line'],
  ['speedscope', 'a JSON file from speedscope.app'],
  ['perf script', 'perf script > out.txt'],
];

/** Passes to `ready` a function that opens the browser's file dialog. */
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
          // Without the reset, choosing the same file again would send no event.
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
    <dl class="formats" aria-label="Supported file formats">
      <For each={FORMATS}>{([name, what]) => <div><dt>{name}</dt><dd>{what}</dd></div>}</For>
    </dl>
  );
}
