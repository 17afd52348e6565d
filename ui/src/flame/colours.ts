// The colour of a package: the hue is fnv1a32(package) % 360, in OKLCH with fixed lightness and chroma. So neighbours differ,
// text is readable on all colours, and a package always has the same colour.

import type { Ink, Paint } from './draw.ts';
import { fnv1a32, type Flame } from './layout.ts';
import { placeOf, type Place } from './packages.ts';

export interface Palette {
  lightness: number;
  chroma: number;
  /** Chroma of runtime and kernel frames. */
  dull: number;
  /** Colour of the text on a frame. */
  text: string;
}

export const LIGHT: Palette = { lightness: 0.83, chroma: 0.085, dull: 0.012, text: '#17191c' };
export const DARK: Palette = { lightness: 0.47, chroma: 0.075, dull: 0.012, text: '#f4f6f8' };

/** Colours of everything except the frames. */
export const INK: Record<'light' | 'dark', Ink> = {
  light: { text: LIGHT.text, faint: '#646e7a', paper: '#ffffff', grey: '#edf0f3', mark: '#b4338c', hover: 'rgba(10, 60, 80, 0.16)' },
  dark: { text: DARK.text, faint: '#9099a7', paper: '#16191d', grey: '#22272d', mark: '#f17ec8', hover: 'rgba(255, 255, 255, 0.2)' },
};

/** Returns an OKLCH colour as `#rrggbb`, clipped to sRGB. */
export function oklch(lightness: number, chroma: number, hue: number): string {
  const angle = (hue * Math.PI) / 180;
  const a = chroma * Math.cos(angle);
  const b = chroma * Math.sin(angle);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channels = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return `#${channels.map((channel) => Math.round(255 * encode(channel)).toString(16).padStart(2, '0')).join('')}`;
}

function encode(linear: number): number {
  const clipped = Math.min(1, Math.max(0, linear));
  return clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
}

/** Returns the WCAG contrast of two `#rrggbb` colours. */
export function contrast(one: string, two: string): number {
  const luminance = (hex: string): number => {
    const [r, g, b] = [1, 3, 5].map((at) => {
      const value = parseInt(hex.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  };
  const [high, low] = [luminance(one), luminance(two)].sort((a, b) => b - a);
  return (high! + 0.05) / (low! + 0.05);
}

export const hueOf = (packageName: string): number => fnv1a32(packageName) % 360;

/** Returns the colour of a function with this package. The colour is grey without a package, and nearly grey in a runtime. */
export function colourOf(place: Place, palette: Palette): string {
  const chroma = place.package === '' || place.runtime ? palette.dull : palette.chroma;
  // Many graphs consist mostly of runtime frames. Their colour is closer to the background, so that the frames of the program stand out.
  const lift = place.runtime || place.package === '' ? (palette.lightness > 0.6 ? 0.05 : -0.07) : 0;
  // The colour of a name without a package is a cool grey, like the greys of the page.
  return oklch(palette.lightness + lift, chroma, place.package === '' ? 250 : hueOf(place.package));
}

/** Returns the colour of each name, computed once for a graph. */
export function colourNames(names: readonly string[], mappings: readonly string[], files: readonly string[], palette: Palette): string[] {
  const known = new Map<string, string>();
  return names.map((name, index) => {
    const place = placeOf(name, mappings[index], files[index]);
    const key = `${place.package}\n${place.runtime}`;
    let colour = known.get(key);
    if (colour === undefined) {
      colour = colourOf(place, palette);
      known.set(key, colour);
    }
    return colour;
  });
}

/** Returns the paint of a flame graph by package. `colours` has one colour for each name. */
export const packagePaint = (flame: Flame, colours: readonly string[]): Paint => ({ colour: (node) => colours[flame.name[node]!] ?? '', sign: () => '' });
