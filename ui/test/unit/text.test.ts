import { afterEach, describe, expect, it } from 'vitest';
import { baseOf, below } from '../../src/lib/base.ts';
import { axisFormat, formatMoment, formatShare, formatSpan, formatValue } from '../../src/lib/format.ts';
import { mergeProfileRequest } from '../../src/lib/pprof.ts';
import { chartValue, profileType, sortTypes } from '../../src/lib/profile-types.ts';
import { parseMatchers, printMatchers, printSelector, readMatchers, SelectorError } from '../../src/lib/selector.ts';
import { didYouMean, distance, filterItems } from '../../src/lib/suggest.ts';
import { parseMoment, resolveRange, shiftRange, stepFor, widenRange } from '../../src/lib/time.ts';
import { decode, encode, flag, list } from '../../src/lib/schema.ts';
import { fromInput, setZone, toInput, zoneName } from '../../src/lib/zone.ts';
import { PATHS, PROFILE, VIEWS } from '../../src/urls.ts';

describe('formats', () => {
  it.each([
    [0, 'ns', '0 s'],
    [999, 'ns', '999 ns'],
    [1500, 'ns', '1.5 µs'],
    [999_960, 'ns', '1 ms'],
    [2.5e9, 'ns', '2.5 s'],
    [9e10, 'ns', '1.5 min'],
    [7.2e12, 'ns', '2 h'],
    [1536, 'bytes', '1.5 KiB'],
    [3 * 2 ** 30, 'bytes', '3 GiB'],
    [12_345, 'count', '12.3 K'],
    [7, 'count', '7'],
    [1, 'cores', '1 core'],
    [2.5, 'cores', '2.5 cores'],
    [0.0125, 'cores', '12.5 mcores'],
    [2048, 'bytes/s', '2 KiB/s'],
    [-2048, 'bytes', '-2 KiB'],
  ] as const)('%d %s is %s', (value, unit, expected) => {
    expect(formatValue(value, unit)).toBe(expected);
  });

  it('write shares and durations', () => {
    expect(formatShare(0)).toBe('0.00%');
    expect(formatShare(0.00001)).toBe('<0.01%');
    expect(formatShare(0.1234)).toBe('12.3%');
    expect(formatShare(1)).toBe('100%');
    expect(formatSpan(90_000)).toBe('1.5 min');
    expect(formatSpan(172_800_000)).toBe('2 d');
  });
});

describe('an axis', () => {
  it('has one unit, which suits its largest value', () => {
    expect([0, 0.05, 0.1, 0.15].map(axisFormat(0.15, 'cores'))).toEqual(['0 cores', '0.05 cores', '0.1 cores', '0.15 cores']);
    expect([0, 512, 1024].map((mib) => axisFormat(2 ** 30, 'bytes')(mib * 2 ** 20))).toEqual(['0 GiB', '0.5 GiB', '1 GiB']);
    expect([0, 500, 1500].map(axisFormat(1500, 'count/s'))).toEqual(['0 K/s', '0.5 K/s', '1.5 K/s']);
    expect(axisFormat(0, 'bytes')(0)).toBe('0 B');
  });
});

describe('selectors', () => {
  it('survive the round trip', () => {
    const matchers = [
      { name: 'service_name', op: '=', value: 'a "b" \\ c' },
      { name: 'pod', op: '!~', value: '^x.*\n' },
      { name: 'odd-name', op: '!=', value: '' },
    ] as const;
    expect(parseMatchers(printMatchers(matchers))).toEqual(matchers);
    expect(parseMatchers(printSelector(matchers))).toEqual(matchers);
    expect(parseMatchers('')).toEqual([]);
    expect(parseMatchers(' { } ')).toEqual([]);
    expect(parseMatchers("a='x', b=~`\\d+`,")).toEqual([{ name: 'a', op: '=', value: 'x' }, { name: 'b', op: '=~', value: '\\d+' }]);
  });

  it('report the position of an error', () => {
    for (const text of ['a', 'a=', 'a=x', 'a="x', '{a="x"', 'a="x" b="y"', '{} x', '="x"']) expect(() => parseMatchers(text)).toThrow(SelectorError);
    expect(() => parseMatchers('a=x')).toThrow('position 3');
    expect(readMatchers('broken')).toEqual([]);
  });
});

describe('the URL', () => {
  it('survives the round trip and keeps unknown keys', () => {
    const values = { ...decode(PROFILE.keys, ''), service: 'a&b', type: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', q: 'pod=~"x.*"', from: 'now-6h', by: 'pod', focus: '1x2y', search: '/a|b/', view: 'flame' as const, sel: 'main.main', refresh: 30 };
    const text = encode(PROFILE.keys, values, [['theirs', '1'], ['theirs', '2']]);
    expect(text).toContain('type=process_cpu:cpu:nanoseconds:cpu:nanoseconds');
    expect(text.startsWith('v=1&')).toBe(true);
    expect(text.endsWith('&theirs=1&theirs=2')).toBe(true);
    expect(decode(PROFILE.keys, `?${text}`)).toEqual(values);
  });

  it('omits defaults and repairs invalid values', () => {
    const none = decode(PROFILE.keys, '');
    expect(encode(PROFILE.keys, none)).toBe('');
    expect(none).toMatchObject({ from: '', until: 'now', view: 'both', refresh: null });
    expect(decode(PROFILE.keys, '?view=zebra&refresh=1s&orient=up&from=')).toEqual({ ...none, refresh: 5 });
    expect(decode(PROFILE.keys, '?refresh=0').refresh).toBe(0);
  });

  it('works at the root and below any prefix', () => {
    const root = baseOf('http://h:4040/assets/index-x.js');
    const prefix = baseOf('http://h/profile/assets/index-x.js');
    expect([root, prefix]).toEqual(['/', '/profile/']);
    expect(below('/profile', root)).toBe('profile');
    expect(below('/profile/', prefix)).toBe('');
    expect(below('/profile/profile', prefix)).toBe('profile');
    expect(below('/elsewhere', prefix)).toBeNull();
  });

  it('gives every view a path of its own', () => {
    expect(new Set(PATHS).size).toBe(PATHS.length);
    for (const { path } of VIEWS.server) expect(PATHS).toContain(path);
  });
});

describe('lists and flags in the URL', () => {
  it.each([
    [[], ''],
    [['=a.b', '/x|y/'], '=a.b;/x|y/'],
    [['(Ljava/lang/String;)V', '/^runtime\\./'], '(Ljava/lang/String\\;)V;/^runtime\\./'],
    [['a\\', 'b\\;c', ';', '\\\\;'], 'a\\\\;b\\\\\\;c;\\;;\\\\\\\\\\;'],
  ])('%j is written as %s, and read back', (texts, written) => {
    expect(list.write(texts)).toBe(written);
    expect(list.read(written)).toEqual(texts);
  });

  it('omit empty texts of a list, and read a truncated list', () => {
    expect(list.write(['', 'a'])).toBe('a');
    expect(list.read(';;a;')).toEqual(['a']);
    expect(list.read('a\\')).toEqual(['a']);
  });

  it('read a flag as true only if its text is 1', () => {
    expect([flag.read('1'), flag.read(''), flag.read('yes'), flag.write(true), flag.write(false)]).toEqual([true, false, false, '1', '']);
  });
});

describe('the time zone', () => {
  afterEach(() => setZone('local'));
  const summer = Date.UTC(2026, 6, 1, 12, 5, 30);

  it('is that of the browser, or UTC if selected', () => {
    setZone('utc');
    expect(zoneName(summer)).toBe('UTC');
    expect(formatMoment(summer)).toMatch(/^1 Jul( \d+)? 12:05$/);
    expect(toInput(summer)).toBe('2026-07-01T12:05:30');
    setZone('local');
    expect(zoneName(summer)).toBe('UTC+5:30');
    expect(formatMoment(summer)).toMatch(/17:35$/);
  });

  it('reads back its own text', () => {
    for (const zone of ['utc', 'local'] as const) {
      setZone(zone);
      expect(fromInput(toInput(summer))).toBe(summer);
    }
  });
});

describe('time', () => {
  const now = 1_700_000_000_000;

  it('reads the texts of links', () => {
    expect(parseMoment('now', now)).toBe(now);
    expect(parseMoment('now-2h', now)).toBe(now - 7_200_000);
    expect(parseMoment('1700000000', now)).toBe(now);
    expect(parseMoment('1700000000000', now)).toBe(now);
    expect(parseMoment('yesterday-ish', now)).toBeNull();
    expect(resolveRange('now', 'now-1h', now)).toEqual({ start: now - 3_600_000, end: now });
  });

  it('shifts and widens ranges', () => {
    const range = { start: now - 3_600_000, end: now };
    expect(shiftRange(range, -1, now)).toEqual({ from: String(now - 5_400_000), until: String(now - 1_800_000) });
    expect(shiftRange(range, 1, now)).toEqual({ from: String(now - 3_600_000), until: String(now) });
    expect(widenRange(range, now)).toEqual({ from: String(now - 7_200_000), until: String(now) });
  });

  it('uses round steps', () => {
    expect(stepFor({ start: 0, end: 300_000 })).toBe(15);
    expect(stepFor({ start: 0, end: 3_600_000 })).toBe(30);
    expect(stepFor({ start: 0, end: 30 * 86_400_000 })).toBe(21_600);
  });
});

describe('profile types', () => {
  it('have names, groups and units', () => {
    const cpu = profileType('process_cpu:cpu:nanoseconds:cpu:nanoseconds');
    expect(cpu).toMatchObject({ label: 'CPU', group: 'CPU', unit: 'ns', kind: 'rate', chartUnit: 'cores' });
    expect(chartValue(cpu, 30e9, 15)).toBe(2);
    const memory = profileType('memory:inuse_space:bytes:space:bytes');
    expect(memory).toMatchObject({ kind: 'gauge', unit: 'bytes', chartUnit: 'bytes' });
    expect(chartValue(memory, 5, 15)).toBe(5);
    expect(profileType('memory:alloc_space:bytes:space:bytes').chartUnit).toBe('bytes/s');
    expect(profileType('mutex:delay:nanoseconds:contentions:count').chartUnit).toBe('s/s');
    expect(profileType('deadmans_switch:made_up:profilos:made_up:profilos')).toMatchObject({ label: 'deadmans switch made up', group: 'Other', unit: 'count' });
    expect(profileType('odd').label).toBe('odd');
  });

  it('put CPU first', () => {
    expect(sortTypes(['zzz:a:count::', 'memory:inuse_space:bytes:space:bytes', 'process_cpu:cpu:nanoseconds:cpu:nanoseconds']).map(({ label }) => label)).toEqual(['CPU', 'Memory in use', 'zzz a']);
  });
});

describe('suggestions', () => {
  it('find the intended name', () => {
    expect(distance('kitten', 'sitting')).toBe(3);
    expect(didYouMean('chekout', ['cart', 'checkout', 'search'])[0]).toBe('checkout');
    expect(didYouMean('qqqqqqqq', ['cart'])).toEqual([]);
    expect(filterItems(['search', 'cart', 'charts'], 'c', (item) => item)).toEqual(['cart', 'charts', 'search']);
  });
});

describe('the pprof request', () => {
  it('is the protobuf of querier.v1', () => {
    expect([...mergeProfileRequest('t', '{}', 1, 1_700_000_000_000)]).toEqual([0x0a, 1, 0x74, 0x12, 2, 0x7b, 0x7d, 0x18, 1, 0x20, 0x80, 0xd0, 0x95, 0xff, 0xbc, 0x31]);
  });
});
