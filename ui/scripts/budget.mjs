// Fails the build when the first view needs more compressed JavaScript than the budget, or when the built page
// holds something that a strict Content-Security-Policy would block.
import { readFileSync, readdirSync } from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const BUDGET = 150_000;
const dist = new URL('../dist/', import.meta.url);
const page = readFileSync(new URL('index.html', dist), 'utf8');
const first = [...page.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map((match) => match[1]);
if (first.length === 0) throw new Error('dist/index.html loads no script');
if (/<script(?![^>]*\bsrc=)/.test(page) || /<style|\son\w+=/.test(page)) throw new Error('dist/index.html holds inline code');

let total = 0;
for (const name of readdirSync(new URL('assets/', dist)).sort()) {
  const bytes = readFileSync(new URL(`assets/${name}`, dist));
  const gzip = gzipSync(bytes, { level: 9 }).length;
  const eager = first.includes(`assets/${name}`);
  if (eager) total += gzip;
  console.log(`${name.padEnd(34)} ${String(bytes.length).padStart(8)} B  gzip ${String(gzip).padStart(7)} B  brotli ${String(brotliCompressSync(bytes).length).padStart(7)} B${eager ? '  first view' : ''}`);
}
console.log(`first view: ${total} B of compressed JavaScript, budget ${BUDGET} B`);
if (total > BUDGET) throw new Error('over the budget');
