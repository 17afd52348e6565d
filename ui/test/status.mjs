// The Status view, and the print of a view, in Chromium against the stand-in.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, drawn, mock, open, profilePath } from './page.mjs';

const MIB = 2 ** 20;
const METRICS = `alluvium_store_files 12
alluvium_store_jobs_total{job="compact"} 7
alluvium_store_job_failures_total{job="compact"} 1
alluvium_store_job_read_bytes_total{job="compact"} ${40 * MIB}
alluvium_store_job_written_bytes_total{job="compact"} ${30 * MIB}
alluvium_store_job_seconds_sum{job="compact"} 14
alluvium_store_job_seconds_count{job="compact"} 7
alluvium_store_jobs_waiting 2
alluvium_store_rejected_profiles_total{reason="too_old"} 3
alluvium_store_head_bytes ${5 * MIB}
`;

/** Two collectors, one of which cannot send all its profiles. */
const collectors = (now) => [['web-1', 0, 800, 0], ['<i>web-2</i>', 1200, 180_000, 7]].map(([host, profiles, oldestMs, dropped]) => ({
  agent: 'alluvium/0.1.0', address: '10.0.0.8', firstSeen: now - 60_000, lastSeen: now, requests: 4, failed: 0, bytes: MIB, lastStatus: 200,
  queue: { host, component: 'pyroscope.write.default', profiles, oldestMs, dropped, failures: 0 },
}));

/** The routes of the server, with their responses. */
function told() {
  const now = Date.now();
  const intake = { name: '<img src=x onerror=alert(1)>', profiles: 5, stacks: 50, series: 2, first: new Date(now - 60_000).toISOString(), last: new Date(now).toISOString() };
  const big = { labels: { service_name: 'checkout', pod: 'a"b' }, profile_type: 'process_cpu:cpu:nanoseconds:cpu:nanoseconds', profiles: 5, stacks: 50 };
  const held = { files: 2, bytes: 3 * MIB, rows: 1000 };
  mock.routes.set('/ready', () => [200, 'ready\n']);
  mock.routes.set('/api/v1/status/buildinfo', () => [200, { data: { version: '0.1.0', revision: 'abc' } }]);
  mock.routes.set('/metrics', () => [200, METRICS]);
  mock.routes.set('/api/v1/sql', (_, body) => [200, body.toString().includes('s.labels') ? [big] : [intake]]);
  mock.routes.set('/api/v1/status/storage', () => [200, { tables: ['profiles', 'samples', 'series', 'stacks'].map((table) => ({ table, ...held })), days: ['2026-11-21', '2026-11-22', '2026-11-23'].map((day) => ({ day, ...held })) }]);
  mock.routes.set('/api/v1/status/senders', () => [200, { senders: [{ agent: '<b>alluvium/0.1.0</b>', address: '10.0.0.7', firstSeen: now - 60_000, lastSeen: now, requests: 40, failed: 1, bytes: 9 * MIB, lastStatus: 429 }, ...collectors(now)] }]);
  mock.routes.set('/api/v1/tenant_limits', () => [200, { max_profile_size_bytes: 4194304, retention_period: '31d' }]);
  mock.routes.set('/api/v1/status/config', () => [200, 'limits:\n  retention_period: 31d\nserver:\n  http_listen_port: 4040\n']);
  mock.routes.set('/api/v1/status/config/diff', () => [200, 'limits:\n  retention_period: 31d\n']);
}

beforeEach(() => mock.reset());

describe('the status view', () => {
  it('shows storage, maintenance, clients, refused profiles, limits, and the configuration', async () => {
    told();
    for (const options of [{}, { colorScheme: 'dark', viewport: { width: 390, height: 800 } }]) {
      const { page, done } = await open('status', options);
      const part = (name) => page.getByRole('region', { name, exact: true });
      await part('Storage of this tenant').getByText('12 MiB').waitFor();
      await part('Storage of this tenant').getByText('3 MiB per day').waitFor();
      await part('Maintenance since the start').getByText('2 jobs are pending').waitFor();
      await part('Clients since the start').getByText('<b>alluvium/0.1.0</b>').waitFor();
      const rows = await part('Collectors, as of their last request').locator('.grid-body .grid-row').evaluateAll((all) => all.map((row) => [0, 3, 4, 6].map((at) => row.children[at].textContent)));
      assert.deepEqual(rows, [['<i>web-2</i>', '3 min behind', '1,200', '7'], ['web-1', 'up to date', '0', '0']]);
      await part('Refused profiles since the start').getByText('too_old').waitFor();
      await part('Largest series, last 24 hours').getByText('pod="a\\"b", service_name="checkout"').waitFor();
      await part('Limits of this tenant').getByText('max_profile_size_bytes').waitFor();
      const config = part('Configuration in force, without secrets');
      assert.equal(await config.locator('pre').textContent(), 'limits:\n  retention_period: 31d');
      await config.getByRole('button', { name: 'All settings' }).click();
      assert.match(await config.locator('pre').textContent(), /http_listen_port: 4040/);
      await accessible(page, `status, ${options.colorScheme ?? 'light'}`);
      await done();
    }
  });
});

describe('in print', () => {
  it('a view is light, names its content and its time, and does not depend on the size of the screen', async () => {
    const { page, done } = await open(profilePath({ from: 'now-1h' }), { colorScheme: 'dark' });
    await drawn(page);
    const corner = () => page.locator('.flame canvas').evaluate((canvas) => [...canvas.getContext('2d').getImageData(canvas.width - 2, canvas.height - 2, 1, 1).data].slice(0, 3));
    assert.ok((await corner()).every((value) => value < 64), 'dark on the screen');
    // The test sends the event and waits for no frame, because a browser draws no frame before the print.
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.ok((await corner()).every((value) => value > 230), 'light on paper');
    assert.match(await page.locator('#time-range .value').textContent(), /^\d+ \w+ \d\d:\d\d – (\d+ \w+ )?\d\d:\d\d$/);
    await page.emulateMedia({ media: 'print' });
    assert.match(await page.locator('.printed').textContent(), /Profile – Alluvium · \d+ \w+ \d\d:\d\d · http/);
    assert.ok(await page.locator('.printed').isVisible());
    for (const hidden of ['.rail', '.tools', '.bar .square']) assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
    const [flame, table] = await Promise.all(['.flame-part', '.table-part'].map((part) => page.locator(part).boundingBox()));
    assert.equal(flame.width, table.width);
    assert.ok(table.y >= flame.y + flame.height, 'the table is below');
    await page.emulateMedia({ media: 'screen' });
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    assert.ok((await corner()).every((value) => value < 64), 'dark again');
    await done();
  });
});
