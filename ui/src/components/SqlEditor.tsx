// Where a statement is written: completes tables, columns, functions and labels.

import { createEffect, createMemo, createSignal, createUniqueId, For, on, Show } from 'solid-js';
import { completions, wordBefore, type Word } from '../lib/sql-words.ts';

export interface SqlEditorProps {
  text: string;
  labels: readonly string[];
  onText: (text: string) => void;
  onRun: () => void;
  onCancel: () => void;
}

export function SqlEditor(props: SqlEditorProps) {
  const id = createUniqueId();
  let area!: HTMLTextAreaElement;
  const [cursor, setCursor] = createSignal(0);
  /** Someone types, and has not put the list away. */
  const [open, setOpen] = createSignal(false);
  const [active, setActive] = createSignal(0);
  const words = createMemo(() => (open() ? completions(props.text, cursor(), props.labels) : []));
  createEffect(on(words, () => setActive(0)));

  const take = (word: Word): void => {
    const { from } = wordBefore(props.text, cursor());
    const text = props.text.slice(0, from) + word.text + props.text.slice(cursor());
    props.onText(text);
    area.value = text;
    area.setSelectionRange(from + word.text.length, from + word.text.length);
    setCursor(from + word.text.length);
    setOpen(false);
    area.focus();
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const word = words()[active()];
    const count = words().length;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      setOpen(false);
      props.onRun();
    } else if (event.key === ' ' && event.ctrlKey) setOpen(true);
    else if (event.key === 'Escape' && open() && count > 0) setOpen(false);
    else if (event.key === 'Escape') props.onCancel();
    else if (word && (event.key === 'Tab' || event.key === 'Enter') && !event.shiftKey) take(word);
    else if (word && event.key === 'ArrowDown') setActive((at) => (at + 1) % count);
    else if (word && event.key === 'ArrowUp') setActive((at) => (at + count - 1) % count);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="sql-editor">
      <textarea
        ref={area}
        class="field"
        aria-label="SQL statement"
        aria-autocomplete="list"
        aria-controls={`${id}-words`}
        aria-activedescendant={words().length > 0 ? `${id}-${active()}` : undefined}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder="SELECT … — Ctrl Enter runs it, Ctrl Space completes"
        rows={Math.min(16, Math.max(5, props.text.split('\n').length + 1))}
        value={props.text}
        onInput={(event) => {
          props.onText(event.currentTarget.value);
          setCursor(event.currentTarget.selectionStart);
          setOpen(true);
        }}
        onClick={() => setOpen(false)}
        onBlur={() => setOpen(false)}
        onKeyUp={(event) => setCursor(event.currentTarget.selectionStart)}
        onKeyDown={keys}
      />
      <div class="sql-words" role="listbox" id={`${id}-words`} aria-label="Completions" hidden={words().length === 0}>
        <For each={words()}>
          {(word, index) => (
            <div class="option" role="option" id={`${id}-${index()}`} aria-selected={active() === index()} data-active={active() === index()} onPointerDown={(event) => {
              event.preventDefault();
              take(word);
            }}>
              <span class="text">{word.text}</span><Show when={word.kind}><span class="hint">{word.kind}</span></Show>
            </div>
          )}
        </For>
      </div>
    </div>
  );
}
