// Names that senders choose: markup, 10,000 characters, right to left, control characters, words of the page's own
// language. In every view they are text and break nothing. The tests run in Chromium against the stand-in.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { HOSTILE } from './mock.mjs';
import { api, clickFrame, drawn, lastHour, mock, open } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const [MARKUP, LONG, RIGHT, QUOTES, CONTROL] = HOSTILE;
const SIZES = [{ viewport: { width: 1440, height: 900 } }, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }];

beforeEach(() => {
  mock.reset();
  mock.mode = 'hostile';
  mock.routes.set('/api/v1/sql', (_, body) => [200, rows(body.toString())]);
});

/** Answers SQL with counts, single profiles of the hostile series, or rows with hostile names. */
function rows(query) {
  const time = new Date(Math.floor(Date.now() / 1000) * 1000 - 60_000).toISOString();
  if (query.startsWith('SELECT count(*)')) return [{ count: HOSTILE.length, most: 50 }];
  if (query.includes('span_id')) return [];
  if (query.includes('p.profile_id')) return HOSTILE.map((name, index) => ({ time, series: String(index), profile_id: name, total: 10 * (index + 1), sample_count: 1, duration_ns: 1e9, labels: { service_name: name, label: name, [name]: name } }));
  if (query.includes('s.labels')) return HOSTILE.map((name) => ({ labels: { service_name: name, [name]: name }, profile_type: CPU, profiles: 1, stacks: 1 }));
  if (query.includes('first')) return HOSTILE.map((name) => ({ name, profiles: 1, stacks: 1, series: 1, first: time, last: time }));
  return HOSTILE.map((name, index) => ({ [MARKUP]: name, [LONG]: name, v: index + 1 }));
}

/** Checks that nothing became markup, that nothing is wider than the screen, and that the page still responds. */
async function unbroken(page, what) {
  assert.equal(await page.locator('img[src="x"]').count(), 0, `${what}: a name became markup`);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} is wider than the screen`);
  assert.equal(await page.getByRole('heading', { name: 'The page has an internal error' }).count(), 0, what);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
}

const settled = async (page) => {
  await page.waitForFunction(() => [undefined, 'false'].includes(document.querySelector('.progress')?.dataset.on));
  await page.waitForTimeout(300);
};
const path = (view, more) => `${view}?${new URLSearchParams({ v: '1', ...more })}`;

describe('hostile names', () => {
  for (const [name, service] of [['markup', MARKUP], ['10,000 characters', LONG], ['right to left', RIGHT], ['quotes and braces', QUOTES], ['control characters', CONTROL]]) {
    it(`of ${name} are text in the views of a service`, async () => {
      for (const options of SIZES) {
        const { page, done } = await open('about:blank', options);
        const views = {
          profile: path('profile', { service, type: CPU, by: 'label', q: `label=${JSON.stringify(service).replace(/\\u[0-9a-f]{4}/g, (text) => JSON.parse(`"${text}"`))}` }),
          compare: path('compare', { service, type: CPU, with: 'same', baseservice: MARKUP }),
          labels: path('labels', { service, type: CPU, label: 'label' }),
          'labels by a hostile label': path('labels', { service, type: CPU, label: MARKUP }),
          samples: path('samples', { service, type: CPU }),
        };
        for (const [view, url] of Object.entries(views)) {
          await page.goto(mock.url + url);
          await settled(page);
          if (/^(profile|compare)/.test(view)) await drawn(page);
          else if (view === 'samples') await page.locator('.sample-grid .grid-body .grid-row').first().waitFor();
          else await page.locator('.card').first().waitFor();
          await unbroken(page, `${view} of ${name}`);
        }
        await done();
      }
    });
  }

  it('are text in the views of all services, of SQL, of files and of the server', async () => {
    const { flamegraph } = await api('SelectMergeStacktraces', { profileTypeID: CPU, labelSelector: '{}', maxNodes: '16384', frameDetails: true, ...lastHour() });
    mock.routes.set('/api/v1/adhoc', () => [200, { profileTypes: [CPU, MARKUP], profileType: CPU, flamegraph }]);
    mock.routes.set('/adhocprofiles.v1.AdHocProfileService/List', () => [200, { profiles: HOSTILE.map((name, id) => ({ id: String(id), name, uploadedAt: '1700000000000' })) }]);
    mock.routes.set('/ready', () => [200, 'ready\n']);
    mock.routes.set('/metrics', () => [200, `alluvium_store_rejected_profiles_total{reason=${JSON.stringify(MARKUP)}} 3\n`]);
    mock.routes.set('/api/v1/status/buildinfo', () => [200, { data: { version: MARKUP, revision: LONG } }]);
    mock.routes.set('/api/v1/status/storage', () => [200, { tables: [], days: [] }]);
    mock.routes.set('/api/v1/status/senders', () => [200, { senders: HOSTILE.map((agent) => ({ agent, address: agent, firstSeen: 1, lastSeen: Date.now(), requests: 1, failed: 0, bytes: 1, lastStatus: 200 })) }]);
    mock.routes.set('/api/v1/tenant_limits', () => [200, { [MARKUP]: LONG }]);
    for (const part of ['config', 'config/diff']) mock.routes.set(`/api/v1/status/${part}`, () => [200, `a: ${MARKUP}\nb: ${LONG}\n`]);
    const views = {
      '': '.card', '?v=1&show=table': '.service-grid .grid-body .grid-row', '?v=1&show=map': 'a.map-tile', '?v=1&group=label': '.group-head', '?v=1&group=label&show=map': 'a.map-tile',
      'sql?v=1&query=SELECT+x': '.sql-grid .grid-body .grid-row', 'sql?v=1&query=SELECT+x&show=bar': '.sql-bars th',
      file: '.kept li', 'file?v=1&id=1': '.flame canvas[data-nodes]', send: '.way', status: '.sender-grid .grid-body .grid-row',
    };
    for (const options of SIZES) {
      const { page, done } = await open('about:blank', options);
      for (const [url, shown] of Object.entries(views)) {
        await page.goto(mock.url + url);
        await page.locator(shown).first().waitFor();
        await settled(page);
        await unbroken(page, url);
      }
      await done();
    }
  });

  it('are text in the pipeline: health, targets and flow', async () => {
    const text = (value) => ({ type: 'string', value });
    const target = { type: 'object', value: HOSTILE.flatMap((name) => [{ key: name, value: text(name) }]) };
    const component = { localID: 'pyroscope.scrape.shop', moduleID: '', name: 'pyroscope.scrape', label: 'shop', referencesTo: [], referencedBy: [], dataFlowEdgesTo: [], createdModuleIDs: [], health: { state: 'unhealthy', message: HOSTILE.join(' '), updatedTime: new Date().toISOString() } };
    const labels = Object.fromEntries(HOSTILE.map((name) => [name, name]));
    const detail = { ...component, arguments: [{ name: 'targets', type: 'attr', value: { type: 'array', value: [target] } }], exports: [], debugInfo: HOSTILE.map((name) => ({ name: 'target', type: 'block', label: name, body: [{ name, type: 'attr', value: text(name) }] })) };
    mock.routes.set('/api/v0/web/components', () => [200, [component]]);
    mock.routes.set('/api/v0/web/components/pyroscope.scrape.shop', () => [200, detail]);
    mock.routes.set('/api/v0/web/controller', () => [200, { version: MARKUP, lastLoad: { success: false, time: new Date().toISOString(), text: HOSTILE.join('\n') }, liveDebugging: { enabled: true } }]);
    mock.routes.set('/api/v0/web/graph', () => [200, `${JSON.stringify({ componentID: component.localID, rate: 1 })}|;|`]);
    mock.routes.set('/api/v0/web/debug/pyroscope.scrape.shop', () => [200, [...HOSTILE.map((error) => ({ kind: 'scrape', url: error, profileType: error, ok: false, error })), { kind: 'relabel', of: 'target', before: labels, after: null, steps: [{ rule: 1, action: 'drop', dropped: true, set: labels, removed: HOSTILE }] }].map((entry) => `${JSON.stringify(entry)}|;|`).join('')]);
    for (const options of SIZES) {
      const { page, done } = await open('about:blank', options);
      await page.route('**/pipeline?**', async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, body: (await answer.text()).replace('data-collector="no"', 'data-collector="yes"') });
      });
      for (const tab of ['', 'arguments', 'debug', 'live']) {
        await page.goto(mock.url + path('pipeline', { sel: component.localID, tab }));
        await page.locator('.panel-side h2').first().waitFor();
        await settled(page);
        await unbroken(page, `pipeline, ${tab}`);
      }
      await page.locator('.panel-side').getByText('onerror=alert(1)').first().waitFor();
      await done();
    }
  });

  it('are not changed in any way', async () => {
    const { page, done } = await open(path('labels', { service: MARKUP, type: CPU, label: 'label' }));
    await page.locator('.card').first().waitFor();
    const shown = await page.locator('.card h2').evaluateAll((heads) => heads.map((head) => head.title));
    for (const name of HOSTILE) assert.ok(shown.includes(name), JSON.stringify(name.slice(0, 40)));
    await page.goto(mock.url + path('sql', { query: 'SELECT x', show: 'bar' }));
    await page.locator('.sql-bars th').first().waitFor();
    for (const name of HOSTILE) assert.ok((await page.locator('.sql-bars th').allTextContents()).some((text) => text.includes(name)));
    await done();
  });
});

describe('a function of 10,000 characters', () => {
  it('can be searched, selected, kept and hidden by links that servers accept', async () => {
    const { page, param, done } = await open(path('profile', { service: MARKUP, type: CPU, filter: 'longxxx' }));
    await drawn(page);
    const row = page.locator('.table-part .grid-body .grid-row', { has: page.locator(`[title="${LONG}"]`) });
    await row.click();
    const sel = param('sel');
    assert.ok(sel.length < 100);
    assert.equal(await page.locator('.grid-row[aria-selected=true] .name-cell').getAttribute('title'), LONG);
    for (const [item, key] of [['Search for this function', 'search'], ['Only stacks with this function', 'only'], ['Hide this function', 'hide']]) {
      await page.goto(mock.url + path('profile', { service: MARKUP, type: CPU, filter: 'longxxx' }));
      await drawn(page);
      await row.click({ button: 'right' });
      await page.getByRole('menuitem', { name: item }).click();
      await page.waitForFunction((name) => new URL(location.href).searchParams.has(name), key);
      assert.ok(page.url().length < 2000, `${item}: a link of ${page.url().length} characters`);
      await page.reload();
      await drawn(page);
      if (key === 'search') await page.waitForFunction(() => /[1-9].*%/.test(document.querySelector('.tools .match')?.textContent ?? ''));
      if (key === 'only') assert.match(await page.locator('.rules .match').textContent(), /Shown: .*[1-9]/);
      if (key === 'hide') assert.equal(await page.locator(`.table-part .grid-row [title="${LONG}"]`).count(), 0);
      await unbroken(page, item);
    }
    for (const pane of ['callers', 'peek', 'graph', 'list']) {
      await page.goto(mock.url + path('profile', { service: MARKUP, type: CPU, pane, sel }));
      await page.locator('.flame canvas[data-nodes], .call-node, .peek h2, .line-list h2').first().waitFor();
      await unbroken(page, pane);
    }
    await done();
  });

  it('zooms by a short path', async () => {
    const { page, param, done } = await open(path('profile', { service: MARKUP, type: CPU }));
    await drawn(page);
    await clickFrame(page, 2);
    assert.ok(param('focus').length < 1000);
    await done();
  });
});

describe('a link that is too long', () => {
  it('is reported when it becomes too long, and in Share', async () => {
    const { page, done } = await open(path('samples', { service: MARKUP, type: CPU }));
    await settled(page);
    assert.equal(await page.locator('.toast').count(), 0);
    await page.goto(mock.url + path('profile', { service: MARKUP, type: CPU }));
    await drawn(page);
    await page.locator('#search').fill(`long${'x'.repeat(8_500)}`);
    await page.locator('.toast').getByText('some servers reject it').waitFor();
    await page.getByRole('button', { name: 'Share' }).click();
    await page.locator('.long-link').waitFor();
    assert.match(await page.locator('.long-link').textContent(), /^The link has 8,\d{3} characters\./);
    await page.keyboard.press('Escape');
    await page.locator('#search').fill('long');
    await page.getByRole('button', { name: 'Share' }).click();
    await page.locator('#share-link').waitFor();
    await page.locator('.long-link').waitFor({ state: 'detached' });
    await done();
  });
});
