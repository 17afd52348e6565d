// A single profile that is opened: its spans, and the same in speedscope, in Chromium against the stand-in, which answers for SQL, too.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, mock, open } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

beforeEach(() => mock.reset());

describe('speedscope', () => {
  const SERVICE = 'checkout';
  const file = {
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    shared: { frames: [{ name: 'main' }, { name: 'work' }] },
    profiles: [{ type: 'sampled', name: 'cpu', unit: 'nanoseconds', startValue: 0, endValue: 30, samples: [[0, 1], [0]], weights: [20, 10] }],
  };

  it('opens the very profile that a dot stands for, served from here, within the policy of its page', async () => {
    const time = Math.floor(Date.now() / 1000) * 1000 - 60_000;
    const row = { time: new Date(time).toISOString(), series: '-42', profile_id: '', total: '30', sample_count: 2, duration_ns: '15000000000', labels: { service_name: SERVICE, pod: 'a"b' } };
    const SPAN = '00f067aa0ba902b7';
    mock.routes.set('/api/v1/sql', (_, body) => {
      const text = body.toString();
      if (text.includes('span_id')) return [200, [{ span_id: SPAN, trace_id: `${SPAN}${SPAN}`, value: '20' }]];
      return [200, text.startsWith('SELECT count(*)') ? [{ count: 1, most: 30 }] : [row]];
    });
    const rendered = [];
    mock.routes.set('/pyroscope/render', (url) => {
      rendered.push(Object.fromEntries(url.searchParams));
      return [200, file];
    });
    const { page, context, done } = await open(`samples?${new URLSearchParams({ v: '1', service: SERVICE, type: CPU, from: 'now-1h', profile: `${time}~-42` })}`);
    await page.getByRole('link', { name: 'Open in speedscope' }).waitFor();
    await page.getByRole('button', { name: /^00f067aa / }).click();
    await page.waitForFunction(() => location.search.includes('span='));
    assert.deepEqual(mock.asked('SelectMergeStacktraces').at(-1).spanSelector, [SPAN]);
    await accessible(page, 'an opened profile with spans');
    const [other] = await Promise.all([context.waitForEvent('page'), page.getByRole('link', { name: 'Open in speedscope' }).click()]);
    const refused = [];
    other.on('console', (message) => message.type() === 'error' && refused.push(message.text()));
    await other.waitForFunction(() => document.querySelectorAll('canvas').length > 0 && /checkout/.test(document.title));
    assert.deepEqual(rendered, [{ query: `${CPU}{service_name="${SERVICE}", pod="a\\"b"}`, from: String(time), until: String(time + 1), format: 'pprof' }]);
    // Its styles are those that it means to have.
    assert.ok(await other.evaluate(() => [...document.styleSheets].some((sheet) => sheet.ownerNode.dataset.aphrodite !== undefined && sheet.cssRules.length > 10)));
    assert.deepEqual(refused.filter((text) => /style/.test(text)), []);
    await done();
  });
});
