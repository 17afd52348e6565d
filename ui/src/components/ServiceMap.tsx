// The fleet as a treemap: the area of a rectangle is the use or the cost of a service. The table has the same data.

import { createMemo, createSignal, For, onCleanup, onMount, Show } from 'solid-js';
import { DARK, hueOf, LIGHT, oklch } from '../flame/colours.ts';
import { formatCost, type Prices } from '../lib/cost.ts';
import { formatShare, formatValue, formatWhole } from '../lib/format.ts';
import { dark } from '../lib/preferences.ts';
import { treemap, type Box, type Tile } from '../lib/treemap.ts';
import type { Group, Ranked, RankedService } from '../models/ranked.ts';
import type { ServiceLinks } from './ServiceCard.tsx';

export interface ServiceMapProps extends ServiceLinks {
  groups: readonly Group[];
  label: string;
  what: Ranked['what'];
  prices: Prices | null;
}

/** Maximum number of services with their own rectangle. In each group, all smaller services share one more rectangle. */
const MOST_TILES = 300;
const HEAD = 18;
/** Least size of a rectangle with a readable name, in pixels. */
const [NAMED_WIDTH, NAMED_HEIGHT] = [44, 18];

interface Rest {
  count: number;
  size: number;
}

export function ServiceMap(props: ServiceMapProps) {
  let box!: HTMLDivElement;
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  const [cursor, setCursor] = createSignal(0);
  onMount(() => {
    const observer = new ResizeObserver(() => setSize({ width: box.clientWidth, height: box.clientHeight }));
    observer.observe(box);
    onCleanup(() => observer.disconnect());
  });

  const least = createMemo(() => {
    const sizes = props.groups.flatMap(({ services }) => services.map((service) => service.size)).sort((a, b) => b - a);
    return sizes[MOST_TILES] ?? 0;
  });
  const grouped = (): boolean => props.label !== '';
  const groups = createMemo((): Tile<Group>[] => treemap(props.groups.map((group) => ({ item: group, size: group.size })), { x: 0, y: 0, ...size() }));
  const inside = ({ x, y, width, height }: Box): Box => (grouped() ? { x: x + 1, y: y + HEAD, width: Math.max(0, width - 2), height: Math.max(0, height - HEAD - 1) } : { x, y, width, height });
  const tiles = createMemo((): Tile<RankedService | Rest>[] => groups().flatMap((tile) => {
    const shown = tile.item.services.filter((service) => service.size > least());
    const others: Rest = { count: tile.item.services.filter((service) => service.size > 0).length - shown.length, size: tile.item.size - shown.reduce((sum, service) => sum + service.size, 0) };
    return treemap<RankedService | Rest>([...shown.map((service) => ({ item: service, size: service.size })), ...(others.count > 0 ? [{ item: others, size: others.size }] : [])], inside(tile));
  }));
  const links = createMemo(() => tiles().filter((tile): tile is Tile<RankedService> => 'key' in tile.item));
  // Tiles are keyed by service, so that a refresh does not move the focus.
  const byKey = createMemo(() => new Map(links().map((tile) => [tile.item.key, tile])));
  const rests = createMemo(() => tiles().filter((tile): tile is Tile<Rest> => !('key' in tile.item)));
  const place = ({ x, y, width, height }: Box) => ({ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
  const palette = () => (dark() ? DARK : LIGHT);
  const fill = ({ group, name }: RankedService): string => oklch(palette().lightness, palette().chroma, hueOf(grouped() ? group : name));
  /** Whether a box has room for a number of lines of text. */
  const fits = ({ width, height }: Box, lines: number): boolean => width >= NAMED_WIDTH && height >= lines * NAMED_HEIGHT;
  /** The text of a tile besides name and share. */
  const rest = ({ group, cpu, memory, cost }: RankedService): string => [
    '',
    ...(grouped() ? [`${props.label} ${group || '(none)'}`] : []),
    ...(cpu ? [formatValue(cpu.mean, 'cores')] : []),
    ...(memory ? [formatValue(memory.mean, 'bytes')] : []),
    ...(cost !== null && props.prices ? [`${formatCost(cost, props.prices)} a month`] : []),
  ].join(', ');
  const told = (service: RankedService): string => `${service.name}, ${formatShare(service.share ?? 0)} of ${props.what}${rest(service)}`;
  const keys = (event: KeyboardEvent): void => {
    const last = links().length - 1;
    const to = { ArrowRight: cursor() + 1, ArrowDown: cursor() + 1, ArrowLeft: cursor() - 1, ArrowUp: cursor() - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    setCursor(Math.max(0, Math.min(last, to)));
    box.querySelectorAll<HTMLElement>('a')[cursor()]?.focus();
  };
  const stop = (): number => Math.min(cursor(), links().length - 1);
  return (
    <div class="service-map" ref={box} data-tiles={links().length} onKeyDown={keys}>
      <Show when={grouped()}>
        <For each={groups()}>
          {(tile) => <div class="map-group" style={place(tile)} title={`${props.label} ${tile.item.name || '(none)'}`}><span>{tile.item.name || '(none)'}</span> <span class="muted">{formatShare(tile.item.share ?? 0)}</span></div>}
        </For>
      </Show>
      <ul aria-label={`Services by ${props.what}, the largest first`}>
        <For each={[...byKey().keys()]}>
          {(key, index) => (
            <Show when={byKey().get(key)}>
              {(tile) => (
                <li>
                  <a
                    class="map-tile"
                    href={props.href(tile().item)}
                    style={{ ...place(tile()), background: fill(tile().item), color: palette().text }}
                    title={told(tile().item)}
                    tabindex={index() === stop() ? 0 : -1}
                    onFocus={() => setCursor(index())}
                    onClick={(event) => props.onFollow(event)}
                  >
                    <b classList={{ 'visually-hidden': !fits(tile(), 1) }}>{tile().item.name}</b>{' '}
                    <span classList={{ 'visually-hidden': !fits(tile(), 2) }}>{formatShare(tile().item.share ?? 0)}</span>
                    <span class="visually-hidden">of {props.what}{rest(tile().item)}</span>
                  </a>
                </li>
              )}
            </Show>
          )}
        </For>
      </ul>
      <For each={rests()}>
        {(tile) => <div class="map-tile rest" style={place(tile)} title={`${formatWhole(tile.item.count)} smaller services; the table lists them`}><Show when={fits(tile, 1)}>{formatWhole(tile.item.count)} more</Show></div>}
      </For>
    </div>
  );
}
