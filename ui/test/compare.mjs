// The Compare view in Chromium, against the stand-in, whose service `payments` has a function that a release added.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { beforeEach, describe, it } from 'node:test';
import { accessible, api, drawn, mock, open } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const BROUGHT = 'github.com/acme/shop/payments.(*Tax).roundEachCent';
const HOUR = 3_600_000;
const compare = (more = {}) => `compare?${new URLSearchParams({ v: '1', service: 'payments', type: CPU, ...more })}`;
const versions = (more = {}) => compare({ with: 'same', q: 'version="1.43.0"', baseq: 'version="1.42.1"', ...more });

beforeEach(() => mock.reset());

const firstRow = (page) => page.getByRole('grid', { name: 'Changed functions' }).locator('.grid-body .grid-row').first();
const findings = (page) => page.locator('.findings');

/** Drags over a chart, between two positions as shares of its width. */
async function drag(page, chart, from, to) {
  const over = await page.locator(`#chart-${chart} .u-over`).boundingBox();
  await page.mouse.move(over.x + over.width * from, over.y + 40);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * to, over.y + 44, { steps: 6 });
  await page.mouse.up();
}

describe('the compare view', () => {
  it('finds the regression of a release in three clicks from the front page', async () => {
    const { page, param, done } = await open();
    let clicks = 0;
    const click = async (what) => {
      clicks += 1;
      await what.click();
    };
    await click(page.getByRole('link', { name: 'payments', exact: true }));
    await drawn(page);
    await click(page.getByRole('link', { name: 'Compare' }));
    await click(page.getByRole('button', { name: /^version 1\.42\.1 → 1\.43\.0/ }));
    await findings(page).getByRole('button', { name: /roundEachCent \+\d/ }).waitFor();
    assert.equal(clicks, 3);
    assert.equal(await firstRow(page).locator('.name-cell').getAttribute('title'), BROUGHT);
    assert.equal(await firstRow(page).locator('.sign').textContent(), '+');
    assert.deepEqual([param('with'), param('q'), param('baseq')], ['same', 'version="1.43.0"', 'version="1.42.1"']);
    assert.equal(await findings(page).getByRole('button').count(), 1, 'changes that noise explains are not listed');
    await accessible(page, 'compare, light');
    await done();
  });

  it('does not report noise as a change', async () => {
    const { page, done } = await open(compare());
    await drawn(page);
    await findings(page).getByText('No function\'s own share rose by more than its normal variation').waitFor();
    await done();
  });

  it('shows exactly the totals and shares of Diff', async () => {
    const until = Math.floor(Date.now() / 60_000) * 60_000;
    const [from, middle] = [until - HOUR, until - HOUR / 2];
    const { page, done } = await open(compare({ q: 'version="1.43.0"', from: String(from), until: String(until), baseq: 'version="1.42.1"' }));
    await drawn(page);
    const side = (version, start, end) => ({ profileTypeID: CPU, labelSelector: `{service_name="payments", version="${version}"}`, start: String(start), end: String(end), maxNodes: '16384' });
    const { flamegraph } = await api('Diff', { left: side('1.42.1', from, middle), right: side('1.43.0', middle, until) });
    const nodes = flamegraph.levels.flatMap(({ values }) => Array.from({ length: values.length / 7 }, (_, at) => values.slice(at * 7, at * 7 + 7).map(Number)));
    const of = (name, at) => nodes.filter((node) => flamegraph.names[node[6]] === name).reduce((sum, node) => sum + node[at], 0);
    const rows = page.getByRole('grid', { name: 'Changed functions' });
    for (const name of [BROUGHT, 'runtime.memmove']) {
      await page.getByRole('searchbox', { name: 'Filter functions' }).fill(name);
      await page.waitForFunction((wanted) => document.querySelector('.diff-grid .grid-body .name-cell')?.title === wanted, name);
      const cells = await rows.locator('.grid-body .grid-row').first().getByRole('gridcell').allTextContents();
      const [before, after] = [of(name, 2) / Number(flamegraph.leftTicks), of(name, 5) / Number(flamegraph.rightTicks)];
      const percent = (share) => `${share * 100 >= 10 ? (share * 100).toFixed(1) : (share * 100).toFixed(2)}%`;
      const points = (after - before) * 100;
      assert.deepEqual(cells.slice(1, 4), [percent(before), percent(after), `${points < 0 ? '−' : '+'}${Math.abs(points).toFixed(2)}`], name);
      const rate = (of(name, 5) - of(name, 2)) / (HOUR / 2 / 1000) / 1e9;
      assert.equal(cells[4].startsWith(rate < 0 ? '−' : '+'), true, `${cells[4]} has the sign of ${rate}`);
    }
    await done();
  });

  it('uses ranges that are dragged in each chart, by pointer and by keys', async () => {
    const { page, param, done } = await open(compare({ from: 'now-1h' }));
    await drawn(page);
    await drag(page, 'comparison', 0.6, 0.8);
    await page.waitForFunction(() => location.search.includes('comparison='));
    const [start, end] = param('comparison').split('~').map(Number);
    assert.ok(end - start > HOUR * 0.17 && end - start < HOUR * 0.23, param('comparison'));
    assert.equal(param('with'), 'range');
    const before = param('comparison');
    const half = param('baseline');
    await drag(page, 'baseline', 0.1, 0.3);
    await page.waitForFunction((old) => new URL(location.href).searchParams.get('baseline') !== old, half);
    assert.equal(param('comparison'), before);
    await page.locator('#chart-baseline').focus();
    await page.keyboard.press('End');
    for (let step = 0; step < 10; step += 1) await page.keyboard.press('Shift+ArrowLeft');
    const dragged = param('baseline');
    await page.keyboard.press('Enter');
    await page.waitForFunction((old) => new URL(location.href).searchParams.get('baseline') !== old, dragged);
    await drawn(page);
    await page.reload();
    await drawn(page);
    assert.equal(param('comparison'), before, 'a link contains the whole state');
    await done();
  });

  it('opens from a range that is dragged in the profile view, with the time before it', async () => {
    const { page, param, done } = await open(`profile?v=1&service=payments&type=${CPU}&from=now-1h`);
    await drawn(page);
    const over = await page.locator('.chart .u-over').boundingBox();
    await page.mouse.move(over.x + over.width * 0.5, over.y + 40);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.7, over.y + 44, { steps: 6 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Compare with the time before' }).click();
    await page.locator('.sides').waitFor();
    await drawn(page);
    assert.equal(param('with'), 'before');
    const [start, end] = param('comparison').split('~').map(Number);
    const [{ left, right }] = mock.asked('Diff').slice(-1);
    assert.deepEqual([Number(right.start), Number(right.end)], [start, end]);
    assert.deepEqual([Number(left.start), Number(left.end)], [start - (end - start), start]);
    await done();
  });

  it('compares two values of a label, and swaps the sides', async () => {
    const { page, param, done } = await open(compare());
    await drawn(page);
    await page.getByRole('button', { name: 'Two label values' }).click();
    for (const value of ['namespace', 'staging', 'prod']) {
      await page.getByRole('option', { name: value, exact: true }).waitFor();
      await page.getByRole('combobox').fill(value);
      await page.keyboard.press('Enter');
    }
    await page.waitForFunction(() => location.search.includes('baseq='));
    assert.deepEqual([param('q'), param('baseq')], ['namespace="prod"', 'namespace="staging"']);
    await drawn(page);
    await page.getByRole('button', { name: 'Swap the sides' }).click();
    assert.deepEqual([param('q'), param('baseq')], ['namespace="staging"', 'namespace="prod"']);
    await done();
  });

  it('compares with another service, by value per second, in colours for colour-blind readers', async () => {
    const { page, param, done } = await open(compare());
    await drawn(page);
    await page.getByRole('button', { name: /^of / }).click();
    await page.getByRole('combobox', { name: 'of' }).fill('checkout');
    await page.keyboard.press('Enter');
    assert.equal(param('baseservice'), 'checkout');
    await drawn(page);
    await page.getByRole('radio', { name: 'Compare by value per second' }).click();
    assert.equal(param('by'), 'rate');
    const colours = () => page.locator('.diff-legend .scale i').evaluateAll((all) => all.map((one) => one.style.background));
    const before = await colours();
    await page.getByRole('radio', { name: /for colour-blind readers/ }).click();
    assert.notDeepEqual(await colours(), before);
    await page.reload();
    await drawn(page);
    assert.equal(await page.getByRole('radio', { name: /for colour-blind readers/ }).getAttribute('aria-checked'), 'true', 'the palette is remembered');
    await done();
  });

  it('shows both sides of a frame, and marks new frames', async () => {
    const { page, done } = await open(versions());
    await drawn(page);
    await page.locator('#search').fill('roundEachCent');
    await page.waitForFunction(() => /0\.00% → \d/.test(document.querySelector('.tools .match')?.textContent ?? ''));
    const box = await page.locator('.flame canvas').boundingBox();
    // The position of the new frame depends on the shares of the frames before it, so the test searches for it.
    for (let x = 0.01; x < 0.3 && !(await page.locator('.tooltip').getByText('New: not in the baseline').count()); x += 0.02) await page.mouse.move(box.x + box.width * x, box.y + 30);
    assert.match(await page.locator('.tooltip').textContent(), /roundEachCent.*Total.*\+\d/s);
    await done();
  });

  it('is downloaded as an SVG in which names are text', async () => {
    const { page, done } = await open(versions({ with: 'same' }));
    await drawn(page);
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: /SVG/ }).click()]);
    assert.match(download.suggestedFilename(), /^payments\.process_cpu\.cpu\..*\.diff\.svg$/);
    const text = await readFile(await download.path(), 'utf8');
    assert.match(text, /^<svg [^]*\+ payments[^]*<\/svg>\n$/);
    assert.doesNotMatch(text, /<img/);
    const parsed = await page.evaluate((xml) => {
      const document = new DOMParser().parseFromString(xml, 'image/svg+xml');
      return { error: document.querySelector('parsererror')?.textContent ?? '', titles: [...document.querySelectorAll('title')].map((title) => title.textContent) };
    }, text);
    assert.equal(parsed.error, '');
    assert.ok(parsed.titles.some((title) => title.includes('<img src=x onerror=alert(1)>')));
    await done();
  });

  it('opens from a link below a path prefix, and its links stay below it', async () => {
    const { page, done } = await open(`profile/${versions()}`);
    await drawn(page);
    await page.getByRole('link', { name: 'Labels' }).click();
    await page.locator('.card').first().waitFor();
    assert.equal(new URL(page.url()).pathname, '/profile/labels');
    await done();
  });

  it('tells which side has no profiles, and offers the nearest range with some', async () => {
    const { page, param, done } = await open(compare({ with: 'day' }));
    await page.getByRole('heading', { name: 'No profiles in the range of the baseline' }).waitFor();
    await accessible(page, 'compare, nothing in the baseline');
    await page.getByRole('button', { name: /^Use / }).click();
    await drawn(page);
    assert.equal(param('with'), 'range');
    await done();
  });

  it('shows the error of a failed request, and no outdated difference', async () => {
    mock.fails.add('Diff').add('SelectMergeStacktraces');
    const { page, done } = await open(compare(), { allowErrors: true });
    await page.getByText('Cannot load the difference').waitFor();
    assert.equal(await page.locator('.flame canvas').count(), 0);
    mock.fails.delete('Diff');
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await drawn(page);
    await findings(page).getByText(/^Cannot tell changes from noise/).waitFor();
    await done();
  });

  it('is readable in the dark and at 390 px', async () => {
    const dark = await open(versions(), { colorScheme: 'dark' });
    await drawn(dark.page);
    await findings(dark.page).getByRole('button').first().waitFor();
    await accessible(dark.page, 'compare, dark');
    await dark.done();
    const { page, done } = await open(versions(), { viewport: { width: 390, height: 844 } });
    await drawn(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), 'nothing is wider than the screen');
    await findings(page).getByRole('button').first().waitFor();
    await accessible(page, 'compare, narrow');
    await done();
  });
});
