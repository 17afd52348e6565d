// The search of a flame graph: the text, the share of the total that matches, and the buttons that step through the matches.

import { createEffect, createSignal, on, onCleanup, Show } from 'solid-js';
import type { Found } from '../flame/search.ts';
import { formatWhole } from '../lib/format.ts';
import { Icon } from './Icon.tsx';

export interface FlameSearchProps {
  ref: (input: HTMLInputElement) => void;
  text: string;
  found: { result: Found | null; error: string };
  /** Share and value of all matching frames. */
  matching: { share: string; value: string };
  /** Index of the current match, -1 for none. */
  place: number;
  onText: (text: string) => void;
  onStep: (by: 1 | -1) => void;
  /** Clears the search and the selection. */
  onClear: () => void;
}

const TYPING_MS = 120;

export function FlameSearch(props: FlameSearchProps) {
  let input!: HTMLInputElement;
  const [typed, setTyped] = createSignal(props.text);
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(on(() => props.text, (text) => {
    clearTimeout(timer);
    if (text !== typed()) setTyped(text);
  }, { defer: true }));
  const type = (text: string): void => {
    setTyped(text);
    clearTimeout(timer);
    timer = setTimeout(() => props.onText(text), TYPING_MS);
  };
  onCleanup(() => clearTimeout(timer));
  return (
    <>
      <span class="with-icon search">
        <Icon name="search" />
        <input
          ref={(element) => {
            input = element;
            props.ref(element);
          }}
          id="search"
          class="field"
          type="search"
          aria-label="Search frames"
          placeholder="Search: text or /regex/"
          spellcheck={false}
          autocomplete="off"
          aria-invalid={props.found.error !== ''}
          value={typed()}
          onInput={(event) => type(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') {
              event.preventDefault();
              props.onStep(event.shiftKey ? -1 : 1);
            } else if (event.key === 'Escape') {
              event.preventDefault();
              event.stopPropagation();
              if (typed() === '') input.blur();
              else type('');
            }
          }}
        />
      </span>
      <Show when={props.found.error}><span class="match bad" role="alert">{props.found.error}</span></Show>
      <Show when={props.found.result}>
        {(result) => (
          <span class="match" role="status">
            <Show when={result().nodes.length > 0} fallback={props.text ? 'No matches' : ''}>
              <b>{props.matching.share}</b> · {props.matching.value} · {props.place >= 0 ? `${formatWhole(props.place + 1)} of ` : ''}{formatWhole(result().nodes.length)} {result().nodes.length === 1 ? 'match' : 'matches'}
            </Show>
          </span>
        )}
      </Show>
      <Show when={(props.found.result?.nodes.length ?? 0) > 0}>
        <div class="group" role="group" aria-label="Matches">
          <button type="button" class="button square" aria-label="Previous match" title="Previous match  N" onClick={() => props.onStep(-1)}><Icon name="up" /></button>
          <button type="button" class="button square" aria-label="Next match" title="Next match  n" onClick={() => props.onStep(1)}><Icon name="down" /></button>
          <button type="button" class="button square" aria-label="Clear search and selection" title="Clear" onClick={() => {
            clearTimeout(timer);
            setTyped('');
            props.onClear();
          }}><Icon name="close" /></button>
        </div>
      </Show>
    </>
  );
}
