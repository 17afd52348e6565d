// The styles of dots, an opened profile, its spans, and speedscope, in Chromium against the stand-in, which also answers
// SQL.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, mock, open } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';

beforeEach(() => mock.reset());

/** Answers the queries of the list with a number of profiles of two series. */
function profiles(count, cells = []) {
  const time = Math.floor(Date.now() / 1000) * 1000 - 60_000;
  const rows = Array.from({ length: count }, (_, at) => ({ time: new Date(time - at * 15_000).toISOString(), series: String(at % 2), profile_id: '', total: String(1e9 * (at + 1)), sample_count: 2, duration_ns: '15000000000', labels: { service_name: 'checkout', pod: `pod-${at % 2}` } }));
  mock.routes.set('/api/v1/sql', (_, body) => {
    const text = body.toString();
    if (text.startsWith('SELECT count(*)')) return [200, [{ count: cells.length > 0 ? 5000 : count, most: 1e9 * count }]];
    return [200, text.includes('time_bucket') ? cells : rows];
  });
}

describe('dots', () => {
  const path = (more = {}) => `samples?${new URLSearchParams({ v: '1', service: 'checkout', type: CPU, from: 'now-1h', ...more })}`;

  /** Returns the number of coloured pixels of the chart. */
  const inked = (page) => page.locator('.dot-chart canvas').evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(90, 0, canvas.width - 110, canvas.height - 24);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 24) count += 1;
    return count;
  });

  it('are coloured by series, sized by value or coloured by value, with a switch that is in the link', async () => {
    profiles(40);
    for (const options of [{}, { colorScheme: 'dark', viewport: { width: 390, height: 844 } }]) {
      const { page, param, done } = await open(path(), options);
      const legend = page.getByRole('group', { name: 'Legend' });
      await legend.getByText('pod=pod-1').waitFor();
      const plain = await inked(page);
      await accessible(page, `dots by series, ${options.colorScheme ?? 'light'}`);
      await page.getByRole('radio', { name: 'Dots coloured by their series' }).focus();
      await page.keyboard.press('ArrowRight');
      await legend.getByText('the area of a dot shows its value').waitFor();
      assert.equal(param('dots'), 'size');
      assert.equal(await legend.locator('circle').count(), 3);
      await page.waitForTimeout(100);
      assert.ok((await inked(page)) > 2 * plain, 'large values have large dots');
      await accessible(page, `dots by size, ${options.colorScheme ?? 'light'}`);
      await page.keyboard.press('ArrowRight');
      await legend.getByText('a stronger colour means a larger value').waitFor();
      assert.match(await legend.textContent(), /^0 s.*40 s/);
      await accessible(page, `dots by value, ${options.colorScheme ?? 'light'}`);
      await page.reload();
      await page.locator('.dot-chart canvas[data-style=value]').waitFor();
      await done();
    }
  });

  it('open by a click on the rim of a large one, and from the table', async () => {
    profiles(40);
    const { page, param, done } = await open(path({ dots: 'size' }));
    await page.locator('.dot-chart canvas[data-dots="40"]').waitFor();
    const box = await page.locator('.dot-chart canvas').boundingBox();
    // The oldest profile has the largest value, and is 11 minutes before the end of the hour.
    const x = box.x + 72 + (box.width - 88) * (1 - (60 + 39 * 15) / 3600);
    await page.mouse.click(x, box.y + 14 + 10);
    await page.waitForFunction(() => location.search.includes('profile='));
    assert.equal(param('dots'), 'size');
    await page.keyboard.press('Escape');
    await page.getByRole('grid', { name: 'Profiles' }).locator('.grid-body .grid-row').first().click();
    await page.waitForFunction(() => location.search.includes('profile='));
    await done();
  });

  it('become a heat map if there are many, without the switch', async () => {
    const time = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 600_000).toISOString();
    profiles(0, [{ time, row: 3, count: 90 }, { time, row: 4, count: 4910 }]);
    const { page, done } = await open(path({ dots: 'size' }));
    await page.locator('.dot-chart canvas[data-cells="2"]').waitFor();
    await page.getByText('more than 3,000 profiles are shown as a heat map').waitFor();
    assert.match(await page.getByRole('group', { name: 'Legend' }).textContent(), /1 .*4,910/);
    assert.equal(await page.getByRole('radiogroup', { name: 'Dot style' }).count(), 0);
    await accessible(page, 'a heat map');
    await done();
  });
});

describe('speedscope', () => {
  const SERVICE = 'checkout';
  const file = {
    $schema: 'https://www.speedscope.app/file-format-schema.json',
    shared: { frames: [{ name: 'main' }, { name: 'work' }] },
    profiles: [{ type: 'sampled', name: 'cpu', unit: 'nanoseconds', startValue: 0, endValue: 30, samples: [[0, 1], [0]], weights: [20, 10] }],
  };

  it('opens exactly the profile of a dot, served from here, within the policy of its page', async () => {
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
    // The styles of speedscope are applied.
    assert.ok(await other.evaluate(() => [...document.styleSheets].some((sheet) => sheet.ownerNode.dataset.aphrodite !== undefined && sheet.cssRules.length > 10)));
    assert.deepEqual(refused.filter((text) => /style/.test(text)), []);
    await done();
  });
});
