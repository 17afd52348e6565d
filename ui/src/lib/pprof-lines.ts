// The value of each line of each function in a pprof profile, as in `go tool pprof -list`. The text of the source is in `source-files`.

import { fields, numbers } from './pprof-read.ts';

export interface LineValue {
  /** Line number, 0 if not known. */
  line: number;
  /** Own value of the line, and its value including its callees. */
  self: number;
  total: number;
}

export interface FunctionLines {
  name: string;
  file: string;
  self: number;
  total: number;
  /** The lines, sorted by number. */
  lines: LineValue[];
}

interface Counted extends LineValue {
  /** Index of the last counted sample, because a line counts once for each stack, however often the stack contains it. */
  seen: number;
}

interface Frame {
  /** The function's id. */
  of: number;
  line: number;
}

/** Reads the lines of an uncompressed profile, with the values of its first sample type. */
export function readLines(profile: Uint8Array): FunctionLines[] {
  const strings: string[] = [];
  const decoder = new TextDecoder();
  const functions = new Map<number, { name: number; file: number }>();
  const locations = new Map<number, Frame[]>();
  const samples: Uint8Array[] = [];
  for (const { number, bytes } of fields(profile)) {
    if (number === 2) samples.push(bytes);
    else if (number === 4) readLocation(bytes, locations);
    else if (number === 5) {
      const [id = 0, name = 0, file = 0] = integers(bytes, [1, 2, 4]);
      functions.set(id, { name, file });
    } else if (number === 6) strings.push(decoder.decode(bytes));
  }

  const whole = new Map<number, Counted>();
  const byLine = new Map<number, Map<number, Counted>>();
  const counted = (values: Map<number, Counted>, key: number, sample: number, value: number, leaf: boolean): void => {
    let at = values.get(key);
    if (!at) {
      at = { line: key, self: 0, total: 0, seen: -1 };
      values.set(key, at);
    }
    if (leaf) at.self += value;
    if (at.seen !== sample) at.total += value;
    at.seen = sample;
  };
  samples.forEach((bytes, sample) => {
    const stack: number[] = [];
    const values: number[] = [];
    for (const field of fields(bytes)) {
      if (field.number === 1) stack.push(...numbers(field));
      else if (field.number === 2) values.push(...numbers(field));
    }
    const value = values[0] ?? 0;
    if (value === 0) return;
    // The locations of a sample and the inlined functions of a location both start at the leaf.
    let leaf = true;
    for (const id of stack) {
      for (const { of, line } of locations.get(id) ?? []) {
        counted(whole, of, sample, value, leaf);
        let lines = byLine.get(of);
        if (!lines) {
          lines = new Map();
          byLine.set(of, lines);
        }
        counted(lines, line, sample, value, leaf);
        leaf = false;
      }
    }
  });
  return [...whole.values()].map(({ line: id, self, total }) => ({
    name: strings[functions.get(id)?.name ?? 0] ?? '',
    file: strings[functions.get(id)?.file ?? 0] ?? '',
    self,
    total,
    lines: [...(byLine.get(id)?.values() ?? [])].sort((one, two) => one.line - two.line).map((at) => ({ line: at.line, self: at.self, total: at.total })),
  }));
}

function readLocation(bytes: Uint8Array, locations: Map<number, Frame[]>): void {
  let id = 0;
  const frames: Frame[] = [];
  for (const field of fields(bytes)) {
    if (field.number === 1) id = field.value;
    else if (field.number === 4) {
      const [of = 0, line = 0] = integers(field.bytes, [1, 2]);
      frames.push({ of, line: Math.max(0, line) });
    }
  }
  locations.set(id, frames);
}

/** Returns the values of the `wanted` fields of a message. If a field is repeated, its last value counts; a missing field is 0. */
function integers(bytes: Uint8Array, wanted: readonly number[]): number[] {
  const out = wanted.map(() => 0);
  for (const { number, value } of fields(bytes)) {
    const at = wanted.indexOf(number);
    if (at >= 0) out[at] = value;
  }
  return out;
}

/** Returns the functions named `name`, the largest total first. If some of them are in `file`, only these are returned. */
export function linesOf(all: readonly FunctionLines[], name: string, file: string): FunctionLines[] {
  const named = all.filter((one) => one.name === name).sort((one, two) => two.total - one.total);
  const there = named.filter((one) => one.file === file);
  return there.length > 0 ? there : named;
}
