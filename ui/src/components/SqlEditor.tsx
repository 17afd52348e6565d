// The editor of the SQL statement. CodeMirror is loaded separately: until it is loaded, and if it cannot be loaded, a plain text area
// replaces it.

import { createEffect, onCleanup, onMount, Show } from 'solid-js';
import { createLoader } from '../lib/loader.ts';
import type { Complete } from '../models/completion.ts';
import type { createCode } from './sql-code.ts';

export interface SqlEditorProps {
  text: string;
  complete: Complete;
  onText: (text: string) => void;
  onRun: () => void;
  onCancel: () => void;
}

const LABEL = 'SQL statement';
const HINT = 'SELECT … — Ctrl Enter to run, Ctrl Space to complete';
/** Least and largest number of visible lines of the text area, the same as in CodeMirror. */
const [LEAST_LINES, MOST_LINES] = [5, 16];

export function SqlEditor(props: SqlEditorProps) {
  let area!: HTMLTextAreaElement;
  const code = createLoader(() => true as const, async () => (await import('./sql-code.ts')).createCode);
  const keys = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) props.onRun();
    else if (event.key === 'Escape') props.onCancel();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="sql-editor">
      <Show
        when={code.data()}
        fallback={
          <textarea
            ref={area}
            class="field"
            aria-label={LABEL}
            spellcheck={false}
            autocomplete="off"
            autocapitalize="off"
            placeholder={HINT}
            rows={Math.min(MOST_LINES, Math.max(LEAST_LINES, props.text.split('\n').length))}
            value={props.text}
            onInput={(event) => props.onText(event.currentTarget.value)}
            onKeyDown={keys}
          />
        }
      >
        {(make) => <Editor {...props} make={make()} typing={document.activeElement === area ? area : null} />}
      </Show>
    </div>
  );
}

/** The CodeMirror editor. `typing` is the plain text area if it has the focus, so that the cursor keeps its place. */
function Editor(props: SqlEditorProps & { make: typeof createCode; typing: HTMLTextAreaElement | null }) {
  let host!: HTMLDivElement;
  const place = props.typing && ([props.typing.selectionStart, props.typing.selectionEnd] as const);
  onMount(() => {
    const code = props.make(host, {
      label: LABEL,
      hint: HINT,
      text: props.text,
      complete: (text, cursor) => props.complete(text, cursor),
      onText: (text) => props.onText(text),
      onRun: () => props.onRun(),
      onCancel: () => props.onCancel(),
    });
    createEffect(() => code.setText(props.text));
    if (place) code.focus(...place);
    onCleanup(code.destroy);
  });
  return <div ref={host} />;
}
