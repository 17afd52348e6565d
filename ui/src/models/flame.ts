// The loader of a flame graph from any source, with as much detail as the zoomed frame needs.

import { createMemo, type Accessor } from 'solid-js';
import { layoutDiff, type Sides } from '../flame/diff.ts';
import { callSite, graft } from '../flame/graft.ts';
import { findPath, foldedShare, layout, type Flame } from '../flame/layout.ts';
import { ApiError, diffStacktraces, mergeStacktraces, type FlameQuery } from '../lib/api.ts';
import { createLoader, type Loader } from '../lib/loader.ts';
import type { Query } from './selection.ts';

/** The source of a flame graph: all profiles of a query, one of them, the difference of two queries, or a file. */
export type FlameSource =
  | { kind: 'merged'; query: Query; spans?: readonly string[] }
  | { kind: 'single'; query: Query; profile: string; spans?: readonly string[] }
  | { kind: 'diff'; left: Query; right: Query }
  | { kind: 'file'; name: string; flame: Flame };

export interface FlameAnswer {
  source: FlameSource;
  flame: Flame;
  /** The values of both sides, if the flame graph is a difference. */
  sides?: Sides;
  /** True if the zoomed frame of the link is not in the profile, even in full detail. */
  gone: boolean;
}

/** Number of nodes for a wide screen. Frames below a fraction of a pixel are folded. */
const NODES = 16_384;
/** Number of nodes for views that need all frames (inverted, callers and callees). Most profiles fit completely. */
const WHOLE_NODES = 65_536;
/** If more than this share of the zoomed frame is folded, its subtree is loaded separately. */
const FOLDED_SHARE = 0.02;
/** Number of nodes to request if the zoomed frame of a link is not among the larger frames. The link has only a hash of the frame's path, so the subtree of the frame cannot be requested. */
const MOST_NODES = 262_144;

/** Loads the flame graph of a source. `focus` is the path of the zoomed frame. If `whole` is true, the view derives another graph from the loaded one, for example an inverted graph. The path may then belong to the derived graph, so it is ignored here. */
export function createFlame(source: Accessor<FlameSource | null>, focus: Accessor<string>, whole: Accessor<boolean> = () => false): Loader<FlameAnswer> {
  /** The last response. A zoom starts from it, without loading the whole graph again. */
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

/** Returns the graph with the details of the zoomed frame. */
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
  // A difference is drawn as received: its sides are indexed by node, and a graft would renumber the nodes.
  if (source.kind !== 'diff' && node > 0 && foldedShare(flame, node) > FOLDED_SHARE) {
    const detail = await read(source, NODES, callSite(flame, node), signal);
    const from = findPath(detail.flame, focus);
    return { flame: from < 0 ? flame : graft(flame, node, detail.flame, from), found: true, nodes };
  }
  return { ...picture, found: node >= 0, nodes };
}

/** Requests many nodes. If the server refuses so many, returns the earlier graph, or requests the usual number. */
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
