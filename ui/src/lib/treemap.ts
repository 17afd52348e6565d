// A treemap: rectangles as square as possible, with areas in proportion to values. Each row lies along the shorter side of the
// remaining box, and takes further items as long as its least square rectangle does not become less square (Bruls, Huizing, van
// Wijk: Squarified Treemaps).

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Tile<T> extends Box {
  item: T;
}

/** Returns the tiles, the largest first. An item of size zero has no tile. */
export function treemap<T>(items: readonly { item: T; size: number }[], box: Box): Tile<T>[] {
  const sized = items.filter(({ size }) => size > 0).sort((a, b) => b.size - a.size);
  const sum = sized.reduce((all, { size }) => all + size, 0);
  if (sum <= 0 || box.width <= 0 || box.height <= 0) return [];
  const scale = (box.width * box.height) / sum;
  const tiles: Tile<T>[] = [];
  let rest = { ...box };
  let from = 0;
  while (from < sized.length) {
    const side = Math.min(rest.width, rest.height);
    let area = 0;
    let until = from;
    let best = Number.POSITIVE_INFINITY;
    while (until < sized.length) {
      const next = area + sized[until]!.size * scale;
      const shape = worst(next, side, sized[from]!.size * scale, sized[until]!.size * scale);
      if (shape > best) break;
      [area, best, until] = [next, shape, until + 1];
    }
    rest = lay(sized.slice(from, until), area, scale, rest, tiles);
    from = until;
  }
  return tiles;
}

/** Returns the worst aspect ratio in a row, from its largest and its smallest area. */
function worst(area: number, side: number, largest: number, smallest: number): number {
  const across = area / side;
  return Math.max(largest / across ** 2, across ** 2 / smallest);
}

/** Places a row along the shorter side, and returns the remaining box. */
function lay<T>(row: readonly { item: T; size: number }[], area: number, scale: number, box: Box, tiles: Tile<T>[]): Box {
  const isWide = box.width >= box.height;
  const side = isWide ? box.height : box.width;
  const across = side > 0 ? area / side : 0;
  let at = 0;
  for (const { item, size } of row) {
    const along = across > 0 ? (size * scale) / across : 0;
    tiles.push(isWide ? { item, x: box.x, y: box.y + at, width: across, height: along } : { item, x: box.x + at, y: box.y, width: along, height: across });
    at += along;
  }
  return isWide
    ? { ...box, x: box.x + across, width: Math.max(0, box.width - across) }
    : { ...box, y: box.y + across, height: Math.max(0, box.height - across) };
}
