// The flame graph as an SVG: every level of what is zoomed to, each frame with its name and values as a title. It holds no
// script and no style of the page, so that it is the same wherever it is opened.

import { ROW, type Ink, type Paint } from './draw.ts';
import type { Flame } from './layout.ts';
import { shortName } from './packages.ts';

export interface SvgStill {
  flame: Flame;
  /** The visible part, in ticks. */
  from: number;
  to: number;
  /** Root at the bottom. */
  flip: boolean;
  paint: Paint;
  ink: Ink;
  /** What it shows, above it. */
  title: string;
  /** The values of a node, for its title. */
  values: (node: number) => string;
}

const WIDTH = 1200;
const HEAD = 28;
/** Narrower frames are not drawn. */
const LEAST = 0.3;
/** Pixels of a character, more or less: an SVG does not know in what font it will be shown. */
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
  // A level's place depends on how many there are: a root at the bottom turns the whole, not each frame.
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

/** As text of XML, which has no control characters and no halves of a pair. */
export function escape(text: string): string {
  return text
    .replace(/\p{Cs}/gu, '\ufffd')
    // oxlint-disable-next-line no-control-regex -- these are the characters that XML does not have
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
