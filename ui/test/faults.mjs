// The behaviour of the page if the server is slow, fails, or folds a frame that a link names; and refreshes that keep the user's state.
// These tests run only against the stand-in, which can simulate such servers.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { beforeEach, describe, it } from 'node:test';
import { accessible, clickFrame, drawn, mock, open, profilePath } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const MEMORY = 'memory:inuse_space:bytes:space:bytes';
const HOUR = 3_600_000;
const checkout = (more = {}) => profilePath({ service: 'checkout', type: CPU, ...more });

beforeEach(() => mock.reset());

/** Presses the refresh key and waits for the responses. */
async function refresh(page) {
  const before = await page.evaluate(() => performance.getEntriesByName('flame:first-draw').length);
  await page.keyboard.press('r');
  await page.waitForFunction((count) => performance.getEntriesByName('flame:first-draw').length > count, before);
  await page.waitForFunction(() => document.querySelector('.progress')?.dataset.on === 'false');
}

/** Selects a preset of the range. */
async function range(page, name) {
  await page.locator('#time-range').click();
  await page.getByRole('button', { name }).click();
}

describe('a slow server', () => {
  it('leaves no view empty while it does not respond about labels', async () => {
    const release = mock.hold('LabelNames');
    const { page, done } = await open(checkout());
    await drawn(page);
    await page.locator('.chart canvas').waitFor();
    await page.getByRole('button', { name: 'Split by' }).click();
    release();
    await page.getByRole('option', { name: 'pod' }).waitFor();
    await done();
  });

  it('leaves the view unchanged while it does not respond about the values of a filter', async () => {
    const { page, done } = await open(checkout());
    await drawn(page);
    const release = mock.hold('LabelValues');
    await page.locator('#add-filter').click();
    await page.getByRole('option', { name: 'pod' }).click();
    await page.getByRole('combobox', { name: 'Value' }).waitFor();
    assert.ok(await page.locator('.flame canvas').isVisible(), 'the flame graph stays visible');
    release();
    await page.getByRole('option', { name: 'checkout' }).first().waitFor();
    await done();
  });

  it('keeps the old flame graph until the new one arrives', async () => {
    const { page, done } = await open(checkout());
    const nodes = await drawn(page);
    const release = mock.hold('SelectMergeStacktraces');
    await range(page, 'Last 3 hours');
    await page.locator('.pane.stale').waitFor();
    assert.equal(Number(await page.locator('.flame canvas').getAttribute('data-nodes')), nodes);
    await accessible(page, 'while a new response is loading');
    release();
    await page.locator('.pane.stale').waitFor({ state: 'detached' });
    await done();
  });
});

describe('a failing server', () => {
  it('never draws old lines over a new range', async () => {
    const { page, done } = await open(checkout(), { allowErrors: true });
    await drawn(page);
    mock.fails.add('SelectSeries');
    await range(page, 'Last 12 hours');
    const alert = page.locator('.panel [role=alert]');
    await alert.waitFor();
    assert.match(await alert.textContent(), /Cannot load the chart: the store is replaying.*The chart shows .* – /s);
    // The newest old value stays at the right edge. Over the new range, it would be near the left edge.
    const first = await page.locator('.chart-host').evaluate((host) => {
      const canvas = host.querySelector('canvas');
      const { width, height } = canvas;
      const { data } = canvas.getContext('2d').getImageData(0, 0, width, Math.floor(height * 0.8));
      for (let x = 100; x < width; x += 1) for (let y = 0; y < Math.floor(height * 0.8); y += 1) {
        const at = (y * width + x) * 4;
        if (data[at + 3] > 200 && data[at + 2] - data[at] > 60) return x / width;
      }
      return 1;
    });
    assert.ok(first < 0.2, `the lines begin at ${first} of the width`);
    await accessible(page, 'a chart that cannot be loaded');
    mock.fails.clear();
    await alert.getByRole('button', { name: 'Try again' }).click();
    await alert.waitFor({ state: 'detached' });
    await done();
  });

  it('never shows sums over time of a gauge', async () => {
    const { page, done } = await open(profilePath({ service: 'checkout', type: MEMORY }), { allowErrors: true });
    await drawn(page);
    const total = page.locator('.crumbs .facts b').first();
    await page.waitForFunction(() => /GiB|MiB/.test(document.querySelector('.crumbs .facts b')?.textContent ?? ''));
    mock.fails.add('SelectSeries');
    await range(page, 'Last 3 hours');
    await page.getByText('Only shares are shown').waitFor();
    assert.equal(await total.textContent(), '–');
    assert.match(await page.locator('.grid-body .grid-row').first().textContent(), /–.*%/);
    mock.fails.clear();
    await page.getByText('Only shares are shown').locator('..').getByRole('button', { name: 'Try again' }).click();
    await page.waitForFunction(() => /GiB|MiB/.test(document.querySelector('.crumbs .facts b')?.textContent ?? ''));
    await done();
  });

  it('shows its error in place of labels', async () => {
    mock.fails.add('LabelNames');
    const { page, done } = await open(checkout(), { allowErrors: true });
    await drawn(page);
    await page.getByRole('button', { name: 'Split by' }).click();
    await page.getByRole('combobox', { name: 'Split by' }).fill('pod');
    await page.getByText('Cannot load the choices: the store is replaying').waitFor();
    await done();
  });
});

describe('a refresh', () => {
  const small = { viewport: { width: 1280, height: 560 } };

  it('keeps the scroll position and the tooltip', async () => {
    const { page, done } = await open(checkout(), small);
    await drawn(page);
    await page.locator('.flame').evaluate((flame) => { flame.scrollTop = 60; });
    await page.waitForTimeout(100);
    const box = await page.locator('.flame canvas').boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 30);
    await page.locator('.tooltip .name').waitFor();
    const name = await page.locator('.tooltip .name').textContent();
    await refresh(page);
    assert.equal(await page.locator('.tooltip .name').textContent(), name);
    assert.equal(await page.locator('.flame').evaluate((flame) => flame.scrollTop), 60);
    await done();
  });

  it('keeps the keyboard cursor and the rows of the table', async () => {
    const { page, done } = await open(checkout(), small);
    await drawn(page);
    await page.locator('.flame').focus();
    for (let step = 0; step < 3; step += 1) await page.keyboard.press('ArrowDown');
    const name = await page.locator('.tooltip .name').textContent();
    await refresh(page);
    assert.equal(await page.locator('.tooltip .name').textContent(), name);
    const row = page.locator('.grid-body .grid-row').nth(2);
    await row.focus();
    await row.evaluate((element) => { element.dataset.before = 'yes'; });
    await refresh(page);
    assert.equal(await page.evaluate(() => document.activeElement?.dataset.before), 'yes');
    await done();
  });

  it('keeps a range during its selection, and a selected one', async () => {
    const { page, done } = await open(checkout());
    await drawn(page);
    const over = await page.locator('.chart .u-over').boundingBox();
    const at = (share) => over.x + over.width * share;
    await page.mouse.move(at(0.4), over.y + 40);
    await page.mouse.down();
    await page.mouse.move(at(0.6), over.y + 44, { steps: 4 });
    await refresh(page);
    await page.mouse.move(at(0.8), over.y + 44, { steps: 4 });
    await page.mouse.up();
    const bar = page.getByRole('group', { name: 'Selected range' });
    await bar.waitFor();
    const text = await bar.locator('.span').textContent();
    assert.match(text, / 2[34](\.\d)? min$/, `0.4 of an hour is selected: ${text}`);
    await refresh(page);
    assert.equal(await bar.locator('.span').textContent(), text);
    await done();
  });

  it('keeps the current match of the search', async () => {
    const { page, done } = await open(checkout({ search: 'mallocgc' }));
    await drawn(page);
    const match = page.locator('.tools .match');
    const count = Number(/(\d+) matches/.exec(await match.textContent())[1]);
    assert.ok(count >= 3, `${count} matches`);
    const place = async (wanted) => page.waitForFunction((text) => document.querySelector('.tools .match')?.textContent.includes(text), ` ${wanted} of ${count} `);
    await page.keyboard.press('n');
    await place(1);
    await page.keyboard.press('n');
    await place(2);
    await refresh(page);
    await place(2);
    await page.keyboard.press('N');
    await place(1);
    await page.keyboard.press('N');
    await place(count);
    await page.keyboard.press('n');
    await place(1);
    await done();
  });
});

describe('a zoomed frame', () => {
  /** Returns the path of one of the smallest frames. */
  async function small() {
    const { page, param, done } = await open(checkout({ from: String(Date.now() - HOUR), until: String(Date.now()), sort: 'total' }));
    await drawn(page);
    await page.locator('.grid-body .grid-row').first().focus();
    await page.keyboard.press('z');
    await page.waitForFunction(() => location.search.includes('focus='));
    const focus = param('focus');
    const title = await page.locator('.crumbs .here').getAttribute('title');
    await done();
    return { focus, title };
  }

  it('is found by a link although the first response has folded it', async () => {
    const { focus, title } = await small();
    mock.nodes = 30;
    const from = mock.calls.length;
    const { page, done } = await open(checkout({ focus }));
    await drawn(page);
    await page.waitForFunction((name) => document.querySelector('.crumbs .here')?.title === name, title);
    assert.deepEqual(mock.asked('SelectMergeStacktraces', from).map(({ maxNodes }) => maxNodes), ['16384', '262144']);
    await done();
  });

  it('is reported as missing if the profile does not have it', async () => {
    mock.nodes = 30;
    const { page, param, done } = await open(checkout({ focus: 'nosuch' }));
    await drawn(page);
    await page.getByText('The zoomed frame is not in this range').waitFor();
    await accessible(page, 'a missing frame');
    await page.getByRole('button', { name: 'Reset zoom' }).click();
    await page.getByText('The zoomed frame is not in this range').waitFor({ state: 'detached' });
    assert.equal(param('focus'), null);
    await done();
  });

  it('loads its subtree separately, not the whole graph', async () => {
    mock.nodes = 30;
    const { page, done } = await open(checkout());
    const few = await drawn(page);
    const from = mock.calls.length;
    await clickFrame(page, 3);
    await page.waitForFunction((count) => Number(document.querySelector('.flame canvas')?.dataset.nodes) > count, few);
    const asked = mock.asked('SelectMergeStacktraces', from);
    assert.equal(asked.length, 1);
    assert.equal(asked[0].maxNodes, '16384');
    assert.equal(asked[0].stackTraceSelector.callSite.length, 3);
    // Shares still refer to the whole profile.
    assert.match(await page.locator('.crumbs .facts').textContent(), /[1-9]\d(\.\d)?% of total/);
    await done();
  });
});

describe('a download', () => {
  const save = async (page, name) => {
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name }).click()]);
    return readFile(await download.path());
  };

  it('contains the whole graph as PNG, not only the visible part', async () => {
    const { page, done } = await open(checkout(), { viewport: { width: 1280, height: 480 } });
    await drawn(page);
    const levels = await page.locator('.flame').evaluate((flame) => Math.round(flame.scrollHeight / 20));
    const png = await save(page, /PNG/);
    assert.equal(png.readUInt32BE(20), levels * 20);
    assert.ok(levels * 20 > (await page.locator('.flame').boundingBox()).height);
    await done();
  });

  it('contains every stack as collapsed stacks, including those that are folded on the screen', async () => {
    mock.nodes = 30;
    const { page, done } = await open(checkout());
    assert.ok((await drawn(page)) < 80);
    const lines = (await save(page, /Collapsed/)).toString().trimEnd().split('\n');
    assert.ok(lines.length > 300, `${lines.length} stacks`);
    assert.ok(lines.every((line) => / \d+$/.test(line)));
    assert.ok(lines.some((line) => line.startsWith('net/http.(*conn).serve;')));
    await done();
  });
});

describe('a card of a service', () => {
  it('leads to its service without the filters of another', async () => {
    const { page, param, done } = await open(checkout({ q: 'namespace="prod"', from: 'now-3h' }));
    await drawn(page);
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Services' }).click();
    await page.locator('.card').filter({ hasText: 'catalog' }).getByRole('link', { name: 'catalog' }).first().click();
    await drawn(page);
    assert.deepEqual([param('service'), param('q'), param('from')], ['catalog', null, 'now-3h']);
    await done();
  });

  it('leads from each of its values to the profiles of that type', async () => {
    const { page, param, done } = await open('');
    await page.locator('.card').filter({ hasText: 'catalog' }).getByRole('link', { name: /^Memory/ }).click();
    await drawn(page);
    assert.deepEqual([param('service'), param('type')], ['catalog', MEMORY]);
    await done();
  });
});

describe('the front page of a new server', () => {
  it('shows the time since the first profile, names it, and refreshes by itself', async () => {
    mock.mode = 'young';
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await page.getByText(/^Profiling for 4\d s$/).first().waitFor();
    const before = await page.evaluate(() => performance.getEntriesByName('flame:first-draw').length);
    await page.waitForFunction((count) => performance.getEntriesByName('flame:first-draw').length > count, before, { timeout: 20_000 });
    const asked = mock.asked('SelectMergeStacktraces').at(-1);
    assert.ok(Number(asked.end) - Number(asked.start) < 120_000);
    assert.equal(param('from'), null);
    await done();
  });
});
