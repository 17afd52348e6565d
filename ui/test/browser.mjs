// The page in a real Chromium. BASE_URL names a server with some data, which may be any Pyroscope-compatible server behind our
// page. Without it, the tests start the stand-in of mock.mjs, and also run the tests that need its modes.
// UPDATE_IMAGES=1 writes the screenshots of docs/images, for IMAGE_SERVICE between IMAGE_FROM and IMAGE_UNTIL (`now-30m`, or
// milliseconds) if these are set.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { beforeEach, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { hovers, picture } from './measure.mjs';
import { accessible, api, base, clickFrame, drawn, image, itOnMock, lastHour, mock, open, profilePath, services, typesOf } from './page.mjs';

describe('the services view', () => {
  it('shows a card for each service, filters, sorts, and leads to the profile', async (t) => {
    if (services.length < 2) return t.skip('one service only');
    const { page, param, done } = await open();
    await page.locator('.card').first().waitFor();
    assert.equal(await page.locator('.card').count(), services.length);
    await accessible(page, 'services, light');
    await image(page, 'services', { width: 1280, height: 320 });
    await page.getByRole('button', { name: 'Name', exact: true }).click();
    assert.deepEqual(await page.locator('.card h2').allTextContents(), [...services].sort((a, b) => a.localeCompare(b)));
    await page.keyboard.press('/');
    await page.keyboard.type(services[1]);
    await page.waitForFunction((wanted) => document.querySelector('.card h2')?.textContent === wanted, services[1]);
    await page.locator('.card h2 a').first().click();
    await drawn(page);
    assert.equal(param('service'), services[1]);
    assert.equal(param('filter'), null);
    await page.goBack();
    await page.locator('.card').first().waitFor();
    await done();
  });

  itOnMock('opens the profile at once if there is only one service', async () => {
    mock.mode = 'one';
    try {
      const { page, param, done } = await open();
      await drawn(page);
      assert.match(page.url(), /\/profile\?/);
      assert.ok(param('service'));
      await done();
    } finally {
      mock.mode = 'normal';
    }
  });
});

describe('the profile view', () => {
  it('picks a service and a profile type', async () => {
    const { page, param, done } = await open('profile');
    await drawn(page);
    assert.ok(services.includes(param('service')), 'a service is selected and in the link');
    assert.ok(param('type'), 'a type is selected and in the link');
    const wanted = services[services.length - 1];
    await page.locator('#pick-service').click();
    await page.getByRole('combobox', { name: 'Service' }).fill(wanted);
    await page.getByRole('option').filter({ hasText: wanted }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForFunction((name) => new URL(location.href).searchParams.get('service') === name, wanted);
    await drawn(page);
    // The last type that has other values than zero, and a type that has only zeros.
    const { full, zero } = await typesOf(wanted);
    assert.ok(full.length > 0, `${wanted} has data`);
    const pick = async (type) => {
      await page.locator('#pick-type').click();
      await page.locator(`[role=option][title="${type}"]`).click();
      await page.waitForFunction((id) => new URL(location.href).searchParams.get('type') === id, type);
    };
    await pick(full.at(-1));
    await drawn(page);
    if (zero.length > 0) {
      await pick(zero[0]);
      await page.getByRole('heading', { name: /^All values are zero/ }).waitFor();
      await page.locator('.chart canvas').waitFor();
      assert.equal(await page.locator('.flame canvas').count(), 0);
      await accessible(page, 'all values are zero');
      await page.locator('.notice .actions button').first().click();
      await page.waitForFunction((id) => new URL(location.href).searchParams.get('type') !== id, zero[0]);
    }
    await done();
  });

  it('zooms by click, names the frame in the URL, zooms out by Escape, and Back works', async () => {
    const { page, param, done } = await open(profilePath());
    await drawn(page);
    await image(page, 'profile', { width: 1280, height: 800 });
    await accessible(page, 'profile, light');
    await clickFrame(page, 1);
    const first = param('focus');
    assert.ok(first, 'the zoomed frame is in the URL');
    assert.ok((await page.locator('.crumbs li').count()) >= 2, 'a breadcrumb is shown');
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes('focus='));
    await page.goForward();
    await page.waitForFunction(() => location.search.includes('focus='));
    await page.locator('.flame').focus();
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.search.includes('focus='));
    await done();
  });

  it('shows a tooltip beside the frame, and a menu', async () => {
    const { page, param, done } = await open(profilePath(), { permissions: ['clipboard-read', 'clipboard-write'] });
    await drawn(page);
    const box = await page.locator('.flame canvas').boundingBox();
    const at = { x: box.x + box.width * 0.3, y: box.y + 30 };
    await page.mouse.move(at.x, at.y);
    const tip = page.locator('.tooltip');
    await tip.waitFor();
    const text = await tip.textContent();
    assert.match(text, /Total.*%.*Self/s);
    const over = await tip.boundingBox();
    assert.ok(at.x < over.x || at.x > over.x + over.width || at.y < over.y || at.y > over.y + over.height);
    await page.mouse.click(at.x, at.y, { button: 'right' });
    assert.deepEqual(await page.getByRole('menuitem').allTextContents(), ['ZoomEnter', 'Callers and calleesc', 'Show in table', 'Search for this function', 'Only stacks with this functiono', 'Exclude stacks with this function', 'Hide this functionx', 'Only this packagek', 'Copy function name', 'Copy file:line']);
    await page.getByRole('menuitem', { name: 'Show in table' }).click();
    assert.ok(param('sel'));
    await page.locator('.grid-row[aria-selected=true]').waitFor();
    await page.mouse.click(at.x, at.y, { button: 'right' });
    await page.getByRole('menuitem', { name: 'Search for this function' }).click();
    await page.waitForFunction(() => location.search.includes('search='));
    assert.equal(await page.locator('#search').inputValue(), param('sel'));
    await done();
  });

  it('searches, shows the share, steps through matches, and rejects an invalid expression', async () => {
    const { page, param, done } = await open(profilePath());
    await drawn(page);
    const name = await page.locator('.grid-body .grid-row .text').first().textContent();
    await page.keyboard.press('/');
    await page.keyboard.type(name);
    await page.waitForFunction(() => /%/.test(document.querySelector('.tools .match')?.textContent ?? ''));
    assert.equal(param('search'), name);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /\b1 of|match/.test(document.querySelector('.tools .match')?.textContent ?? ''));
    await page.locator('#search').fill('/(/');
    await page.locator('.match.bad').waitFor();
    await page.locator('#search').fill('/./');
    await page.waitForFunction(() => /^100%|^99/.test(document.querySelector('.tools .match')?.textContent ?? ''));
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.search.includes('search='));
    await done();
  });

  it('links the table and the graph in both directions, sorts and filters', async () => {
    const { page, param, done } = await open(profilePath());
    await drawn(page);
    const row = page.locator('.grid-body .grid-row').first();
    const title = await row.locator('.name-cell').getAttribute('title');
    await row.click();
    assert.equal(param('sel'), title);
    await page.locator('.tools .match').waitFor();
    await page.getByRole('button', { name: 'Total' }).click();
    assert.equal(param('sort'), '-total');
    assert.equal(await page.getByRole('columnheader', { name: 'Total' }).getAttribute('aria-sort'), 'descending');
    const all = Number(await page.getByRole('grid').getAttribute('aria-rowcount'));
    await page.getByRole('searchbox', { name: 'Filter functions' }).fill(title);
    await page.waitForFunction((before) => Number(document.querySelector('[role=grid]').getAttribute('aria-rowcount')) < before, all);
    await done();
  });

  it('changes the range by a drag and by a preset', async () => {
    const { page, param, done } = await open(profilePath({ from: 'now-1h' }));
    await drawn(page);
    const over = await page.locator('.chart .u-over').boundingBox();
    await page.mouse.move(over.x + over.width * 0.4, over.y + 40);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.8, over.y + 44, { steps: 8 });
    await page.mouse.up();
    await page.getByRole('group', { name: 'Selected range' }).waitFor();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await page.mouse.move(over.x + over.width * 0.4, over.y + 40);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width * 0.8, over.y + 44, { steps: 8 });
    await page.mouse.up();
    await page.getByRole('button', { name: 'Zoom', exact: true }).click();
    const [from, until] = [Number(param('from')), Number(param('until'))];
    assert.ok(until > from && until - from < 3_600_000 * 0.45 && until - from > 3_600_000 * 0.35, `${from} to ${until}`);
    await page.locator('#time-range').click();
    await page.getByRole('button', { name: 'Last 3 hours' }).click();
    assert.equal(param('from'), 'now-3h');
    await page.getByRole('button', { name: 'Earlier' }).click();
    assert.match(param('from'), /^\d{13}$/);
    await done();
  });

  it('filters by label with values from the store', async (t) => {
    const { names = [] } = await api('LabelNames', { matchers: [`{service_name=${JSON.stringify(services[0])}}`], ...lastHour() });
    const label = names.find((name) => !/^__|^service_name$/.test(name));
    if (!label) return t.skip('no label but the service');
    const { page, param, done } = await open(profilePath());
    await drawn(page);
    await page.getByRole('button', { name: 'Split by' }).click();
    await page.getByRole('combobox', { name: 'Split by' }).fill(label);
    await page.getByRole('option').filter({ hasText: label }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('group', { name: 'Lines' }).getByRole('button').first().click();
    await page.waitForFunction(() => location.search.includes('q=') && !location.search.includes('by='));
    await page.getByRole('button', { name: `Remove filter ${label}` }).click();
    await page.waitForFunction(() => !location.search.includes('q='));
    await page.locator('#add-filter').click();
    await page.getByRole('combobox', { name: 'Label' }).fill(label);
    await page.getByRole('option').filter({ hasText: label }).first().waitFor();
    await page.keyboard.press('Enter');
    const values = page.getByRole('option');
    await values.first().waitFor();
    await page.waitForFunction(() => document.querySelector('[role=option]:not([aria-disabled])'));
    await values.first().click();
    await page.waitForFunction(() => location.search.includes('q='));
    assert.match(param('q'), new RegExp(`^${label}="`));
    await drawn(page);
    await page.getByRole('button', { name: `Remove filter ${label}` }).click();
    await page.waitForFunction(() => !location.search.includes('q='));
    await done();
  });

  it('opens a shared link in a new browser in the same state', async () => {
    const { page, param, done } = await open(profilePath({ theirs: 'kept' }));
    await drawn(page);
    await clickFrame(page, 1);
    const name = await page.locator('.grid-body .grid-row .text').first().textContent();
    await page.locator('#search').fill(name);
    await page.waitForFunction(() => location.search.includes('search='));
    await page.getByRole('button', { name: 'Graph only' }).click();
    await page.getByRole('button', { name: 'Share' }).click();
    const link = await page.locator('#share-link').inputValue();
    assert.match(link, /from=\d{13}/, 'a relative range is pinned');
    assert.match(link, /theirs=kept/);
    const crumbs = (await page.locator('.crumbs li').allTextContents()).join();
    await page.getByRole('button', { name: 'Copy link' }).click();
    const focus = param('focus');
    await done();

    const other = await open(link);
    await drawn(other.page);
    assert.equal(other.param('focus'), focus);
    assert.equal(await other.page.locator('#search').inputValue(), name);
    assert.equal((await other.page.locator('.crumbs li').allTextContents()).join(), crumbs);
    assert.equal(await other.page.locator('.table-part').count(), 0, 'the table stays hidden');
    await other.done();
  });

  it('downloads a gzipped pprof, and copies the command that fetches it from the server', async () => {
    const { page, done } = await open(profilePath(), { permissions: ['clipboard-read', 'clipboard-write'] });
    await drawn(page);
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: /^pprof/ }).click()]);
    assert.match(download.suggestedFilename(), /\.pb\.gz$/);
    const bytes = gunzipSync(await readFile(await download.path()));
    assert.ok(bytes.length > 0);
    await page.getByRole('button', { name: 'Download' }).click();
    await page.getByRole('menuitem', { name: 'Copy command for go tool pprof' }).click();
    await page.getByText('Copied').waitFor();
    const line = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(line, new RegExp(`^go tool pprof '${await page.evaluate(() => location.origin)}/[^']*pyroscope/render\\?query=[^']*&format=pprof'$`));
    await done();
  });

  it('works with the keyboard alone', async () => {
    const { page, param, done } = await open(profilePath());
    await drawn(page);
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('s');
    await page.getByRole('combobox', { name: 'Service' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Service' }).waitFor({ state: 'detached' });
    await drawn(page);
    for (let tab = 0; tab < 60 && (await page.evaluate(() => document.activeElement?.id)) !== 'flame'; tab += 1) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'flame', 'the flame graph is reached by Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.locator('.tooltip').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search.includes('focus='));
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.search.includes('focus='));
    await page.keyboard.press('3');
    assert.equal(param('view'), 'table');
    await page.keyboard.press('1');
    await page.keyboard.press('f');
    assert.equal(param('orient'), 'flame');
    await page.keyboard.press('f');
    for (let tab = 0; tab < 60 && !(await page.evaluate(() => document.activeElement?.matches('.grid-body .grid-row'))); tab += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-index') === '1');
    await page.keyboard.press('Enter');
    assert.ok(param('sel'));
    await page.keyboard.press('[');
    assert.match(param('from'), /^\d{13}$/);
    await done();
  });

  it('follows the colour scheme of the system, and remembers the selected theme', async () => {
    const { page, done } = await open(profilePath(), { colorScheme: 'dark' });
    await drawn(page);
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const night = await paper();
    await accessible(page, 'profile, dark');
    await page.locator('#theme').click();
    assert.notEqual(await paper(), night);
    await page.reload();
    await drawn(page);
    assert.notEqual(await paper(), night, 'the theme outlives a reload');
    await done();
  });

  it('fits a width of 390 px', async () => {
    const { page, done } = await open(profilePath(), { viewport: { width: 390, height: 844 } });
    await drawn(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), 'nothing is wider than the screen');
    const flame = await page.locator('.flame-part').boundingBox();
    const table = await page.locator('.table-part').boundingBox();
    assert.ok(table.y >= flame.y + flame.height - 1, 'the table is below the flame graph');
    await accessible(page, 'profile, narrow');
    await done();
  });

  it('draws 50,000 nodes', async (t) => {
    const { page, context, done } = await open(profilePath());
    await drawn(page);
    const last = await picture({ page, context }, 50_000);
    assert.equal(last.nodes, 50_000);
    const times = await hovers(page);
    await clickFrame(page, 1, 0.5);
    t.diagnostic(`50,000 nodes: from the response to the first drawing ${last.duration.toFixed(1)} ms, of which drawing ${last.rectangles} rectangles ${last.drawMs.toFixed(1)} ms, redraw on hover median ${times[20]} ms, worst ${times[39]} ms`);
    await done();
  });
});

describe('without data', () => {
  beforeEach(() => {
    if (mock) mock.mode = 'normal';
  });

  it('suggests a similar name for a service that does not exist', async () => {
    const { page, param, done } = await open(`profile?v=1&service=${encodeURIComponent(`${services[0]}x`)}`);
    await page.getByText(/^Service .* does not exist$/).waitFor();
    await page.getByRole('button', { name: services[0], exact: true }).click();
    await drawn(page);
    assert.equal(param('service'), services[0]);
    await done();
  });

  it('offers the nearest range with data', async () => {
    const at = Date.now() - 20 * 86_400_000;
    const { page, done } = await open(profilePath({ from: String(at), until: String(at + 3_600_000) }));
    await page.getByRole('heading', { name: /in this range/ }).waitFor();
    await page.getByRole('button', { name: /^Show / }).click();
    await drawn(page);
    await done();
  });

  itOnMock('shows how to send a first profile, and shows the profile when it arrives', async () => {
    for (const path of ['', 'profile']) {
      mock.mode = 'empty';
      const { page, done } = await open(path);
      await page.getByText('alluvium demo').waitFor();
      await accessible(page, 'nothing stored');
      mock.mode = 'normal';
      await page.locator('.card, .flame canvas').first().waitFor({ timeout: 10_000 });
      await done();
    }
  });

  itOnMock('shows the error of a failing server, and retries', async () => {
    mock.mode = 'error';
    const { page, done } = await open(profilePath(), { allowErrors: true });
    await page.getByText('replaying its log').first().waitFor();
    mock.mode = 'normal';
    await page.getByRole('button', { name: 'Try again' }).first().click();
    await drawn(page);
    await done();
  });

  itOnMock('works below a path prefix', async () => {
    const { page, done } = await open('profile/');
    await page.locator('.card h2 a').first().click();
    await drawn(page);
    assert.match(new URL(page.url()).pathname, /^\/profile\/profile$/);
    await page.reload();
    await drawn(page);
    await done();
  });

  itOnMock('shows names as text, never as markup', async () => {
    const { page, done } = await open(profilePath({ filter: 'onerror', search: 'onerror' }));
    await drawn(page);
    assert.match(await page.locator('.grid-body .grid-row').first().textContent(), /<img/);
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    await done();
  });
});

describe('the collector in the same process', () => {
  it('is a view of the page only if there is one', async (t) => {
    const document = await (await fetch(base)).text();
    const { page, done } = await open();
    await page.locator('.rail').waitFor();
    const link = page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Pipeline' });
    if (!document.includes('data-collector="yes"')) {
      assert.equal(await link.count(), 0);
      await done();
      return t.diagnostic('no collector runs in this process');
    }
    await link.click();
    await page.waitForFunction(() => Number(document.querySelector('.pipeline-graph canvas')?.dataset.nodes) >= 2);
    await page.goto(`${base}pipeline?v=1&sel=pyroscope.scrape.self&tab=live`);
    await page.getByRole('list', { name: 'Live data, newest first' }).locator('li').first().waitFor({ timeout: 40_000 });
    await accessible(page, 'pipeline of the demo');
    await done();
  });
});
