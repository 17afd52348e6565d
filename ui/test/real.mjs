// The browser test against a real server. It starts `alluvium demo`, which profiles itself, in a separate folder, and waits until the
// CPU and memory of the program can be queried. It sends the heap of the demo as a second service, so that the page has several
// services. Then it runs browser.mjs against the demo, and stops the demo. Next it runs seeded.mjs, which starts a server with known
// profiles, and collector.mjs, which starts a collector.
// ALLUVIUM_BIN names the program (default: target/debug/alluvium, where cargo puts it). Without the program, the tests are skipped, except
// on CI, where they fail.

import { spawn } from 'node:child_process';
import { access } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { listening, program as BIN, sleep, start, stop, temporary } from './program.mjs';

const NEEDED = ['memory:inuse_space:bytes:space:bytes', 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'];
const READY_MS = 90_000;

/** Returns the total of the demo's own profiles of a type in the last ten minutes. Throws the error of the server if the request fails. */
async function total(base, type) {
  const now = Date.now();
  const request = { profileTypeID: type, labelSelector: '{service_name="alluvium"}', start: String(now - 600_000), end: String(now + 1000), maxNodes: '16' };
  const response = await fetch(`${base}querier.v1.QuerierService/SelectMergeStacktraces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(request), signal: AbortSignal.timeout(10_000) });
  const text = await response.text();
  if (!response.ok) throw new Error(`status ${response.status}: ${text.slice(0, 300)}`);
  return Number(JSON.parse(text).flamegraph?.total ?? 0);
}

async function ready(base, demo) {
  const deadline = Date.now() + READY_MS;
  for (const type of NEEDED) {
    let last = 'it responds, but has no profiles yet';
    for (;;) {
      if (demo.ended) throw new Error(`the demo ended by itself: ${demo.ended}`);
      const found = await total(base, type).catch((error) => {
        last = error.cause?.message ?? error.message;
        return 0;
      });
      if (found > 0) break;
      if (Date.now() > deadline) throw new Error(`no ${type} of the demo itself within ${READY_MS / 1000} s: ${last}`);
      await sleep(500);
    }
  }
}

/** Sends the demo's heap as another service. */
async function sendAnother(base) {
  const heap = await fetch(`${base}debug/pprof/heap`);
  if (!heap.ok) throw new Error(`/debug/pprof/heap returned status ${heap.status}`);
  const sent = await fetch(`${base}ingest?name=second&format=pprof`, { method: 'POST', body: await heap.arrayBuffer() });
  if (!sent.ok) throw new Error(`/ingest returned status ${sent.status}: ${(await sent.text()).slice(0, 300)}`);
}

async function browserTest(name, base) {
  const test = spawn(process.execPath, ['--test', '--test-timeout=600000', fileURLToPath(new URL(name, import.meta.url))], { stdio: 'inherit', env: { ...process.env, ...(base ? { BASE_URL: base } : {}) } });
  return new Promise((resolve) => test.once('exit', (code) => resolve(code ?? 1)));
}

async function main() {
  const there = await access(BIN).then(() => true, () => false);
  if (!there) {
    console.error(`real: ${BIN} does not exist: build it (\`cargo build\`), or set ALLUVIUM_BIN`);
    return process.env.CI ? 1 : 0;
  }
  const data = await temporary();
  const demo = start(['demo', '--only-self', '--listen', '127.0.0.1:0', '--data', data], data);
  let code = 1;
  try {
    const base = await listening(demo);
    await ready(base, demo);
    await sendAnother(base);
    code = await browserTest('browser.mjs', base);
  } catch (error) {
    console.error(`real: ${error.message}`);
  }
  const before = demo.ended;
  if (!(await stop(demo))) {
    console.error(`real: the demo ended ${before || demo.ended}`);
    code ||= 1;
  }
  if (code !== 0) console.error(`real: the last lines of the demo:\n${demo.log.join('\n')}`);
  const seeded = await browserTest('seeded.mjs');
  return (await browserTest('collector.mjs')) || seeded || code;
}

process.exitCode = await main();
