// Fails the build if the largest view of a page needs more compressed JavaScript than its budget, or if the built page contains
// something that a strict Content-Security-Policy would block.
import { readFileSync, readdirSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

// A user may open any view first, so the largest view counts. The collector is a small program and has only one view.
const PAGES = [
  { folder: 'server', document: 'index.html', budget: 150_000 },
  { folder: 'collector', document: 'collector.html', budget: 60_000 },
];
const VIEWS = readdirSync(new URL('../src/views/', import.meta.url)).map((name) => name.replace(/\.tsx$/, ''));

/** Returns a script and all scripts that it imports statically. */
function needed(name, assets, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  const text = readFileSync(new URL(name, assets), 'utf8');
  for (const [, other] of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) needed(other, assets, found);
  return found;
}

for (const { folder, document, budget } of PAGES) {
  const dist = new URL(`../dist/${folder}/`, import.meta.url);
  const page = readFileSync(new URL(document, dist), 'utf8');
  const first = [...page.matchAll(/(?:src|href)="\.\/assets\/([^"]+\.js)"/g)].map((match) => match[1]);
  if (first.length === 0) throw new Error(`${folder}/${document} loads no script`);
  if (/<script(?![^>]*\bsrc=)/.test(page) || /<style|\son\w+=/.test(page)) throw new Error(`${folder}/${document} contains inline code`);
  if (folder === 'server' && !page.includes('data-collector="no"')) throw new Error('server/index.html has no data-collector="no", which the server replaces if a collector runs');

  const assets = new URL('assets/', dist);
  const names = readdirSync(assets).sort();
  const sizes = new Map();
  for (const name of names) {
    const bytes = readFileSync(new URL(name, assets));
    const gzip = gzipSync(bytes, { level: 9 }).length;
    sizes.set(name, gzip);
    console.log(`${`${folder}/${name}`.padEnd(42)} ${String(bytes.length).padStart(8)} B  gzip ${String(gzip).padStart(7)} B  brotli ${String(brotliCompressSync(bytes).length).padStart(7)} B`);
  }
  const views = VIEWS.flatMap((view) => {
    const script = names.find((name) => name.startsWith(`${view}-`) && name.endsWith('.js'));
    const all = new Set();
    for (const name of script ? [...first, script] : []) needed(name, assets, all);
    return script ? [{ view, total: [...all].reduce((sum, name) => sum + sizes.get(name), 0) }] : [];
  }).sort((a, b) => b.total - a.total);
  if (views.length === 0) throw new Error(`${folder}: no script of a view found`);
  for (const { view, total } of views) console.log(`${folder}: ${view} needs ${total} B of compressed JavaScript`);
  console.log(`${folder}: first view ${views[0].total} B of compressed JavaScript, budget ${budget} B`);
  if (views[0].total > budget) throw new Error(`${folder}: ${views[0].view} is over the budget`);
}
