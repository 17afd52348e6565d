// Reads a pprof profile as stacks of names. Implements only the required part of protobuf, and ignores labels and addresses.

/** Functions from the root to the leaf, and the value of the first sample type. */
export interface Stack {
  names: string[];
  value: number;
}

export interface Field {
  number: number;
  /** Value of a varint field. */
  value: number;
  /** Bytes of a length-delimited field. */
  bytes: Uint8Array;
}

const NONE = new Uint8Array();

/** Iterates over the fields of a message. */
export function* fields(bytes: Uint8Array): Generator<Field> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    let factor = 1;
    for (let length = 0; ; length += 1) {
      const byte = bytes[at];
      if (byte === undefined || length === 10) throw new Error(`the profile is truncated or damaged at byte ${at}`);
      at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value >= 2 ** 63 ? value - 2 ** 64 : value;
      factor *= 128;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const number = Math.floor(tag / 8);
    const wire = tag % 8;
    if (wire === 0) yield { number, value: varint(), bytes: NONE };
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      const length = varint();
      if (at + length > bytes.length) throw new Error(`the profile is truncated: ${length} bytes at byte ${at} of ${bytes.length}`);
      yield { number, value: 0, bytes: bytes.subarray(at, at + length) };
      at += length;
    } else throw new Error(`the profile is damaged: wire type ${wire} at byte ${at}`);
  }
}

/** Returns the numbers of a repeated field, packed or not. */
export function numbers(field: Field): number[] {
  if (field.bytes.length === 0) return [field.value];
  const out: number[] = [];
  let value = 0;
  let factor = 1;
  for (const byte of field.bytes) {
    value += (byte & 127) * factor;
    factor *= 128;
    if (byte >= 128) continue;
    out.push(value >= 2 ** 63 ? value - 2 ** 64 : value);
    value = 0;
    factor = 1;
  }
  return out;
}

/** Returns the stacks of an uncompressed profile. */
export function readStacks(profile: Uint8Array): Stack[] {
  const strings: string[] = [];
  const nameOf = new Map<number, number>();
  const linesOf = new Map<number, number[]>();
  const samples: Uint8Array[] = [];
  const decoder = new TextDecoder();
  for (const { number, bytes } of fields(profile)) {
    if (number === 2) samples.push(bytes);
    else if (number === 4) {
      let id = 0;
      const functions: number[] = [];
      for (const field of fields(bytes)) {
        if (field.number === 1) id = field.value;
        else if (field.number === 4) for (const line of fields(field.bytes)) if (line.number === 1) functions.push(line.value);
      }
      linesOf.set(id, functions);
    } else if (number === 5) {
      let id = 0;
      let name = 0;
      for (const field of fields(bytes)) {
        if (field.number === 1) id = field.value;
        else if (field.number === 2) name = field.value;
      }
      nameOf.set(id, name);
    } else if (number === 6) strings.push(decoder.decode(bytes));
  }
  return samples.map((bytes) => {
    const locations: number[] = [];
    const values: number[] = [];
    for (const field of fields(bytes)) {
      if (field.number === 1) locations.push(...numbers(field));
      else if (field.number === 2) values.push(...numbers(field));
    }
    // The locations of a sample and the inlined functions of a location both start at the leaf.
    const names = locations.flatMap((id) => linesOf.get(id) ?? []).map((id) => strings[nameOf.get(id) ?? 0] ?? '');
    return { names: names.reverse(), value: values[0] ?? 0 };
  });
}

/** Formats stacks as collapsed stacks, one line `a;b;c 12` for each, as flamegraph.pl and others read them. */
export function collapsed(stacks: readonly Stack[]): string {
  const sums = new Map<string, number>();
  for (const { names, value } of stacks) {
    if (value === 0 || names.length === 0) continue;
    const key = names.map((name) => name.replace(/;/g, ':').replace(/[\r\n]/g, ' ')).join(';');
    sums.set(key, (sums.get(key) ?? 0) + value);
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([stack, value]) => `${stack} ${value}\n`).join('');
}
