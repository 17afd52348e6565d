import { describe, expect, it } from 'vitest';
import type { FunctionLines } from '../../src/lib/pprof-lines.ts';
import { indexFiles, nearestFiles, repositoryPage, sourceLines } from '../../src/lib/source-files.ts';

const index = indexFiles(['shop/main.go', 'shop/cart/handler.go', 'shop/pay/handler.go', 'shop/vendor/github.com/x/y@v1.2.0/handler.go', 'shop/a/b/util.py', 'shop/c/b/util.py'].map((path) => ({ path })));
const found = (path: string): string[] => nearestFiles(index, path).map((file) => file.path);

describe('the source file in a folder that a profile names', () => {
  it.each([
    ['/builds/ci/shop/cart/handler.go', ['shop/cart/handler.go']],
    ['github.com/acme/shop/pay/handler.go', ['shop/pay/handler.go']],
    ['C:\\build\\shop\\main.go', ['shop/main.go']],
    ['./main.go', ['shop/main.go']],
    ['github.com/x/y@v1.9.0/handler.go', ['shop/vendor/github.com/x/y@v1.2.0/handler.go']],
    ['other.go', []],
    ['', []],
  ])('is found by the end of its path: %s', (path, files) => expect(found(path)).toEqual(files));

  it('is one of several if the path is ambiguous', () => {
    expect(found('/srv/app/b/util.py')).toEqual(['shop/a/b/util.py', 'shop/c/b/util.py']);
    expect(found('/srv/handler.go')).toEqual(['shop/pay/handler.go', 'shop/cart/handler.go', 'shop/vendor/github.com/x/y@v1.2.0/handler.go']);
  });
});

describe('lines with their text', () => {
  const lines = (...of: number[]): FunctionLines => ({ name: 'f', file: 'f.go', self: 0, total: 0, lines: of.map((line) => ({ line, self: line, total: line })) });
  const text = Array.from({ length: 30 }, (_, at) => `text ${at + 1}`);

  it('begin before the first line with a value and end after the last, with all lines between', () => {
    const rows = sourceLines(lines(10, 13), text);
    expect(rows.map(({ line }) => line)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    expect(rows[5]).toEqual({ line: 10, self: 10, total: 10, text: 'text 10' });
    expect(rows[6]).toEqual({ line: 11, self: 0, total: 0, text: 'text 11' });
  });

  it('keep values without a line, and lines that the file does not have', () => {
    expect(sourceLines(lines(0, 2), text).map(({ line }) => line)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(sourceLines(lines(0), text)).toEqual([{ line: 0, self: 0, total: 0, text: '' }]);
    expect(sourceLines(lines(40), text).at(-1)).toEqual({ line: 40, self: 40, total: 40, text: '' });
  });
});

describe('the page of a line in a repository', () => {
  const shop = { url: 'https://github.com/acme/shop', ref: 'v1.2' };

  it.each([
    ['github.com/acme/shop/cart/handler.go', 'https://github.com/acme/shop/blob/v1.2/cart/handler.go#L7'],
    ['/go/pkg/mod/github.com/acme/shop@v1.2.0/main.go', 'https://github.com/acme/shop/blob/v1.2/main.go#L7'],
    ['src/app.py', 'https://github.com/acme/shop/blob/v1.2/src/app.py#L7'],
    ['a b/#x.py', 'https://github.com/acme/shop/blob/v1.2/a%20b/%23x.py#L7'],
    ['runtime/malloc.go', null],
    ['/usr/lib/python3/os.py', null],
    ['C:\\x.py', null],
    ['../x.py', null],
    ['', null],
  ])('is derived from the file path if the path leads into the repository: %s', (file, page) => expect(repositoryPage(file, 7, shop)).toBe(page));

  it('is on the default branch without a ref, and has the form of the host', () => {
    expect(repositoryPage('app.py', 0, { url: 'https://gitlab.example.com/a/b.git', ref: '' })).toBe('https://gitlab.example.com/a/b/-/blob/HEAD/app.py');
  });

  it('is null for an invalid address', () => {
    for (const url of ['javascript:alert(1)', 'http://github.com/a/b', 'https://u:p@github.com/a/b', 'a/b', '']) expect(repositoryPage('app.py', 1, { url, ref: '' })).toBeNull();
  });
});
