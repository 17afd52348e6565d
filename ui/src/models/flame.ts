// A flame graph, from wherever it comes, with as much detail as the zoomed frame needs.

import { createMemo, type Accessor } from 'solid-js';
import { layoutDiff, type Sides } from '../flame/diff.ts';
import { callSite, graft } from '../flame/graft.ts';
import { findPath, foldedShare, layout, type Flame } from '../flame/layout.ts';
import { ApiError, diffStacktraces, mergeStacktraces, type FlameQuery } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import type { Query } from './selection.ts';

/** Where a flame graph comes from: all profiles of a question, one of them, the difference of two questions, or what a person brought along. */
export type FlameSource =
  | { kind: 'merged'; query: Query; spans?: readonly string[] }
  | { kind: 'single'; query: Query; profile: string; spans?: readonly string[] }
  | { kind: 'diff'; left: Query; right: Query }
  | { kind: 'file'; name: string; flame: Flame };

export interface FlameAnswer {
  source: FlameSource;
  flame: Flame;
  /** The totals of both sides, of a difference. */
  sides?: Sides;
  /** The frame that the link names is not in it, however closely one looks. */
  gone: boolean;
}

/** Enough for a wide screen: frames below a fraction of a pixel come folded. */
const NODES = 16_384;
/** For what is made of all frames (inverted, one function in the middle): most profiles come whole with that. */
const WHOLE_NODES = 65_536;
/** A zoomed frame of which more than this was folded is asked for by itself. */
const FOLDED_SHARE = 0.02;
/** For a link to a frame that is not among the largest: it is known by a hash, so the server cannot be asked for it alone. */
const MOST_NODES = 262_144;

/** `focus` is the path of the zoomed frame. Where the `whole` is needed, that path is not one of this graph. */
export function createFlame(source: Accessor<FlameSource | null>, focus: Accessor<string>, whole: Accessor<boolean> = () => false): Loader<FlameAnswer> {
  /** The last answer: a zoom into it starts from there, and the whole is not asked for again. */
  let last: (Picture & { source: FlameSource; nodes: number }) | undefined;
  const wanted = createMemo(() => {
    const asked = source();
    return asked === null ? null : { source: asked, focus: whole() ? '' : focus(), nodes: whole() ? WHOLE_NODES : NODES };
  }, null, { equals: (a, b) => a !== null && b !== null && a.source === b.source && a.focus === b.focus && a.nodes === b.nodes });
  return createLoader(wanted, async (ask, signal) => {
    const enough = last?.source === ask.source && (last.nodes >= ask.nodes || !last.flame.folded.includes(1)) ? last : undefined;
    const before = enough ?? { ...(await readMost(ask.source, ask.nodes, last?.source === ask.source ? last : null, signal)), nodes: ask.nodes };
    const { found, nodes, ...picture } = await closer(ask, before, signal);
    const answer: FlameAnswer = { source: ask.source, ...picture, gone: !found };
    if (!signal.aborted) last = { source: ask.source, ...picture, nodes };
    return answer;
  });
}

type Picture = Pick<FlameAnswer, 'flame' | 'sides'>;

/** The graph with the zoomed frame in it, in detail. */
async function closer(
  { source, focus }: { source: FlameSource; focus: string },
  { nodes, ...picture }: Picture & { nodes: number },
  signal: AbortSignal,
): Promise<Picture & { found: boolean; nodes: number }> {
  const { flame } = picture;
  const node = findPath(flame, focus);
  if (node < 0 && nodes < MOST_NODES && flame.folded.includes(1)) {
    const all = await readMost(source, MOST_NODES, picture, signal);
    return { ...all, found: findPath(all.flame, focus) >= 0, nodes: MOST_NODES };
  }
  // A difference is drawn as it comes: its sides are told by node, and grafting would move those.
  if (source.kind !== 'diff' && node > 0 && foldedShare(flame, node) > FOLDED_SHARE) {
    const detail = await read(source, NODES, callSite(flame, node), signal);
    const from = findPath(detail.flame, focus);
    return { flame: from < 0 ? flame : graft(flame, node, detail.flame, from), found: true, nodes };
  }
  return { ...picture, found: node >= 0, nodes };
}

/** Many nodes; a server that does not give so many at once gives what it gave already, or as many as it gives. */
async function readMost(source: FlameSource, nodes: number, before: Picture | null, signal: AbortSignal): Promise<Picture> {
  return read(source, nodes, [], signal).catch((error: unknown) => {
    if (nodes > NODES && error instanceof ApiError && error.code === 'invalid_argument') return before ?? read(source, NODES, [], signal);
    throw error;
  });
}

async function read(source: FlameSource, maxNodes: number, below: readonly string[], signal: AbortSignal): Promise<Picture> {
  const ask = ({ type, selector, range }: Query): FlameQuery => ({ type: type.id, selector, range, maxNodes, callSite: below });
  switch (source.kind) {
    case 'merged':
      return { flame: layout(await mergeStacktraces({ ...ask(source.query), spans: source.spans ?? [] }, signal)) };
    case 'single':
      return { flame: layout(await mergeStacktraces({ ...ask(source.query), profiles: [source.profile], spans: source.spans ?? [] }, signal)) };
    case 'diff':
      return layoutDiff(await diffStacktraces(ask(source.left), ask(source.right), signal));
    case 'file':
      return { flame: source.flame };
  }
}
