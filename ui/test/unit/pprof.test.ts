import { describe, expect, it } from 'vitest';
import { goToolPprof } from '../../src/lib/addresses.ts';
import { linesOf, readLines } from '../../src/lib/pprof-lines.ts';
import { collapsed, readStacks } from '../../src/lib/pprof-read.ts';
import { speedscope } from '../../src/lib/speedscope.ts';

const varint = (value: number): number[] => (value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]);
const message = (number: number, bytes: readonly number[]): number[] => [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes];
const integer = (number: number, value: number): number[] => [...varint(number * 8), ...varint(value)];
const text = (value: string): number[] => message(6, [...new TextEncoder().encode(value)]);

/** main calls a, in which b is inlined; ids are not indices. */
const profile = (samples: readonly number[][]): Uint8Array => Uint8Array.from([
  ...samples.flatMap((sample) => message(2, sample)),
  ...message(4, [...integer(1, 900), ...message(4, integer(1, 31)), ...message(4, integer(1, 22))]),
  ...message(4, [...integer(1, 7), ...message(4, integer(1, 13))]),
  ...message(5, [...integer(1, 13), ...integer(2, 1)]),
  ...message(5, [...integer(1, 22), ...integer(2, 2)]),
  ...message(5, [...integer(1, 31), ...integer(2, 3)]),
  ...['', 'main', 'a;x', 'b'].flatMap(text),
]);

describe('a pprof profile', () => {
  const packed = [...message(1, [...varint(900), ...varint(7)]), ...message(2, varint(5_000_000_000))];
  const loose = [...integer(1, 7), ...integer(2, 3)];

  it('is read as stacks from the root, with inlined functions', () => {
    expect(readStacks(profile([packed, loose]))).toEqual([{ names: ['main', 'a;x', 'b'], value: 5_000_000_000 }, { names: ['main'], value: 3 }]);
  });

  it('is written as collapsed stacks, each once', () => {
    expect(collapsed(readStacks(profile([packed, loose, loose])))).toBe('main 6\nmain;a:x;b 5000000000\n');
  });

  it('is refused if it is truncated', () => {
    const whole = profile([packed]);
    expect(() => readStacks(whole.subarray(0, whole.length - 2))).toThrow('truncated');
    expect(() => readStacks(Uint8Array.from([0x80]))).toThrow('truncated');
    expect(() => readStacks(Uint8Array.from([0x0b]))).toThrow('wire type 3');
  });
});

describe('the lines of a profile', () => {
  // shop.go: main calls work in lines 10 and 11; work calls itself in line 22, and is inlined in line 11.
  const line = (of: number, at: number): number[] => message(4, [...integer(1, of), ...integer(2, at)]);
  const bytes = Uint8Array.from([
    ...message(2, [...message(1, [3, 3, 1]), ...message(2, varint(5))]),
    ...message(2, [...message(1, [2]), ...message(2, varint(7))]),
    ...message(2, [...message(1, [1]), ...message(2, varint(0))]),
    ...message(4, [...integer(1, 1), ...line(1, 10)]),
    ...message(4, [...integer(1, 2), ...line(2, 20), ...line(1, 11)]),
    ...message(4, [...integer(1, 3), ...line(2, 22)]),
    ...message(5, [...integer(1, 1), ...integer(2, 1), ...integer(4, 3)]),
    ...message(5, [...integer(1, 2), ...integer(2, 2), ...integer(4, 3)]),
    ...['', 'main', 'work', 'shop.go'].flatMap(text),
  ]);
  const all = readLines(bytes);

  it('have their self and total values, counted once for each stack', () => {
    expect(linesOf(all, 'work', 'shop.go')).toEqual([{ name: 'work', file: 'shop.go', self: 12, total: 12, lines: [{ line: 20, self: 7, total: 7 }, { line: 22, self: 5, total: 5 }] }]);
    expect(linesOf(all, 'main', '')).toEqual([{ name: 'main', file: 'shop.go', self: 0, total: 12, lines: [{ line: 10, self: 0, total: 5 }, { line: 11, self: 0, total: 7 }] }]);
  });

  it('are only those of the function in the given file, if the profile has this file', () => {
    const two = [...all, { name: 'work', file: 'other.go', self: 1, total: 99, lines: [] }];
    expect(linesOf(two, 'work', 'shop.go')).toHaveLength(1);
    expect(linesOf(two, 'work', '').map(({ file }) => file)).toEqual(['other.go', 'shop.go']);
    expect(linesOf(two, 'nosuch', '')).toEqual([]);
  });
});

describe('the file for speedscope', () => {
  it('names each frame once, and adds up to the same total', () => {
    const file = JSON.parse(speedscope([{ names: ['main', 'a'], value: 3 }, { names: ['main', 'b', 'a'], value: 4 }], 'shop CPU', 'ns')) as { shared: { frames: { name: string }[] }; profiles: { samples: number[][]; weights: number[]; endValue: number; unit: string }[] };
    expect(file.shared.frames.map(({ name }) => name)).toEqual(['main', 'a', 'b']);
    expect(file.profiles[0]).toMatchObject({ samples: [[0, 1], [0, 2, 1]], weights: [3, 4], endValue: 7, unit: 'nanoseconds' });
  });
});

describe('the command for go tool pprof', () => {
  it('contains a URL that returns all stacks of the query, and nothing that a shell would interpret', () => {
    const line = goToolPprof('process_cpu:cpu:nanoseconds:cpu:nanoseconds', `{service_name="it's $HOME"}`, { start: 1000.5, end: 2000.5 }, 'http://localhost:4040');
    const [, address = ''] = /^go tool pprof '([^']*)'$/.exec(line) ?? [];
    const params = new URL(address).searchParams;
    expect(new URL(address).pathname).toBe('/pyroscope/render');
    expect(Object.fromEntries(params)).toEqual({ query: `process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="it's $HOME"}`, from: '1000', until: '2001', format: 'pprof' });
  });
});
