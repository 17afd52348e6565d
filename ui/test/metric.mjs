// A metric above the chart of a profile, in Chromium against the stand-in, which also answers for Prometheus.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, drawn, imageAsIs, mock, open, profilePath } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const QUERY = 'rate(http_requests_total{job="a&b"}[1m])';
const path = (more = {}) => profilePath({ service: 'checkout', type: CPU, from: 'now-30m', ...more });

let asked;

beforeEach(() => {
  mock.reset();
  asked = [];
  mock.routes.set('/capabilities.v1.FeatureFlagsService/GetFeatureFlags', () => [200, { featureFlags: [{ name: 'alluviumPrometheus', enabled: true }] }]);
  mock.routes.set('/api/v1/prometheus/query_range', (url) => {
    const { query, ...times } = Object.fromEntries(url.searchParams);
    const [start, end, step] = [times.start, times.end, times.step].map(Number);
    asked.push({ query, start, end, step });
    if (query === 'rate(') return [400, { code: 'invalid_argument', message: 'Prometheus rejected the query: parse error: unclosed left parenthesis' }];
    const count = Math.floor((end - start) / step) + 1;
    // One peak, at two thirds of the range.
    const values = Array.from({ length: count }, (_, index) => [start + index * step, String(index === Math.floor(count * 2 / 3) ? 312 : 40)]);
    return [200, { status: 'success', data: { resultType: 'matrix', result: [{ metric: { __name__: 'requests', job: '<img src=x onerror=alert(1)>' }, values }, { metric: { job: 'b' }, values: [[end, '1']] }] } }];
  });
});

describe('a metric beside a profile', () => {
  it('is shown over the same time, is in the link, and its peak opens the profile of that time', async () => {
    const { page, param, done } = await open(path());
    await drawn(page);
    await page.getByRole('button', { name: 'Metric', exact: true }).click();
    await page.getByRole('textbox', { name: 'PromQL query' }).fill(QUERY);
    await page.keyboard.press('Enter');
    await page.locator('#chart-metric canvas').waitFor();
    assert.equal(param('metric'), QUERY);
    assert.equal(asked.at(-1).query, QUERY);
    assert.equal(asked.at(-1).end - asked.at(-1).start, 1800);
    const [above, below] = await Promise.all(['#chart-metric', '#chart'].map((chart) => page.locator(`${chart} .u-over`).boundingBox()));
    assert.deepEqual([above.x, above.width], [below.x, below.width], 'both charts have the same time axis');
    await accessible(page, 'a metric, light');
    await imageAsIs(page, 'metric', { width: 1280, height: 560 });
    const peak = (asked.at(-1).start + Math.floor((1800 / asked.at(-1).step + 1) * 2 / 3) * asked.at(-1).step) * 1000;
    await page.getByRole('button', { name: /^Profile at the peak: 312/ }).click();
    await page.waitForFunction(() => location.search.includes('until='));
    assert.deepEqual([Number(param('from')), Number(param('until'))], [peak - 30_000, peak + 30_000]);
    await drawn(page);
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes('until='));
    await done();
  });

  it('supports clicks, drags and keys', async () => {
    const { page, param, done } = await open(path({ metric: QUERY }));
    const over = await page.locator('#chart-metric .u-over').boundingBox();
    await page.mouse.click(over.x + over.width / 2, over.y + 40);
    await page.waitForFunction(() => location.search.includes('until='));
    assert.equal(Number(param('until')) - Number(param('from')), 60_000);
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes('until='));
    await page.mouse.move(over.x + over.width * 0.25, over.y + 40);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.75, over.y + 44, { steps: 6 });
    await page.mouse.up();
    await page.waitForFunction(() => location.search.includes('until='));
    const length = Number(param('until')) - Number(param('from'));
    assert.ok(length > 800_000 && length < 1_000_000, `${length}`);
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes('until='));
    await page.locator('#chart-metric').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search.includes('until='));
    assert.equal(Number(param('until')) - Number(param('from')), 60_000);
    await done();
  });

  it('shows the error of Prometheus for a query, and can be removed', async () => {
    const { page, param, done } = await open(path({ metric: 'rate(' }), { allowErrors: true });
    await page.getByText('unclosed left parenthesis').waitFor();
    await drawn(page);
    await page.getByRole('button', { name: 'Remove the metric' }).click();
    await page.getByRole('region', { name: 'Metric' }).waitFor({ state: 'detached' });
    assert.equal(param('metric'), null);
    await done();
  });

  it('is not offered by a server without a Prometheus', async () => {
    mock.routes.set('/capabilities.v1.FeatureFlagsService/GetFeatureFlags', () => [200, { featureFlags: [] }]);
    const { page, done } = await open(path({ metric: QUERY }));
    await drawn(page);
    assert.equal(await page.getByRole('region', { name: 'Metric' }).count(), 0);
    assert.deepEqual(asked, []);
    await done();
  });
});
