// A row of radio buttons. Tab stops at the row once, and arrow keys choose a button.

import { For } from 'solid-js';

export interface Radio<T> {
  value: T;
  /** Name for screen readers, also the tooltip. */
  label: string;
  text: string;
  /** Key that chooses the value. */
  hint?: string;
}

export function Radios<T>(props: { label: string; choices: readonly Radio<T>[]; value: T; onChoose: (value: T) => void }) {
  let group!: HTMLDivElement;
  const keys = (event: KeyboardEvent): void => {
    const at = props.choices.findIndex(({ value }) => value === props.value);
    const last = props.choices.length - 1;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    const choice = to === undefined ? undefined : props.choices[(to + last + 1) % (last + 1)];
    if (!choice) return;
    event.preventDefault();
    event.stopPropagation();
    props.onChoose(choice.value);
    queueMicrotask(() => group.querySelector<HTMLElement>('[aria-checked="true"]')?.focus());
  };
  return (
    <div class="segments grow" role="radiogroup" aria-label={props.label} ref={group} onKeyDown={keys}>
      <For each={props.choices}>
        {(choice) => (
          <button type="button" role="radio" aria-checked={props.value === choice.value} aria-label={choice.label} title={choice.hint ? `${choice.label}  ${choice.hint}` : choice.label} tabindex={props.value === choice.value ? 0 : -1} onClick={() => props.onChoose(choice.value)}>
            {choice.text}
          </button>
        )}
      </For>
    </div>
  );
}
