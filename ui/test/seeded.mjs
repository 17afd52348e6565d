// The page against a real server with known profiles (seed.mjs): the six questions of a user are answered within three clicks,
// and every shown number agrees with the sent profiles. SEEDED_FRONT=1 puts the page as built here in front of a program that was built
// elsewhere.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { startFront } from './front.mjs';
import { accessible, at, drawn, image, open } from './page.mjs';
import { HOSTILE } from './mock.mjs';
import { CPU, HOSTILE_PROFILES, HOSTILE_SERVICES, REGRESSION, startSeeded, TICK } from './seed.mjs';

let server;
let front;
let sent;

before(async () => {
  server = await startSeeded();
  front = process.env.SEEDED_FRONT === '1' ? await startFront(server.url) : undefined;
  at(front?.url ?? server.url);
  sent = server.sent;
}, { timeout: 120_000 });

after(async () => {
  await front?.close();
  assert.ok(await server?.close(), `the server ended as it should: ${server?.log.join('\n')}`);
});

/** Counts clicks. */
function counting() {
  const count = async (what) => {
    count.clicks += 1;
    await what.click();
  };
  count.clicks = 0;
  return count;
}

const of = (name, release) => sent.filter((profile) => profile.name === name && (release === undefined || profile.release === release));
const sumOf = (profiles, leaf) => profiles.reduce((sum, { rows }) => sum + rows.filter(([stack]) => leaf === undefined || stack.split(';').at(-1) === leaf).reduce((all, [, count]) => all + count, 0), 0) * TICK;
const percent = (share) => `${share * 100 >= 10 ? (share * 100).toFixed(1) : (share * 100).toFixed(2)}%`;

async function sql(query) {
  const answer = await fetch(`${server.url}api/v1/sql`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body: query });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
}

describe('a question', () => {
  it('which function takes the time of a service: one click', async () => {
    const { page, done } = await open();
    const click = counting();
    await click(page.getByRole('link', { name: 'api', exact: true }));
    await drawn(page);
    assert.equal(await page.locator('.grid-body .grid-row .text').first().textContent(), 'parse');
    assert.ok(click.clicks <= 3);
    await done();
  });

  it('did the release make it worse: three clicks, and the first row is the regression', async () => {
    const { page, done } = await open();
    const click = counting();
    await click(page.getByRole('link', { name: 'api', exact: true }));
    await drawn(page);
    await click(page.getByRole('link', { name: 'Compare' }));
    await click(page.getByRole('button', { name: /^version 1 → 2/ }));
    await page.locator('.findings').getByRole('button', { name: /roundEachCent/ }).waitFor();
    const row = page.getByRole('grid', { name: 'Changed functions' }).locator('.grid-body .grid-row').first();
    assert.equal(await row.locator('.name-cell').getAttribute('title'), REGRESSION);
    assert.ok(click.clicks <= 3);
    assert.equal(await page.locator('.findings').getByRole('button').count(), 1);
    await accessible(page, 'compare on a real server');
    await image(page, 'compare', { width: 1280, height: 800 });

    // Every share is equal to the share in the sent profiles, in the response of `Diff`, and in the rows of SQL's `diff()`.
    const [one, two] = [of('api', 1), of('api', 2)];
    const cells = await row.getByRole('gridcell').allTextContents();
    const share = sumOf(two, REGRESSION) / sumOf(two);
    assert.deepEqual(cells.slice(1, 4), ['0.00%', percent(share), `+${(share * 100).toFixed(2)}`]);
    const range = [0, Date.now() + 60_000];
    const side = (release) => ({ profileTypeID: CPU, labelSelector: `{service_name="api", version="${release}"}`, start: String(range[0]), end: String(range[1]), maxNodes: '16384' });
    const diff = await (await fetch(`${server.url}querier.v1.QuerierService/Diff`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ left: side(1), right: side(2) }) })).json();
    assert.deepEqual([Number(diff.flamegraph.leftTicks), Number(diff.flamegraph.rightTicks)], [sumOf(one), sumOf(two)]);
    const rows = await sql(`SELECT function, self_before, self_after, self_change FROM diff('${CPU}{service_name="api", version="1"}', 'now-3h', 'now', '${CPU}{service_name="api", version="2"}', 'now-3h', 'now')`);
    for (const leaf of [REGRESSION, 'parse', 'render', 'gc', 'idle', 'escape']) {
      const found = rows.find((one_) => one_.function === leaf);
      assert.deepEqual([Number(found.self_before), Number(found.self_after)], [sumOf(one, leaf), sumOf(two, leaf)], leaf);
      const shown = await page.locator(`.diff-grid .grid-row:has([title="${leaf}"])`).getByRole('gridcell').allTextContents();
      assert.deepEqual(shown.slice(1, 3), [percent(sumOf(one, leaf) / sumOf(one)), percent(sumOf(two, leaf) / sumOf(two))], leaf);
    }
    await done();
  });

  it('is noise reported as a change: no', async () => {
    const { page, done } = await open('compare?v=1&service=shop');
    await drawn(page);
    await page.locator('.findings').getByText('No function\'s own share rose by more than its normal variation').waitFor();
    await done();
  });

  it('which services use the most: on the front page', async () => {
    const { page, done } = await open();
    await page.locator('.card').first().waitFor();
    const cards = await page.locator('.card h2').allTextContents();
    const sums = ['api', 'shop'].map((name) => [name, sumOf(of(name))]).sort((a, b) => b[1] - a[1]);
    assert.deepEqual(cards.slice(0, 2), sums.map(([name]) => name));
    await done();
  });

  it('which profile was that, as pprof: three clicks, and it contains what was sent', async () => {
    const { page, param, done } = await open();
    await page.locator('.card').first().waitFor();
    const click = counting();
    await click(page.getByRole('link', { name: 'Samples' }));
    const grid = page.getByRole('grid', { name: 'Profiles' });
    await grid.locator('.grid-body .grid-row').first().waitFor();
    assert.equal(Number(await page.locator('.dot-chart canvas').getAttribute('data-dots')), of('api').length);
    await accessible(page, 'samples');
    await image(page, 'samples', { width: 1280, height: 800 });
    await click(grid.locator('.grid-body .grid-row').first());
    await drawn(page);
    const [time] = param('profile').split('~');
    const profile = of('api').find(({ from }) => from * 1000 === Number(time));
    assert.equal((await page.locator('.crumbs .facts').textContent()).includes(`${(profile.total / 1e9).toPrecision(3).replace(/\.?0+$/, '')} s`), true);
    assert.match(await page.getByRole('list', { name: 'Labels' }).textContent(), new RegExp(`version ${profile.release}`));
    await accessible(page, 'an opened profile');
    const [download] = await Promise.all([page.waitForEvent('download'), click(page.getByRole('button', { name: 'Download pprof' }))]);
    assert.ok(click.clicks <= 3);
    assert.equal(sumOfPprof(gunzipSync(await readFile(await download.path()))), profile.total);
    await page.keyboard.press('Escape');
    await grid.waitFor();
    await done();
  });

  it('what does SQL return: two clicks; each of the ten examples runs', async () => {
    const { page, param, done } = await open();
    await page.locator('.rail').waitFor();
    const click = counting();
    await click(page.getByRole('link', { name: 'SQL' }));
    await click(page.getByRole('button', { name: 'CPU by function' }));
    await page.locator('.sql-bars').waitFor();
    assert.ok(click.clicks <= 3);
    assert.equal(await page.locator('.sql-bars th').first().textContent(), 'parse');
    await accessible(page, 'sql, bars');
    const shown = { bar: '.sql-bars', line: '.sql-lines canvas', flame: '.flame canvas[data-nodes]', table: '.sql-grid .grid-row' };
    for (let example = 0; example < 10; example += 1) {
      await page.getByRole('button', { name: 'Examples' }).click();
      const item = page.getByRole('menuitem').nth(example);
      const name = await item.textContent();
      await item.click();
      await page.waitForFunction(() => document.querySelector('.progress')?.dataset.on === 'false');
      await page.locator(shown[param('show') ?? 'table']).first().waitFor();
      assert.equal(await page.locator('.sql-error').count(), 0, name);
      assert.match(await page.locator('.sql-tools [role=status]').textContent(), /^[1-9][\d,]* rows? in /, name);
    }
    await image(page, 'sql', { width: 1280, height: 800 });
    await done();
  });
});

describe('the question of the pipeline', () => {
  let demo;
  before(async () => {
    demo = await startSeeded(['demo', '--only-self']);
    at(demo.url);
  }, { timeout: 120_000 });
  after(async () => {
    at(front?.url ?? server.url);
    assert.ok(await demo.close(), `the demo ended as it should: ${demo.log.join('\n')}`);
  });

  it('does it work: one click, and the flow: two; in the same server, the release is the regression', async () => {
    const { page, done } = await open();
    await page.locator('.card').first().waitFor();
    const click = counting();
    await click(page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Pipeline' }));
    // Every component is counted, and all of them are healthy.
    await page.waitForFunction(() => /^\d+ healthy$/.test([...document.querySelectorAll('.health-button')].map(({ textContent }) => textContent).join()), undefined, { timeout: 60_000 });
    assert.ok(click.clicks <= 3);
    await click(page.getByRole('button', { name: 'Table' }));
    const row = page.getByRole('grid', { name: 'Components' }).getByRole('row', { name: /pyroscope\.scrape/ }).first();
    await row.getByText('healthy').waitFor();
    await accessible(page, 'is the pipeline working');
    assert.equal(click.clicks, 2);
    await click(row);
    await page.getByRole('complementary').getByText(/\d(\.\d+)?\/s · /).first().waitFor({ timeout: 60_000 });
    assert.equal(click.clicks, 3);
    // The server also lists its collector.
    await page.goto(`${demo.url}status`);
    const collector = page.getByRole('grid', { name: 'Collectors' }).getByRole('row', { name: /pyroscope\.write/ });
    await collector.getByText('up to date').waitFor({ timeout: 60_000 });
    await page.goto(demo.url);
    await page.getByRole('link', { name: 'api', exact: true }).click();
    await drawn(page);
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByRole('button', { name: /^version 1 → 2/ }).click();
    await page.locator('.findings').getByRole('button', { name: /roundEachCent/ }).waitFor();
    assert.equal(await page.getByRole('grid', { name: 'Changed functions' }).locator('.grid-body .grid-row .name-cell').first().getAttribute('title'), REGRESSION);
    await done();
  });
});

/** Sums the values of the samples of a pprof profile: field 2 of the profile, field 2 of a sample. */
function sumOfPprof(bytes) {
  const fields = (from, to, each) => {
    let at_ = from;
    const varint = () => {
      let value = 0;
      for (let factor = 1; ; factor *= 128) {
        const byte = bytes[at_];
        at_ += 1;
        value += (byte & 127) * factor;
        if (byte < 128) return value;
      }
    };
    while (at_ < to) {
      const tag = varint();
      if (tag % 8 === 0) each(tag >> 3, varint(), 0, 0);
      else {
        const length = varint();
        each(tag >> 3, 0, at_, at_ + length);
        at_ += length;
      }
    }
  };
  let sum = 0;
  fields(0, bytes.length, (number, _, from, to) => {
    if (number !== 2) return;
    fields(from, to, (inner, value, start, end) => {
      if (inner !== 2) return;
      if (end === 0) sum += value;
      // Packed: the first number is the value of the first type.
      else {
        let factor = 1;
        let packed = 0;
        for (let byte = start; byte < end; byte += 1) {
          packed += (bytes[byte] & 127) * factor;
          factor *= 128;
          if (bytes[byte] < 128) break;
        }
        sum += packed;
      }
    });
  });
  return sum;
}

describe('with the keyboard alone', () => {
  const tabTo = async (page, selector) => {
    for (let tab = 0; tab < 60 && !(await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)); tab += 1) await page.keyboard.press('Tab');
    assert.ok(await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector), `Tab leads to ${selector}`);
  };

  it('a profile is opened and closed', async () => {
    const { page, param, done } = await open('samples?v=1&service=api');
    await page.locator('.sample-grid .grid-body .grid-row').first().waitFor();
    await tabTo(page, '.sample-grid .grid-row');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement?.dataset.index === '1');
    await page.keyboard.press('Enter');
    await drawn(page);
    assert.ok(param('profile'));
    await page.keyboard.press('Escape');
    await page.locator('.sample-grid').waitFor();
    await done();
  });

  it('two values of a label are compared', async () => {
    const { page, param, done } = await open('labels?v=1&service=api&label=version&refresh=0s');
    await page.locator('.card .top-function b').nth(1).waitFor();
    await tabTo(page, '.card .group button[aria-pressed]');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await tabTo(page, '.card .group button[aria-pressed=false]');
    await page.keyboard.press('Enter');
    await page.locator('.banner button').first().focus();
    await page.keyboard.press('Enter');
    await drawn(page);
    assert.equal(param('with'), 'same');
    await done();
  });
});

describe('the labels view', () => {
  it('breaks a label down, filters for a value, excludes one, and compares two', async () => {
    const { page, param, done } = await open('labels?v=1&service=api&label=version');
    const card = (value) => page.locator('.card', { has: page.getByRole('heading', { name: value, exact: true }) });
    await card('2').waitFor();
    assert.match(await page.locator('.whole-steps').textContent(), /^Shares cover whole steps of 1 min\. They do not yet include the time after \d\d:\d\d:00\.$/);
    const all = sumOf(of('api'));
    for (const release of [1, 2]) {
      assert.equal(await card(String(release)).locator('.share').textContent(), percent(sumOf(of('api', release)) / all));
      await card(String(release)).locator('.top-function b').waitFor();
      assert.equal(await card(String(release)).locator('.top-function .text').textContent(), 'parse');
      assert.equal(await card(String(release)).locator('.top-function b').textContent(), percent(sumOf(of('api', release), 'parse') / sumOf(of('api', release))));
    }
    await accessible(page, 'labels');
    await image(page, 'labels', { width: 1280, height: 480 });
    await card('1').getByRole('button', { name: 'Without' }).click();
    await card('1').waitFor({ state: 'detached' });
    assert.equal(param('q'), 'version!="1"');
    await page.goBack();
    await card('1').getByRole('button', { name: 'Compare' }).click();
    await card('2').getByRole('button', { name: 'Compare' }).click();
    await page.locator('.banner').getByRole('button', { name: 'Compare' }).click();
    await drawn(page);
    assert.deepEqual([param('with'), param('baseq'), param('q')], ['same', 'version="1"', 'version="2"']);
    await done();
  });
});

describe('the SQL view', () => {
  it('completes, runs by key, shows errors, and is a link', async () => {
    const { page, param, done } = await open('sql', { allowErrors: true });
    // The editor replaces the plain text area once it is loaded.
    const area = page.locator('.cm-content[aria-label="SQL statement"]');
    await area.waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'SQL statement' }).count(), 1);
    await area.focus();
    await page.keyboard.type('SELECT fun');
    await page.getByRole('option', { name: /^function column/ }).waitFor();
    await accessible(page, 'sql, completing');
    await page.keyboard.press('Tab');
    await page.keyboard.type(", labels['ver");
    await page.getByRole('option', { name: /^version'\]/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.type(' AS v FROM flat LIMIT 3');
    assert.equal(await area.textContent(), "SELECT function, labels['version'] AS v FROM flat LIMIT 3");
    await page.keyboard.press('Control+Enter');
    await page.getByText(/^3 rows in /).waitFor();
    // The editor completes the values of labels, in SQL and in a selector.
    const statement = await area.textContent();
    await area.fill('');
    await page.keyboard.type("SELECT 1 FROM flat WHERE service_name = 's");
    await page.getByRole('option', { name: /^shop'/ }).waitFor();
    await accessible(page, 'sql, completing a value');
    await page.keyboard.press('Enter');
    await page.keyboard.type(" AND labels['version'] IN ('");
    await page.getByRole('option', { name: /^2'/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.type("1') AND profile_type = 'proc");
    await page.getByRole('option', { name: /^process_cpu:cpu:nanoseconds:cpu:nanoseconds'/ }).waitFor();
    await page.keyboard.press('Tab');
    assert.equal(await area.textContent(), `SELECT 1 FROM flat WHERE service_name = 'shop' AND labels['version'] IN ('1') AND profile_type = '${CPU}'`);
    await area.fill('');
    await page.keyboard.type(`SELECT * FROM top('${CPU}{ver`);
    await page.getByRole('option', { name: /^version=/ }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('"');
    await page.getByRole('option', { name: /^1"/ }).waitFor();
    await page.keyboard.press('Escape');
    await area.fill(statement);
    assert.equal(await page.locator('.sql-grid').getByRole('columnheader').count(), 2);
    await page.reload();
    await page.getByText(/^3 rows in /).waitFor();
    await area.fill('SELECT nothing FROM flat');
    await page.keyboard.press('Control+Enter');
    await page.locator('.sql-error').getByText('nothing').waitFor();
    await accessible(page, 'sql, refused');
    assert.equal(param('query'), 'SELECT nothing FROM flat');
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: /csv/ }).click()]);
    assert.match(await readFile(await download.path(), 'utf8'), /^function,v\r?\n/);
    await done();
  });
});

describe('the status view', () => {
  it('shows exactly what the server stores and accepts', async () => {
    const { page, done } = await open('status');
    await page.getByRole('grid', { name: 'Services of the last day' }).getByText('shop').waitFor();
    const rows = await page.getByRole('grid', { name: 'Services of the last day' }).locator('.grid-body .grid-row').allTextContents();
    assert.ok(rows.some((row) => row.startsWith(`api${of('api').length}`)), rows.join('\n'));
    await page.locator('.fact-list div', { hasText: 'Profiles accepted' }).getByText(String(sent.length + HOSTILE_PROFILES)).waitFor();
    await page.getByText('ready', { exact: true }).waitFor();
    await accessible(page, 'status');
    await image(page, 'status', { width: 1280, height: 800 });
    await done();
  });
});

describe('every view', () => {
  const VIEWS = ['', '?v=1&show=table', '?v=1&show=map&group=version', 'send', 'samples?v=1&service=api&dots=size', 'profile?v=1&service=api', 'compare?v=1&service=api', 'labels?v=1&service=api', 'samples?v=1&service=api', 'sql?v=1&query=SELECT+1+AS+one', 'status'];

  it('is readable in the dark and fits a width of 390 px', async () => {
    for (const path of VIEWS) {
      const { page, done } = await open(path, { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
      await page.locator('main').waitFor();
      await page.waitForFunction(() => [undefined, 'false'].includes(document.querySelector('.progress')?.dataset.on));
      await page.waitForTimeout(500);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), `${path} is wider than the screen`);
      await accessible(page, `${path}, dark and narrow`);
      await done();
    }
  });

  it('shows hostile names as text', async () => {
    const to = (view, more) => `${view}?${new URLSearchParams({ v: '1', ...more })}`;
    const services = HOSTILE_SERVICES.flatMap((service) => [to('profile', { service, by: 'label' }), to('compare', { service }), to('labels', { service, label: 'label' }), to('samples', { service })]);
    for (const path of ['', '?v=1&group=label', '?v=1&show=map&group=label', '?v=1&show=table', 'status', ...services, 'profile?v=1&service=zz-hostile', 'compare?v=1&service=zz-hostile&baseservice=api&with=same', 'samples?v=1&service=zz-hostile', 'labels?v=1&service=zz-hostile', 'sql?v=1&show=bar&query=SELECT+function,+sum(value)+AS+v+FROM+flat+GROUP+BY+1+ORDER+BY+2']) {
      const { page, done } = await open(path);
      await page.waitForFunction(() => [undefined, 'false'].includes(document.querySelector('.progress')?.dataset.on));
      await page.waitForTimeout(600);
      assert.equal(await page.locator('img[src="x"]').count(), 0, path);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${path} is wider than the screen`);
      if (path.startsWith('sql')) for (const name of HOSTILE) assert.ok((await page.locator('.sql-bars th').allTextContents()).includes(name), name.slice(0, 40));
      await done();
    }
  });

  it('responds with 404 and the page if the path is not a view', async () => {
    const answer = await fetch(`${server.url}no-such-view`, { headers: { accept: 'text/html' } });
    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /<div id="app">/);
  });
});
