// A function in the middle of all its calls: its callers above, its callees below. A click on a frame switches to that
// function.

import { Show } from 'solid-js';
import { ROW } from '../flame/draw.ts';
import type { Tree } from '../flame/tree.ts';
import { createSandwich } from '../models/recipe.ts';
import { FlameGraph } from './FlameGraph.tsx';
import type { PartProps } from './PartProps.ts';

export function Sandwich(props: PartProps) {
  const both = createSandwich(() => props.tree, () => props.name);
  const name = (): string => props.tree.flame.names[props.name] ?? '';
  const sum = () => props.look.sum(both().callees, [0]);
  const half = (id: string, label: string, tree: () => Tree, flip: boolean) => (
    <FlameGraph
      id={id}
      label={label}
      tree={tree()}
      of={`${props.of}\n${name()}`}
      look={props.look}
      flip={flip}
      focus={0}
      matched={null}
      current={-1}
      selected={props.name}
      hovered={props.hovered}
      onFocus={(node) => walk(tree(), node)}
      onHover={props.onHover}
      onMenu={(node, x, y) => props.onMenu(tree().flame.name[node] ?? 0, x, y)}
    />
  );
  const walk = ({ flame }: Tree, node: number): void => {
    if (node > 0 && !flame.folded[node]) props.onWalk(flame.names[flame.name[node]!] ?? '');
  };
  /** Height in pixels that the callers or the callees need. If the view is too low for both, each receives a part of the height. */
  const needed = ({ flame }: Tree): number => flame.depth * ROW;
  return (
    <div class="sandwich">
      <div class="part-head">
        <h2 title={name()}>{name()}</h2>
        <span class="facts"><span>total <b>{sum().value}</b></span><span><b>{sum().share}</b> of total</span></span>
      </div>
      <div class="half callers" style={{ flex: `0 1 ${needed(both().callers)}px` }}>
        {half('flame-callers', `Callers of ${name()}, each above the function that it calls`, () => both().callers, true)}
      </div>
      <Show when={both().callers.flame.count === 1}><p class="muted half-note">No callers: stacks begin with this function.</p></Show>
      <div class="half callees" style={{ 'min-height': `min(50%, ${needed(both().callees)}px)` }}>
        {half('flame-callees', `Callees of ${name()}, each below its caller`, () => both().callees, false)}
      </div>
      <Show when={both().callees.flame.count === 1}><p class="muted half-note">No callees in this profile.</p></Show>
    </div>
  );
}
