import { describe, expect, it } from 'vitest';

const SOURCES = import.meta.glob<string>('../../src/**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true });
const texts = new Map(Object.entries(SOURCES).map(([path, text]) => [path.replace('../../src/', ''), text]));
const textOf = (name: string): string => texts.get(name) ?? '';
const files = [...texts.keys()];
const importsOf = (name: string): string[] => [...textOf(name).matchAll(/(?:from|import)\s*\(?'(\.[^']+)'/g)].map(([, path]) => new URL(path!, `file:///${name}`).pathname.slice(1));

/** The folders that each folder may import besides itself. */
const MAY: Record<string, readonly string[]> = {
  lib: [],
  flame: ['lib'],
  pipeline: ['lib'],
  models: ['lib', 'flame', 'pipeline'],
  components: ['lib', 'flame', 'pipeline', 'models'],
};

describe('the sources', () => {
  it('exist', () => expect(files).toContain('views/Profile.tsx'));

  it('import only from the folders in MAY, so that reusable parts do not use the URL', () => {
    const wrong: string[] = [];
    for (const name of files) {
      const folder = name.split('/')[0]!;
      const may = MAY[folder];
      if (!may || !name.includes('/')) continue;
      for (const used of importsOf(name)) {
        const from = used.includes('/') ? used.split('/')[0]! : '';
        // Reusable parts may import the types of URL keys.
        if (from === folder || may.includes(from) || (used === 'urls.ts' && textOf(name).includes("import type { FLAME } from '../urls.ts'"))) continue;
        wrong.push(`${name} uses ${used}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('load data only with createLoader: without createResource, and with Suspense only in app.tsx', () => {
    expect(files.filter((name) => /\bcreateResource\b/.test(textOf(name)))).toEqual([]);
    expect(files.filter((name) => /<Suspense\b/.test(textOf(name)))).toEqual(['app.tsx']);
  });

  it('are files of readable length', () => {
    expect(files.filter((name) => textOf(name).split('\n').length > 400)).toEqual([]);
  });
});
