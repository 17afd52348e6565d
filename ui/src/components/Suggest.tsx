// An input with a list below it: type to filter, arrow keys to move, Enter to choose. The list is always visible; the popover
// around it opens and closes. Optionally the user can choose the typed text itself.

import { createEffect, createMemo, createSignal, createUniqueId, For, on, onMount, Show } from 'solid-js';
import { filterItems } from '../lib/suggest.ts';
import { Icon } from './Icon.tsx';

export interface Choice {
  value: string;
  label: string;
  group?: string;
  hint?: string;
}

export interface SuggestProps {
  label: string;
  placeholder: string;
  choices: readonly Choice[];
  selected?: string;
  /** Initial text. */
  initial?: string;
  /** True if the user can choose a typed text that is not in the list. */
  free?: boolean;
  loading?: boolean;
  /** Set if the choices could not be loaded. */
  error?: Error | undefined;
  onChoose: (value: string) => void;
}

const SHOWN = 200;

export function Suggest(props: SuggestProps) {
  const id = createUniqueId();
  const [typed, setTyped] = createSignal(props.initial ?? '');
  const [active, setActive] = createSignal(0);
  let list!: HTMLDivElement;
  let input!: HTMLInputElement;
  onMount(() => input.focus());
  const hits = createMemo<Choice[]>(() => {
    // The initial text is an earlier choice, not a filter.
    const filter = typed() === (props.initial ?? '') ? '' : typed();
    const found = filterItems(props.choices, filter, ({ label, value, group }) => `${label} ${value} ${group ?? ''}`);
    const exact = props.choices.some(({ value }) => value === typed());
    if (props.free && typed() !== '' && !exact) found.unshift({ value: typed(), label: typed(), hint: 'as typed' });
    return found;
  });
  const shown = createMemo(() => hits().slice(0, SHOWN));
  createEffect(on([shown], () => {
    const chosen = shown().findIndex(({ value }) => value === (props.free ? typed() : props.selected));
    setActive(typed() === (props.initial ?? '') && chosen > 0 ? chosen : 0);
    queueMicrotask(reveal);
  }));
  const reveal = (): void => list.querySelector('[data-active=true]')?.scrollIntoView({ block: 'nearest' });
  const move = (by: number): void => {
    const last = shown().length - 1;
    setActive((at) => Math.max(0, Math.min(last, at + by)));
    reveal();
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'PageDown') move(10);
    else if (event.key === 'PageUp') move(-10);
    else if (event.key === 'Enter') {
      const choice = shown()[active()];
      if (choice) props.onChoose(choice.value);
    } else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="head">
        <input
          class="field"
          type="text"
          ref={input}
          role="combobox"
          aria-label={props.label}
          aria-expanded="true"
          aria-autocomplete="list"
          aria-controls={`${id}-list`}
          aria-activedescendant={shown().length > 0 ? `${id}-${active()}` : undefined}
          autocomplete="off"
          spellcheck={false}
          placeholder={props.placeholder}
          value={typed()}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={keys}
        />
      </div>
      <div class="options" role="listbox" id={`${id}-list`} aria-label={props.label} ref={list} tabindex="-1">
        <For each={shown()}>
          {(choice, index) => (
            <>
              <Show when={choice.group && choice.group !== shown()[index() - 1]?.group}>
                <div class="group-name" role="presentation">{choice.group}</div>
              </Show>
              <div
                class="option"
                role="option"
                id={`${id}-${index()}`}
                data-active={active() === index()}
                aria-selected={choice.value === props.selected}
                title={choice.value}
                onPointerMove={() => setActive(index())}
                onClick={() => props.onChoose(choice.value)}
              >
                <span class="text">{choice.label}</span>
                <Show when={choice.hint}><span class="hint">{choice.hint}</span></Show>
                <Icon name="check" class="check" />
              </div>
            </>
          )}
        </For>
        <Show when={shown().length === 0}>
          <div class="none" role="option" aria-selected="false" aria-disabled="true">{props.loading ? 'Loading' : props.error ? `Cannot load the choices: ${props.error.message}` : 'No matches'}</div>
        </Show>
        <Show when={hits().length > SHOWN}>
          <div class="none" role="presentation">{hits().length - SHOWN} more; type to filter</div>
        </Show>
      </div>
    </>
  );
}
