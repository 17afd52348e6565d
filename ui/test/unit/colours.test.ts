import { describe, expect, it } from 'vitest';
import { colourNames, colourOf, contrast, DARK, hueOf, LIGHT, oklch } from '../../src/flame/colours.ts';
import { placeOf, shortName } from '../../src/flame/packages.ts';

describe('the package of a name', () => {
  it.each([
    ['github.com/acme/shop/checkout.(*Service).Place', 'github.com/acme/shop/checkout'],
    ['net/http.(*conn).serve', 'net/http'],
    ['runtime.gcBgMarkWorker.func2', 'runtime'],
    ['main.main', 'main'],
    ['slices.SortFunc[go.shape.[]github.com/a/b.T]', 'slices'],
    ['tokio::runtime::task::harness::poll', 'tokio'],
    ['<alloc::boxed::Box<dyn core::ops::FnOnce()> as core::ops::FnOnce>::call_once', 'alloc'],
    ['std::vector<int, std::allocator<int>>::push_back(int&&)', 'std'],
    ['java.util.concurrent.ThreadPoolExecutor.runWorker', 'java.util.concurrent'],
    ['java/util/HashMap.get', 'java.util'],
    ['total', ''],
    ['other', ''],
    ['memcpy', ''],
  ])('%s is in `%s`', (name, expected) => {
    expect(placeOf(name).package).toBe(expected);
  });

  it('falls back to the binary, and to the file of a script', () => {
    expect(placeOf('memcpy', '/usr/lib/libc.so.6')).toEqual({ package: 'libc.so.6', runtime: true });
    expect(placeOf('handler', '', 'app/views.py').package).toBe('app/views.py');
    expect(placeOf('do_syscall_64', '[kernel.kallsyms]')).toEqual({ package: 'kernel', runtime: true });
  });

  it('loses its path in a short name', () => {
    expect(shortName('github.com/acme/shop/checkout.(*Service).Place')).toBe('checkout.(*Service).Place');
    expect(shortName('slices.SortFunc[go.shape.[]github.com/a/b.T]')).toBe('slices.SortFunc[go.shape.[]github.com/a/b.T]');
    expect(shortName('main.main')).toBe('main.main');
  });
});

describe('colours', () => {
  it('convert OKLCH as CSS does', () => {
    expect(oklch(1, 0, 0)).toBe('#ffffff');
    expect(oklch(0, 0, 0)).toBe('#000000');
    expect(oklch(0.627955, 0.257683, 29.234)).toBe('#ff0000');
  });

  it('keep text readable on every hue, bright and dull', () => {
    for (const palette of [LIGHT, DARK]) {
      for (let hue = 0; hue < 360; hue += 1) {
        expect(contrast(oklch(palette.lightness, palette.chroma, hue), palette.text)).toBeGreaterThanOrEqual(4.5);
      }
      for (const name of ['runtime', 'kernel', '']) {
        expect(contrast(colourOf({ package: name, runtime: true }, palette), palette.text)).toBeGreaterThanOrEqual(4.5);
      }
    }
  });

  it('give a package the same colour in every graph', () => {
    const one = colourNames(['net/http.Serve', 'runtime.mallocgc', 'net/http.(*conn).serve'], [], [], LIGHT);
    const two = colourNames(['main.main', 'net/http.ListenAndServe'], [], [], LIGHT);
    expect(one[0]).toBe(one[2]);
    expect(two[1]).toBe(one[0]);
    expect(hueOf('net/http')).toBe(hueOf('net/http'));
  });
});
