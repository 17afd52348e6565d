// A real server with known profiles: a service `api`, whose release 2 added a function that takes a fifth of the time, and a
// service `shop` without changes. Stacks vary from profile to profile, always in the same way.

import { HOSTILE, path, pprof, random } from './mock.mjs';
import { listening, start, stop, temporary } from './program.mjs';

export const STEP_S = 30;
// 52 minutes of profiles: together with the duration of the tests, they stay within the last hour of the page.
const PROFILES = 104;
export const REGRESSION = 'tax.roundEachCent';
export const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
/** Nanoseconds of one count. */
export const TICK = 10_000_000;

/** Returns the stacks of one profile with their counts. */
function stacks(rand, release) {
  const about = (count) => Math.round(count * (0.85 + 0.3 * rand()));
  return [
    ['main;serve;parse', about(300)],
    ['main;serve;render', about(250)],
    ['main;serve;render;escape', about(90)],
    ['main;gc', about(120)],
    ['main;idle', about(60)],
    ...(release === 2 ? [[`main;serve;${REGRESSION}`, about(200)]] : []),
  ];
}

export async function seed(base, now = Date.now()) {
  const sent = [];
  // The profiles end two minutes ago, because shares cover only complete steps of a chart, and a step is one minute.
  const last = Math.floor(now / 1000 / STEP_S) * STEP_S - 4 * STEP_S;
  for (const [name, seedOf] of [['api', 11], ['shop', 23]]) {
    const rand = random(seedOf);
    for (let at = PROFILES - 1; at >= 0; at -= 1) {
      const release = name === 'api' && at < PROFILES / 2 ? 2 : 1;
      const from = last - at * STEP_S;
      const rows = stacks(rand, release);
      const query = new URLSearchParams({ name: `${name}{version=${release},pod=${name}-${at % 3}}`, from: String(from), until: String(from + STEP_S) });
      const answer = await fetch(`${base}ingest?${query}`, { method: 'POST', body: rows.map(([stack, count]) => `${stack} ${count}\n`).join('') });
      if (!answer.ok) throw new Error(`/ingest returned status ${answer.status}: ${await answer.text()}`);
      sent.push({ name, release, from, rows, total: rows.reduce((sum, [, count]) => sum + count, 0) * TICK });
    }
  }
  await seedHostile(base, last);
  return sent;
}

/** Sends hostile names of services, functions and labels, no longer than the server accepts. */
async function seedHostile(base, last) {
  const rows = HOSTILE.map((name) => `main;${name.replaceAll(';', ':')} 7\n`).join('');
  for (const value of ['', ...HOSTILE.filter((name) => name.length <= 2000 && !/[,{}]/.test(name))]) {
    const query = new URLSearchParams({ name: `zz-hostile{label=${value || 'plain'}}`, from: String(last), until: String(last + STEP_S) });
    const answer = await fetch(`${base}ingest?${query}`, { method: 'POST', body: rows });
    if (!answer.ok) throw new Error(`/ingest returned status ${answer.status}: ${await answer.text()}`);
  }
  // A push accepts names of services that `/ingest` does not.
  const series = HOSTILE_SERVICES.map((service) => ({
    labels: [{ name: '__name__', value: 'process_cpu' }, { name: 'service_name', value: service }, { name: 'label', value: service }],
    samples: [{ rawProfile: pprof(path(['main', service], TICK), ['cpu', 'nanoseconds']).toString('base64') }],
  }));
  const answer = await fetch(`${base}push.v1.PusherService/Push`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ series }) });
  if (!answer.ok) throw new Error(`a push returned status ${answer.status}: ${await answer.text()}`);
}

/** Services with hostile names. Sorted by name, they follow all other services. */
export const HOSTILE_SERVICES = HOSTILE.map((name) => `zz${name}`.slice(0, 2000));
/** Number of profiles that `seedHostile` sends. */
export const HOSTILE_PROFILES = 4 + HOSTILE_SERVICES.length;

/** Starts a server in a folder of its own and fills it. With the command `demo`, the server also runs a collector. */
export async function startSeeded(command = ['serve']) {
  const data = await temporary();
  const running = start([...command, '--listen', '127.0.0.1:0', '--data', data], data);
  const url = await listening(running);
  return { url, sent: await seed(url), log: running.log, close: () => stop(running) };
}
