// The flame graph as an SVG: all levels of the zoomed part, each frame with its name and values as a title. It has no script and
// no style of the page, so that it looks the same everywhere.

import { ROW, type Ink, type Paint } from './draw.ts';
import type { Flame } from './layout.ts';
import { shortName } from './packages.ts';

export interface SvgStill {
  flame: Flame;
  /** Left and right edge of the visible part, in the unit of `flame.total`. */
  from: number;
  to: number;
  /** True if the root is at the bottom. */
  flip: boolean;
  paint: Paint;
  ink: Ink;
  /** Title above the graph. */
  title: string;
  /** Returns the values of a node for its title. */
  values: (node: number) => string;
}

const WIDTH = 1200;
const HEAD = 28;
/** Minimum width of a frame in pixels. Narrower frames are not drawn. */
const LEAST = 0.3;
/** Approximate width of a character in pixels; the font of the viewer is not known. */
const CHARACTER = 6.7;

export function svg(still: SvgStill): string {
  const { flame, from, to, flip, paint, ink } = still;
  const scale = WIDTH / Math.max(Number.MIN_VALUE, to - from);
  const frames: string[] = [];
  let depth = 0;
  for (let node = 0; node < flame.count; node += 1) {
    const left = Math.max(0, (flame.start[node]! - from) * scale);
    const right = Math.min(WIDTH, (flame.start[node]! + flame.total[node]! - from) * scale);
    if (right - left < LEAST) continue;
    depth = Math.max(depth, flame.level[node]! + 1);
    frames.push(frame(still, node, left, right));
  }
  const height = HEAD + depth * ROW;
  // The height is known only at the end, so a group moves all frames if the root is at the bottom.
  const rows = flip ? `<g transform="translate(0 ${height - ROW})">` : `<g transform="translate(0 ${HEAD})">`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="${ink.paper}"/>`,
    `<text x="8" y="18" fill="${ink.text}">${escape(still.title)}</text>`,
    rows,
    ...frames,
    '</g>',
    '</svg>',
    '',
  ].join('\n');

  function frame({ values }: SvgStill, node: number, left: number, right: number): string {
    const name = flame.names[flame.name[node]!] ?? '';
    const y = (flip ? -1 : 1) * flame.level[node]! * ROW;
    const sign = paint.sign(node);
    const wide = right - left;
    const room = Math.floor((wide - 8) / CHARACTER) - (sign === '' ? 0 : 2);
    const label = fit(name, room);
    const text = label === '' && sign === '' ? '' : `<text x="${round(left + 4)}" y="${y + 14}" fill="${ink.text}">${escape(sign === '' ? label : `${sign} ${label}`)}</text>`;
    const shown = wide > 3 ? wide - 1 : wide;
    return `<g><title>${escape(`${name}\n${values(node)}`)}</title><rect x="${round(left)}" y="${y}" width="${round(shown)}" height="${ROW - 1}" fill="${paint.colour(node)}"/>${room >= 2 || sign !== '' ? text : ''}</g>`;
  }
}

const round = (value: number): number => Math.round(value * 100) / 100;

function fit(name: string, room: number): string {
  if (room < 2) return '';
  if (name.length <= room) return name;
  const short = shortName(name);
  return short.length <= room ? short : `${[...short].slice(0, room - 1).join('')}…`;
}

/** Escapes text for XML, which allows neither control characters nor lone surrogates. */
export function escape(text: string): string {
  return text
    .replace(/\p{Cs}/gu, '\ufffd')
    // oxlint-disable-next-line no-control-regex -- these are the characters that XML does not have
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
