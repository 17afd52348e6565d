// The SQL editor: CodeMirror in a shadow tree. In a shadow tree, CodeMirror adopts a style sheet that a script creates, which a strict
// Content-Security-Policy allows. In the document, it would add a style element, which the policy forbids.

import { acceptCompletion, autocompletion, closeCompletion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { sql, StandardSQL } from '@codemirror/lang-sql';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState, Prec } from '@codemirror/state';
import { EditorView, keymap, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { Complete } from '../models/completion.ts';

export interface CodeOptions {
  label: string;
  hint: string;
  text: string;
  complete: Complete;
  onText: (text: string) => void;
  onRun: () => void;
  onCancel: () => void;
}

export interface Code {
  setText: (text: string) => void;
  focus: (from: number, to: number) => void;
  destroy: () => void;
}

const LOOK = EditorView.theme({
  '&': { border: '1px solid var(--line-strong)', borderRadius: '6px', background: 'var(--field)', color: 'var(--text)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': { minHeight: '106px', maxHeight: '304px', overflow: 'auto', font: '12px/18px var(--mono)' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--text)', tabSize: '2' },
  '.cm-line': { padding: '0 8px' },
  '.cm-placeholder': { color: 'var(--muted)' },
  '.cm-tooltip': { border: '1px solid var(--line-strong)', borderRadius: '6px', background: 'var(--raised)', color: 'var(--text)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { minWidth: '260px', maxHeight: '220px', padding: '4px', font: '12px/18px var(--mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { display: 'flex', gap: '12px', padding: '3px 8px', borderRadius: '5px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { background: 'var(--accent-soft)', color: 'var(--text)' },
  '.cm-completionLabel': { flex: '1', overflow: 'hidden', textOverflow: 'ellipsis' },
  '.cm-completionDetail': { marginLeft: '0', fontStyle: 'normal', color: 'var(--muted)' },
});

const WORDS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.typeName], color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--text-literal)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--number-literal)' },
  { tag: tags.comment, color: 'var(--muted)' },
]);

export function createCode(host: HTMLElement, options: CodeOptions): Code {
  const root = host.attachShadow({ mode: 'open' });
  const complete = async ({ state, pos }: CompletionContext): Promise<CompletionResult | null> => {
    const { from, words } = await options.complete(state.doc.toString(), pos);
    // The completions are already filtered and sorted, and are computed again for every letter.
    return words.length === 0 ? null : { from, filter: false, options: words.map(({ text, kind }) => ({ label: text, detail: kind })) };
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        Prec.highest(keymap.of([
          { key: 'Mod-Enter', run: (editor) => {
            closeCompletion(editor);
            options.onRun();
            return true;
          } },
          { key: 'Tab', run: acceptCompletion },
        ])),
        autocompletion({ override: [complete], icons: false, interactionDelay: 0 }),
        keymap.of([{ key: 'Escape', run: () => {
          options.onCancel();
          return true;
        } }, ...historyKeymap, ...defaultKeymap]),
        history(),
        sql({ dialect: StandardSQL }),
        syntaxHighlighting(WORDS),
        LOOK,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': options.label, spellcheck: 'false', autocapitalize: 'off' }),
        placeholder(options.hint),
        EditorView.updateListener.of((update) => update.docChanged && options.onText(update.state.doc.toString())),
      ],
    }),
  });
  return {
    setText: (text) => {
      if (text === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
    },
    focus: (from, to) => {
      view.focus();
      view.dispatch({ selection: { anchor: from, head: to } });
    },
    destroy: () => view.destroy(),
  };
}
