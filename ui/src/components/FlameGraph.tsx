// The flame graph on a canvas: zoom on click, tooltip on hover, keyboard cursor. The canvas is redrawn only when something changes, and
// only its visible part. The owner of this component holds the zoomed frame, the search and the selection.

import { createEffect, createMemo, createSignal, on, onCleanup, Show } from 'solid-js';
import { INK } from '../flame/colours.ts';
import { draw, FONT_SIZE, levelAt, ROW, rowTop, TextMeasure, type Picture } from '../flame/draw.ts';
import { children, findPath, nodeAt, pathText, type Flame } from '../flame/layout.ts';
import type { Tree } from '../flame/tree.ts';
import { dark } from '../lib/preferences.ts';
import { createCanvas } from './canvas.ts';
import type { FlameLook } from './FlameLook.ts';
import { FrameTip } from './FrameTip.tsx';

export interface FlameGraphProps {
  tree: Tree;
  /** Id of the element. The label is its name for screen readers. */
  id: string;
  label: string;
  /** Key of the profile. A new key scrolls back to the root. New values under the same key do not scroll. */
  of: string;
  look: FlameLook;
  flip: boolean;
  /** The zoomed node. */
  focus: number;
  matched: Uint8Array | null;
  /** The node that the search has stepped to, -1 for none. */
  current: number;
  /** Indices of the selected name and of the name that is hovered in the table; -1 for none. */
  selected: number;
  hovered: number;
  onFocus: (node: number) => void;
  /** Called with the name of a frame when the user double-clicks the frame. */
  onOpen?: (name: string) => void;
  onHover: (name: number) => void;
  onMenu: (node: number, x: number, y: number) => void;
}

const ZOOM_MS = 150;

export function FlameGraph(props: FlameGraphProps) {
  let box!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  let text: TextMeasure | undefined;
  const [scroll, setScroll] = createSignal(0);
  const [hover, setHover] = createSignal<{ node: number; x: number; y: number; keyboard: boolean }>();
  const [view, setView] = createSignal({ from: 0, to: 1 });
  let drawn: Flame | undefined;
  /** Name of the last clicked frame. The first click of a double click zooms, so another frame may be under the pointer at the second click. */
  let pressed = '';
  const flame = (): Flame => props.tree.flame;

  const target = createMemo(() => {
    const from = flame().start[props.focus] ?? 0;
    return { from, to: from + (flame().total[props.focus] ?? flame().sum) };
  });
  const colours = createMemo(() => props.look.paint(props.tree));
  const paint = (context: CanvasRenderingContext2D): void => {
    text ??= new TextMeasure(context, `${FONT_SIZE}px ${getComputedStyle(box).fontFamily}`);
    const begin = performance.now();
    const rectangles = draw(context, { ...picture(), text });
    if (drawn !== flame()) {
      drawn = flame();
      const end = performance.now();
      performance.measure('flame:first-draw', { start: flame().born, end, detail: { nodes: flame().count, rectangles, drawMs: end - begin } });
      canvas.dataset.nodes = String(flame().count);
    } else {
      canvas.dataset.drawMs = (performance.now() - begin).toFixed(2);
    }
  };
  const size = createCanvas({ box: () => box, canvas: () => canvas, paint, watch: () => void picture() });
  const content = (): number => Math.max(size().height, flame().depth * ROW);
  const picture = (): Omit<Picture, 'text'> => ({
    flame: flame(),
    from: view().from,
    to: view().to,
    width: size().width,
    height: size().height,
    scroll: scroll(),
    flip: props.flip,
    focus: props.focus,
    paint: colours(),
    matched: props.matched,
    hoverNode: hover()?.node ?? -1,
    hoverName: hover() ? (flame().name[hover()?.node ?? -1] ?? -1) : props.hovered,
    selectedName: props.selected,
    currentNode: props.current,
    ink: INK[dark() ? 'dark' : 'light'],
  });

  // A zoom is animated, so that the user sees where it goes. A new graph appears at once, but a running animation continues in it.
  let gliding = 0;
  createEffect(on([target, () => flame()], ([goal, flame], before) => {
    const under = gliding !== 0;
    cancelAnimationFrame(gliding);
    gliding = 0;
    const renewed = before?.[1] !== flame;
    if (!renewed) leave();
    if ((renewed && !under) || matchMedia('(prefers-reduced-motion: reduce)').matches) return void setView(goal);
    const begin = view();
    const start = performance.now();
    const step = (now: number): void => {
      const part = Math.min(1, (now - start) / ZOOM_MS);
      const ease = 1 - (1 - part) ** 3;
      setView(part === 1 ? goal : { from: begin.from + (goal.from - begin.from) * ease, to: begin.to + (goal.to - begin.to) * ease });
      gliding = part < 1 ? requestAnimationFrame(step) : 0;
    };
    gliding = requestAnimationFrame(step);
  }));
  onCleanup(() => {
    cancelAnimationFrame(gliding);
    props.onHover(-1);
  });

  // When new values arrive, the frame at the position of the pointer becomes the hovered one, and the keyboard cursor stays on its frame.
  createEffect(on(() => flame(), (flame, before) => {
    const at = hover();
    if (!at || !before) return;
    const node = at.keyboard ? findPath(flame, pathText(before, at.node)) : nodeUnder({ clientX: at.x, clientY: at.y });
    if (node < 0) return leave();
    setHover({ ...at, node });
    props.onHover(flame.name[node] ?? -1);
  }));
  createEffect(on([() => props.flip, () => props.of], () => {
    // Scroll to the root, which is at the top or at the bottom.
    box.scrollTop = props.flip ? box.scrollHeight : 0;
  }));
  // The zoomed frame, or the frame to which the search has stepped, is scrolled into view once. A path identifies the frame, because the
  // index of a frame changes with every response.
  const shown = createMemo(() => {
    const node = props.current >= 0 ? props.current : props.focus;
    return node > 0 ? pathText(flame(), node) : '';
  });
  createEffect(on([shown, size], ([path, { height }]) => {
    const node = findPath(flame(), path);
    if (path === '' || node < 0 || height === 0) return;
    const top = rowTop(flame().level[node] ?? 0, { flame: flame(), flip: props.flip, scroll: 0, height });
    if (top < box.scrollTop) box.scrollTop = Math.max(0, top - ROW);
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
  }));

  const nodeUnder = (event: { clientX: number; clientY: number }): number => {
    const at = canvas.getBoundingClientRect();
    const now = picture();
    const x = now.from + ((event.clientX - at.left) / now.width) * (now.to - now.from);
    return nodeAt(flame(), levelAt(event.clientY - at.top, now), x);
  };
  const move = (event: PointerEvent): void => {
    const node = nodeUnder(event);
    if (node < 0) return leave();
    setHover({ node, x: event.clientX, y: event.clientY, keyboard: false });
    props.onHover(flame().name[node]!);
  };
  const leave = (): void => {
    setHover(undefined);
    props.onHover(-1);
  };

  /** Moves the keyboard cursor to a node. */
  const put = (node: number): void => {
    if (node < 0) return;
    const now = picture();
    const level = flame().level[node]!;
    const top = rowTop(level, { ...now, scroll: 0 });
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
    const at = canvas.getBoundingClientRect();
    const x = Math.max(0, ((flame().start[node]! - now.from) / (now.to - now.from)) * now.width);
    setHover({ node, x: at.left + x, y: at.top + top - box.scrollTop + ROW, keyboard: true });
    props.onHover(flame().name[node]!);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const flame = props.tree.flame;
    const node = hover()?.node ?? props.focus;
    const inView = (other: number): number => (other >= 0 && flame.start[other]! < target().to && flame.start[other]! + flame.total[other]! > target().from ? other : node);
    const level = flame.level[node] ?? 0;
    const below = (): number => {
      const [from, to] = children(flame, node);
      let best = node;
      for (let at = from; at < to; at += 1) if (inView(at) === at && (best === node || flame.total[at]! > flame.total[best]!)) best = at;
      return best;
    };
    const outward = props.flip ? 'ArrowUp' : 'ArrowDown';
    const inward = props.flip ? 'ArrowDown' : 'ArrowUp';
    if (event.key === outward) put(hover() ? below() : node);
    else if (event.key === inward) put(flame.parent[node]! >= 0 ? flame.parent[node]! : node);
    else if (event.key === 'ArrowRight') put(node + 1 < flame.levelStart[level + 1]! ? inView(node + 1) : node);
    else if (event.key === 'ArrowLeft') put(node - 1 >= flame.levelStart[level]! ? inView(node - 1) : node);
    else if (event.key === 'Home') put(0);
    else if (event.key === 'Enter' || event.key === ' ') props.onFocus(node);
    else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      const at = hover();
      const frame = canvas.getBoundingClientRect();
      leave();
      props.onMenu(node, at?.x ?? frame.left + 40, at?.y ?? frame.top + 40);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const spoken = (): string => {
    const at = hover();
    if (!at?.keyboard) return '';
    const { tree, look } = props;
    return `${tree.flame.names[tree.flame.name[at.node]!]}, ${look.spoken(tree, at.node)}, level ${tree.flame.level[at.node]}`;
  };

  return (
    <div
      class="flame"
      id={props.id}
      ref={box}
      tabindex="0"
      role="application"
      aria-roledescription="flame graph"
      aria-label={`${props.label}. Arrow keys move between frames, Enter zooms, Escape goes back. The table beside it has the same values.`}
      onScroll={() => {
        setScroll(box.scrollTop);
        if (!hover()?.keyboard) setHover(undefined);
      }}
      onKeyDown={keys}
      onBlur={() => hover()?.keyboard && leave()}
    >
      <canvas
        ref={canvas}
        onPointerMove={move}
        onPointerLeave={leave}
        onClick={(event) => {
          if (event.detail > 1) return;
          const node = nodeUnder(event);
          pressed = flame().names[flame().name[node] ?? -1] ?? '';
          if (node >= 0) props.onFocus(node);
        }}
        onDblClick={() => pressed !== '' && props.onOpen?.(pressed)}
        onContextMenu={(event) => {
          event.preventDefault();
          const node = nodeUnder(event);
          leave();
          if (node >= 0) props.onMenu(node, event.clientX, event.clientY);
        }}
      />
      <div aria-hidden="true" style={{ height: `${content() - size().height}px` }} />
      <div class="visually-hidden" aria-live="polite">{spoken()}</div>
      <Show when={hover()}>{(at) => <FrameTip flame={flame()} node={at().node} x={at().x} y={at().y}>{props.look.values(props.tree, at().node)}</FrameTip>}</Show>
    </div>
  );
}
