// A dropped file, the instructions for sending profiles, and the tour, in Chromium against the stand-in.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, api, base, drawn, imageAsIs, lastHour, mock, open } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const SAMPLES = 'process_cpu:samples:count:cpu:nanoseconds';
const HOSTILE = '"><img src=x onerror=alert(1)>.pb.gz';
const ID = '01HF0000000000000000000000-cpu.pb.gz';

let asked;
let kept;

beforeEach(async () => {
  mock.reset();
  asked = [];
  kept = [];
  const question = { profileTypeID: CPU, labelSelector: '{service_name="checkout"}', maxNodes: '256', ...lastHour() };
  const { flamegraph } = await api('SelectMergeStacktraces', { ...question, frameDetails: true });
  const { flamegraph: difference } = await api('Diff', { left: question, right: { ...question, labelSelector: '{service_name="payments"}' } });
  mock.routes.set('/api/v1/adhoc', (url, body) => {
    const params = Object.fromEntries(url.searchParams);
    asked.push({ ...params, body: body.toString() });
    if (body.toString() === 'what is this') return [400, { code: 'invalid_argument', message: 'cannot read the profile as folded stacks: no line is a stack and a count' }];
    const types = { profileTypes: [SAMPLES, CPU], profileType: params.type || CPU };
    return [200, params.baseline ? { ...types, difference } : { ...types, flamegraph }];
  });
  mock.routes.set('/adhocprofiles.v1.AdHocProfileService/List', () => [200, { profiles: kept.map(({ name }) => ({ id: ID, name, uploadedAt: '1700000000000' })) }]);
  mock.routes.set('/adhocprofiles.v1.AdHocProfileService/Upload', (_, body) => {
    kept.push(JSON.parse(body));
    return [200, { id: ID }];
  });
});

const choose = (page, name, text) => page.locator('#file-input').setInputFiles({ name, mimeType: 'application/octet-stream', buffer: Buffer.from(text) });

describe('the file view', () => {
  it('lists the supported formats if no file is open', async () => {
    const { page, done } = await open('file');
    await page.getByRole('heading', { name: 'Drop a profile anywhere on this page, or choose one' }).waitFor();
    assert.match(await page.locator('.formats').textContent(), /pprof.*JFR.*collapsed.*speedscope.*perf script/s);
    await accessible(page, 'file, light');
    assert.deepEqual(asked, []);
    await done();
  });

  it('shows a file that is dropped on any view, whatever its name, and keeps nothing', async () => {
    const { page, param, done } = await open('profile?v=1&service=checkout');
    await drawn(page);
    const data = await page.evaluateHandle((name) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['main;work 3\n'], name));
      return transfer;
    }, HOSTILE);
    await page.dispatchEvent('body', 'dragover', { dataTransfer: data });
    assert.equal(await page.evaluate(() => document.documentElement.dataset.drop), 'yes');
    await page.dispatchEvent('body', 'drop', { dataTransfer: data });
    await page.waitForURL((url) => url.pathname.endsWith('/file'));
    assert.ok((await drawn(page)) > 10);
    assert.equal(await page.locator('.file-name').textContent(), HOSTILE);
    assert.equal(asked[0].body, 'main;work 3\n');
    assert.deepEqual([param('id'), kept.length], [null, 0]);
    await accessible(page, 'a file');
    await page.locator('#pick-type').click();
    await page.getByRole('option', { name: /CPU samples/ }).click();
    await page.waitForFunction(() => location.search.includes('of='));
    await drawn(page);
    assert.equal(asked.at(-1).type, SAMPLES);
    await done();
  });

  it('compares the file with stored profiles', async () => {
    const { page, param, done } = await open('file?v=1&service=payments&from=now-30m');
    await choose(page, 'cpu.pb.gz', 'x');
    await drawn(page);
    await page.getByRole('button', { name: 'Compare with stored profiles' }).click();
    await page.getByRole('grid', { name: 'Changed functions' }).waitFor();
    assert.equal(param('compare'), 'stored');
    assert.equal(await page.getByRole('columnheader').count(), 4, 'a file has no values per second');
    const { baseline, from, until } = asked.at(-1);
    assert.equal(baseline, '{service_name="payments"}');
    assert.equal(Number(until) - Number(from), 1_800_000);
    await accessible(page, 'a file compared with stored profiles');
    await imageAsIs(page, 'file', { width: 1280, height: 520 });
    await done();
  });

  it('explains what is wrong with a file that is not a profile', async () => {
    const { page, done } = await open('file', { allowErrors: true });
    await choose(page, 'notes.txt', 'what is this');
    await page.getByRole('heading', { name: 'notes.txt is not a supported profile' }).waitFor();
    await page.getByText('no line is a stack and a count').waitFor();
    await accessible(page, 'no profile');
    await choose(page, 'cpu.txt', 'main 1');
    await drawn(page);
    // The previous file is not shown under the name of a file that cannot be parsed.
    await choose(page, 'more.txt', 'what is this');
    await page.getByRole('heading', { name: 'more.txt is not a supported profile' }).waitFor();
    assert.equal(await page.locator('.flame').count(), 0);
    await done();
  });

  it('keeps the file on request, and then has a link', async () => {
    const { page, param, done } = await open('file');
    await choose(page, 'cpu.pb.gz', 'main 1\n');
    await drawn(page);
    await page.getByRole('button', { name: 'Keep on this server' }).click();
    await page.waitForFunction(() => location.search.includes('id='));
    assert.equal(param('id'), ID);
    assert.deepEqual([kept[0].name, Buffer.from(kept[0].profile, 'base64').toString()], ['cpu.pb.gz', 'main 1\n']);
    await page.reload();
    await drawn(page);
    assert.deepEqual([asked.at(-1).id, asked.at(-1).body], [ID, '']);
    assert.equal(await page.locator('.file-name').textContent(), 'cpu.pb.gz');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('link', { name: 'cpu.pb.gz' }).click();
    await drawn(page);
    await done();
  });
});

describe('the instructions for sending profiles', () => {
  it('have the address of this server, also below a prefix, and are selected by keyboard', async () => {
    for (const prefix of ['', 'profile/']) {
      const { page, param, done } = await open(`${base}${prefix}send`);
      const server = `${base}${prefix}`.replace(/\/$/, '');
      await page.locator('.way code').filter({ hasText: `ServerAddress:   "${server}"` }).waitFor();
      await accessible(page, 'send');
      await page.getByRole('tab', { name: 'Go', exact: true }).focus();
      await page.keyboard.press('ArrowDown');
      await page.getByRole('heading', { name: 'Java', exact: true }).waitFor();
      assert.equal(param('way'), 'java');
      for (const tab of await page.getByRole('tab').all()) {
        await tab.click();
        assert.ok((await page.locator('.way').textContent()).includes(server));
      }
      await done();
    }
  });

  it('have a token in each way if the server requires authentication, and explain how to create one', async () => {
    mock.routes.set('/api/v1/session', () => [200, { asks: true, identity: { name: 'ada', roles: ['read'], tenants: ['anonymous'] }, logged_in: true }]);
    for (const options of [{}, { colorScheme: 'dark', viewport: { width: 390, height: 844 } }]) {
      const { page, done } = await open('send', options);
      await page.getByRole('heading', { name: 'This server requires authentication' }).waitFor();
      await page.getByText('alluvium token new my-service --role write').waitFor();
      await accessible(page, `send with a token, ${options.colorScheme ?? 'light'}`);
      if (!options.viewport) await imageAsIs(page, 'send', { width: 1280, height: 640 });
      for (const tab of await page.getByRole('tab').all()) {
        await tab.click();
        const steps = await page.locator('.way > ol').textContent();
        assert.match(steps, /ALLUVIUM_TOKEN|\/etc\/alluvium\/token/, await tab.textContent());
        assert.doesNotMatch(steps, /allu_/);
      }
      assert.equal(await page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth), true);
      await done();
    }
  });

  it('have no token if the server requires no authentication', async () => {
    const { page, done } = await open('send');
    for (const tab of await page.getByRole('tab').all()) {
      await tab.click();
      assert.doesNotMatch(await page.locator('.way').textContent(), /token/i);
    }
    await done();
  });

  it('are linked from an empty page, after three commands', async () => {
    mock.mode = 'empty';
    const { page, done } = await open();
    await page.getByRole('heading', { name: 'No profiles are stored yet' }).waitFor();
    assert.equal(await page.locator('.notice .command').count(), 3);
    await accessible(page, 'an empty page');
    await page.getByRole('link', { name: /^Send profiles from Go/ }).click();
    await page.locator('.way').waitFor();
    await done();
  });
});

describe('the tour', () => {
  it('is offered once, has five steps by keyboard, and is remembered', async () => {
    const { page, done } = await open('', { tour: true });
    await page.getByRole('complementary', { name: 'Tour' }).waitFor();
    await accessible(page, 'the offer of a tour');
    await page.getByRole('button', { name: 'Take a tour in five steps' }).press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    const titles = new Set();
    for (let step = 1; step <= 5; step += 1) {
      await dialog.getByText(`${step} of 5`).waitFor();
      titles.add(await dialog.getByRole('heading').textContent());
      if (step === 1) await accessible(page, 'a step of the tour');
      await page.keyboard.press('ArrowRight');
    }
    assert.equal(titles.size, 5);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.reload();
    await page.locator('.card').first().waitFor();
    assert.equal(await page.getByRole('complementary', { name: 'Tour' }).count(), 0);
    await page.keyboard.press('?');
    await page.getByRole('button', { name: 'Take a tour in five steps' }).click();
    await page.getByText('1 of 5').waitFor();
    await page.getByRole('link', { name: 'Open Services' }).click();
    await dialog.waitFor({ state: 'detached' });
    await done();
  });
});

describe('in the dark and at 390 pixels', () => {
  for (const view of ['file', 'send', 'send?way=ebpf']) {
    it(view, async () => {
      const { page, done } = await open(view, { colorScheme: 'dark', viewport: { width: 390, height: 800 } });
      await page.locator('.formats, .way').first().waitFor();
      await accessible(page, `${view}, dark and narrow`);
      assert.equal(await page.evaluate(() => document.scrollingElement.scrollWidth), 390);
      await done();
    });
  }
});
