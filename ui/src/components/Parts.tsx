// The views that replace the flame graph: callers and callees, peek, call graph, lines. Each view is loaded when it is opened.

import { Match, Switch, type Component } from 'solid-js';
import { Dynamic } from 'solid-js/web';
import { createLoader } from '../lib/loader.ts';
import type { Values } from '../lib/schema.ts';
import type { FLAME } from '../urls.ts';
import { Failure } from './Notice.tsx';
import type { PartProps } from './PartProps.ts';
import type { Radio } from './Radios.tsx';

export type Pane = Values<typeof FLAME>['pane'];

export const PANES: readonly Radio<Pane>[] = [
  { value: 'flame', label: 'Flame graph', text: 'Flame', hint: '4' },
  { value: 'callers', label: 'Callers and callees of a function as flame graphs', text: 'Callers', hint: '5' },
  { value: 'peek', label: 'Peek: callers and callees of a function as tables', text: 'Peek', hint: '6' },
  { value: 'graph', label: 'Call graph', text: 'Graph', hint: '7' },
  { value: 'list', label: 'List: values of a function by line', text: 'List', hint: '8' },
];

const PARTS: Record<Exclude<Pane, 'flame'>, () => Promise<Component<PartProps>>> = {
  callers: async () => (await import('./Sandwich.tsx')).Sandwich,
  peek: async () => (await import('./PeekTables.tsx')).PeekTables,
  graph: async () => (await import('./CallGraph.tsx')).CallGraph,
  list: async () => (await import('./LineList.tsx')).LineList,
};

export function Part(props: PartProps & { pane: Exclude<Pane, 'flame'> }) {
  const part = createLoader(() => props.pane, async (pane) => ({ component: await PARTS[pane]() }));
  return (
    <Switch fallback={<div class="fill" aria-busy="true" />}>
      <Match when={part.error()}>{(error) => <div class="fill"><Failure what="Cannot load this part of the page" error={error()} retry={part.retry} /></div>}</Match>
      <Match when={part.data()}>{(found) => <Dynamic component={found().component} {...props} />}</Match>
    </Switch>
  );
}
