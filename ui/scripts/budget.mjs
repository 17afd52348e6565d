// Fails the build when the first view of a page needs more compressed JavaScript than its budget, or when the built page
// holds something that a strict Content-Security-Policy would block.
import { readFileSync, readdirSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

// The collector is embedded in a small program and shows one view.
const PAGES = [
  { folder: 'server', document: 'index.html', budget: 150_000 },
  { folder: 'collector', document: 'collector.html', budget: 60_000 },
];

for (const { folder, document, budget } of PAGES) {
  const dist = new URL(`../dist/${folder}/`, import.meta.url);
  const page = readFileSync(new URL(document, dist), 'utf8');
  const first = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map((match) => match[1]);
  if (first.length === 0) throw new Error(`${folder}/${document} loads no script`);
  if (/<script(?![^>]*\bsrc=)/.test(page) || /<style|\son\w+=/.test(page)) throw new Error(`${folder}/${document} holds inline code`);
  if (folder === 'server' && !page.includes('data-collector="no"')) throw new Error('the server cannot say in its document whether a collector runs');

  let total = 0;
  for (const name of readdirSync(new URL('assets/', dist)).sort()) {
    const bytes = readFileSync(new URL(`assets/${name}`, dist));
    const gzip = gzipSync(bytes, { level: 9 }).length;
    const eager = first.includes(`assets/${name}`);
    if (eager) total += gzip;
    console.log(`${`${folder}/${name}`.padEnd(42)} ${String(bytes.length).padStart(8)} B  gzip ${String(gzip).padStart(7)} B  brotli ${String(brotliCompressSync(bytes).length).padStart(7)} B${eager ? '  first view' : ''}`);
  }
  console.log(`${folder}: first view ${total} B of compressed JavaScript, budget ${budget} B`);
  if (total > budget) throw new Error(`${folder}: over the budget`);
}
