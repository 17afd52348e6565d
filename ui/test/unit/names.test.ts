import { describe, expect, it } from 'vitest';
import { exactly, findName, LONGEST_NAME, nameText } from '../../src/flame/names.ts';
import { compileSearch } from '../../src/flame/search.ts';
import { isLongLink, LONGEST_LINK } from '../../src/lib/links.ts';
import { list } from '../../src/lib/schema.ts';

const LONG = [
  `long${'x'.repeat(9_996)}`,
  `${'€'.repeat(5_000)}end`,
  `/(a|b)*[c]{2}$^\\.${'\n\r\t\u0000\u2028'.repeat(2_000)}?`,
  `\u202E${'🔥'.repeat(3_000)} \u200B`,
];

describe('a name in a link', () => {
  it('is unchanged if it has a usual length', () => {
    for (const name of ['main.main', '', 'a…b', 'x'.repeat(LONGEST_NAME)]) {
      expect(nameText(name)).toBe(name);
      expect(findName(['other', name], name)).toBe(1);
    }
    expect(exactly('main.main')).toBe('=main.main');
  });

  it.each(LONG.map((name) => [name.slice(0, 12), name]))('is shortened if it is too long, and is found again: %s', (_, name) => {
    const others = [`${name}y`, `y${name}`, name.slice(1), name];
    expect(encodeURIComponent(nameText(name)).length).toBeLessThan(1000);
    expect(findName(others, nameText(name))).toBe(3);
    expect(findName(others.slice(0, 3), nameText(name))).toBe(-1);
    const rule = exactly(name);
    expect(encodeURIComponent(rule).length).toBeLessThan(3000);
    const [read = ''] = list.read(new URLSearchParams(new URLSearchParams({ only: list.write([rule]) }).toString()).get('only') ?? '');
    expect(others.map(compileSearch(read)!)).toEqual([false, false, false, true]);
  });

  it('is not found if no name matches', () => {
    expect(findName(['a', 'b'], 'c')).toBe(-1);
    expect(findName(LONG, 'long…1')).toBe(-1);
  });
});

describe('a link', () => {
  it('is too long if it has more characters than the limit', () => {
    expect(isLongLink('x'.repeat(LONGEST_LINK))).toBe(false);
    expect(isLongLink('x'.repeat(LONGEST_LINK + 1))).toBe(true);
  });
});
