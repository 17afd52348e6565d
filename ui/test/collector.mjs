// The Pipeline page in a real Chromium against a real collector: `alluvium run` with a test configuration that scrapes the collector
// itself and sends to no real server. The tests cover clicks, keys, the table, goroutine dumps, the live tail, a failed reload, a module, widths, and 3,000 components.
// ALLUVIUM_BIN names the program (default: target/debug/alluvium). Without the program, the tests are skipped, except on CI, where they fail.
// UPDATE_IMAGES=1 writes the screenshots of docs/images.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { chromium } from 'playwright-core';
import { listening, program, sleep, start, stop, temporary } from './program.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const IMAGES = new URL('../../docs/images/', import.meta.url);
const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);
const READY_MS = 60_000;

const there = await access(program).then(() => true, () => false);
if (!there) console.error(`collector: ${program} does not exist: build it (\`cargo build\`), or set ALLUVIUM_BIN`);

let browser;
let folder;
let collector;
let base;
let file;

const scrape = (label, to, targets) => `pyroscope.scrape "${label}" {
	targets         = ${targets}
	forward_to      = [${to.join(', ')}]
	scrape_interval = "1s"

	profiling_config {
		profile.memory {
			path = "/debug/pprof/heap"
		}

${['block', 'goroutine', 'mutex', 'process_cpu'].map((kind) => `		profile.${kind} {\n			enabled = false\n		}\n`).join('\n')}	}
}
`;

const configuration = (port, targets, live = true) => `${live ? 'livedebugging {\n\tenabled = true\n}\n\n' : ''}discovery.file "machines" {
	files = ["${targets}"]
}

discovery.relabel "shop" {
	targets = discovery.file.machines.targets

	rule {
		source_labels = ["app"]
		target_label  = "service_name"
	}

	rule {
		source_labels = ["app"]
		regex         = "retired"
		action        = "drop"
	}
}

${scrape('shop', ['pyroscope.relabel.team.receiver', 'pyroscope.write.archive.receiver'], 'discovery.relabel.shop.output')}
${scrape('self', ['pyroscope.relabel.team.receiver'], `[{"__address__" = "127.0.0.1:${port}", "service_name" = "collector"}]`)}
pyroscope.relabel "team" {
	forward_to = [pyroscope.write.main.receiver]

	rule {
		regex  = "app"
		action = "labeldrop"
	}

	rule {
		target_label = "team"
		replacement  = "platform"
	}
}

pyroscope.write "main" {
	endpoint {
		url = "http://127.0.0.1:${port}/push-test"
	}
}

pyroscope.write "archive" {
	endpoint {
		url                = "http://127.0.0.1:9"
		max_backoff_period = "1s"
	}
}
`;

async function get(path) {
  const response = await fetch(base + path, { signal: AbortSignal.timeout(60_000) });
  return { status: response.status, text: await response.text() };
}

async function ready() {
  const deadline = Date.now() + READY_MS;
  for (;;) {
    if (collector.ended) throw new Error(`the collector ended ${collector.ended}:\n${collector.log.join('\n')}`);
    if (await get('-/ready').then(({ status }) => status === 200, () => false)) return;
    if (Date.now() > deadline) throw new Error('the collector is not ready');
    await sleep(200);
  }
}

async function launch(text, prefix = '') {
  file = `${folder}/config.alloy`;
  await writeFile(file, '');
  collector = start(['run', file, '--server.http.listen-addr', '127.0.0.1:0', '--storage.path', await temporary(), ...(prefix === '' ? [] : ['--server.http.ui-path-prefix', prefix])], folder);
  base = await listening(collector);
  const { port } = new URL(base);
  await writeFile(`${folder}/targets.json`, JSON.stringify([
    { targets: [`127.0.0.1:${port}`], labels: { app: 'shop', zone: 'a' } },
    { targets: ['127.0.0.1:9'], labels: { app: 'cart', zone: 'b' } },
    { targets: ['127.0.0.1:8'], labels: { app: 'retired' } },
  ]));
  await writeFile(file, text(port));
  await ready();
  // The collector scrapes itself and writes to itself, at the port that the system assigned.
  const { status, text: answer } = await get('-/reload');
  if (status !== 200) throw new Error(`the reload returned status ${status}: ${answer}`);
}

/** Opens a fresh browser context that records every error and every request to another host. */
async function open(path, { allow = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 760 }, colorScheme: 'light', ...options });
  const page = await context.newPage();
  const troubles = [];
  const isAllowed = (text) => allow.some((pattern) => pattern.test(text));
  page.on('console', (message) => message.type() === 'error' && !isAllowed(message.text()) && troubles.push(`console: ${message.text()}`));
  page.on('response', (response) => response.status() >= 400 && !isAllowed(response.url()) && troubles.push(`${response.status()}: ${response.url()}`));
  page.on('pageerror', (error) => troubles.push(`page: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== new URL(base).origin) troubles.push(`foreign request: ${url}`);
  });
  await page.goto(base + path);
  return {
    page,
    param: (name) => new URL(page.url()).searchParams.get(name),
    async done() {
      assert.deepEqual(troubles, []);
      await context.close();
    },
  };
}

const drawn = (page, nodes) => page.waitForFunction((wanted) => document.querySelector('.pipeline-graph canvas')?.dataset.nodes === String(wanted), nodes);

/** Finds a node on the screen by clicking on the canvas until its panel opens. */
async function clickNode(page, label) {
  const box = await page.locator('.pipeline-graph canvas').boundingBox();
  for (let y = box.y + 20; y < box.y + box.height - 60; y += 24) {
    for (let x = box.x + 20; x < box.x + box.width; x += 80) {
      await page.mouse.move(x, y);
      if ((await page.locator('.pipeline-graph canvas').evaluate((canvas) => canvas.style.cursor)) !== 'pointer') continue;
      await page.mouse.click(x, y);
      await page.locator('.panel-side h2').waitFor();
      if ((await page.locator('.panel-side').getAttribute('aria-label')).endsWith(label)) return;
      x += 80;
    }
  }
  throw new Error(`no node ${label} on the canvas`);
}

async function accessible(page, what) {
  await page.evaluate(await readFile(AXE, 'utf8'));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${what}: ${id}: ${nodes.slice(0, 2).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`), []);
}

async function image(page, name) {
  if (process.env.UPDATE_IMAGES !== '1') return;
  await mkdir(IMAGES, { recursive: true });
  await page.screenshot({ path: new URL(`${name}.png`, IMAGES).pathname });
}

const suite = there || process.env.CI ? describe : describe.skip;

suite('the pipeline of a collector', { timeout: 600_000 }, () => {
  before(async () => {
    folder = await temporary();
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
    await launch((port) => configuration(port, `${folder}/targets.json`));
  });
  after(async () => {
    await browser?.close();
    if (collector) assert.ok(await stop(collector), `the collector ended ${collector.ended}`);
  });

  it('is the front page, and shows every component, its health and the flow', async () => {
    const { page, done } = await open('');
    assert.equal(new URL(page.url()).pathname, '/graph');
    await drawn(page, 7);
    await page.getByRole('button', { name: /\d healthy/ }).waitFor();
    await page.getByRole('button', { name: /2 unhealthy|1 unhealthy/ }).waitFor({ timeout: 60_000 });
    await page.waitForTimeout(2500);
    await accessible(page, 'graph, light');
    await image(page, 'pipeline-light');
    await done();
  });

  it('opens a component by a click: health, flow, arguments, exports, debug info', async () => {
    const { page, param, done } = await open('graph');
    await drawn(page, 7);
    await clickNode(page, 'pyroscope.scrape.shop');
    assert.equal(param('sel'), 'pyroscope.scrape.shop');
    const panel = page.getByRole('complementary');
    await panel.getByText('Data from').waitFor();
    await panel.getByText(/\d(\.\d+)?\/s · /).first().waitFor();
    await panel.getByText('2 targets').waitFor();
    await panel.getByRole('tab', { name: 'Arguments' }).click();
    await panel.getByText('scrape_interval').waitFor();
    await panel.getByText('targets', { exact: true }).first().waitFor();
    assert.equal(await panel.getByRole('columnheader', { name: 'service_name' }).count(), 1, 'targets are a table');
    await panel.getByRole('tab', { name: 'Debug info' }).click();
    await panel.getByText('last_scrape').first().waitFor();
    await accessible(page, 'panel');
    await panel.getByRole('tab', { name: 'Overview' }).click();
    await panel.getByRole('button', { name: 'discovery.relabel.shop' }).first().click();
    await page.getByRole('heading', { name: 'shop' }).waitFor();
    assert.equal(param('sel'), 'discovery.relabel.shop');
    await panel.getByRole('tab', { name: 'Exports' }).click();
    await panel.getByText('output').first().waitFor();
    await page.getByRole('button', { name: 'Close the panel' }).click();
    assert.equal(param('sel'), null);
    await done();
  });

  it('downloads the goroutine dump of a target, or says why there is none', async () => {
    const dump = 'goroutine 1 [running]:\nmain.main()\n';
    const asked = [];
    const target = createServer((request, response) => {
      asked.push(request.url);
      response.setHeader('content-type', 'text/plain; charset=utf-8');
      response.end(request.url === '/app/debug/pprof/goroutine?debug=2' ? dump : 'goroutine profile: total 0\n');
    }).listen(0, '127.0.0.1');
    await once(target, 'listening');
    const address = `127.0.0.1:${target.address().port}`;
    const good = await readFile(file, 'utf8');
    await writeFile(file, `${good}
pyroscope.scrape "go" {
	targets = [
		{"__address__" = "${address}", "service_name" = "shop", "__profile_path_prefix__" = "/app"},
		{"__address__" = "${address}", "service_name" = "cart"},
	]
	forward_to = [pyroscope.write.archive.receiver]

	profiling_config {
${['block', 'memory', 'mutex', 'process_cpu'].map((kind) => `		profile.${kind} {\n			enabled = false\n		}\n`).join('\n')}	}
}
`);
    const reloaded = await get('-/reload');
    assert.equal(reloaded.status, 200, reloaded.text);
    const { page, done } = await open('graph?v=1&sel=pyroscope.scrape.go', { allow: [/goroutines\/pyroscope\.scrape\.go/, /status of 502/] });
    const list = page.getByRole('list', { name: 'Targets with goroutine dumps' });
    await list.getByText(`shop at ${address}/app`).waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Goroutine dump of shop' }).click()]);
    assert.equal(await readFile(await download.path(), 'utf8'), dump);
    assert.match(download.suggestedFilename(), /^goroutines\.127\.0\.0\.1_\d+_app\.[\dT-]+\.txt$/);
    await accessible(page, 'goroutine dumps');
    // A poll brings the same targets again; the buttons stay.
    await list.getByRole('button').first().evaluate((button) => (button.dataset.same = 'yes'));
    await page.waitForResponse(/components\/pyroscope\.scrape\.go$/);
    await page.waitForTimeout(300);
    assert.equal(await list.getByRole('button').first().getAttribute('data-same'), 'yes');
    await page.getByRole('button', { name: 'Goroutine dump of cart' }).click();
    await page.getByRole('alert').getByText(/No goroutine dump: the response of the target is not a goroutine dump/).waitFor();
    assert.ok(asked.includes('/debug/pprof/goroutine?debug=2'));
    await done();
    await writeFile(file, good);
    assert.equal((await get('-/reload')).status, 200);
    target.close();
  });

  it('tails live data: the effect of each rule, pause, filter, sampling', async () => {
    const { page, done } = await open('graph?v=1&sel=discovery.relabel.shop&tab=live');
    const list = page.getByRole('list', { name: 'Live data, newest first' });
    const dropped = list.getByText('127.0.0.1:8 dropped by rule 2 (drop)').first();
    await dropped.waitFor();
    await dropped.click();
    await list.getByText('+ service_name = "retired"').first().waitFor();
    await list.locator('.steps span.gone').first().waitFor();
    await accessible(page, 'live data of targets');
    await page.goto(`${base}graph?v=1&sel=pyroscope.relabel.team&tab=live`);
    await list.getByText(/changed by rules 1, 2/).first().waitFor();
    await list.getByText(/memory · .* samples · /).first().waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText(/^Paused, \d+ newer/).waitFor();
    const frozen = await list.locator('li').count();
    await page.waitForTimeout(1500);
    assert.equal(await list.locator('li').count(), frozen, 'the shown entries do not change while paused');
    await list.locator('summary', { hasText: 'changed by rules 1, 2' }).first().click();
    await image(page, 'pipeline-live-light');
    await page.keyboard.press('p');
    await page.getByText('Live', { exact: true }).last().waitFor();
    await page.getByRole('searchbox', { name: 'Filter live data' }).fill('nothing holds this');
    await page.getByText(/None of the last \d+ entries matches/).waitFor();
    await page.getByRole('searchbox', { name: 'Filter live data' }).fill('platform');
    await list.locator('li').first().waitFor();
    const [request] = await Promise.all([
      page.waitForRequest(/sampleProb=0\.1/),
      page.getByRole('combobox', { name: 'Share of entries to show' }).selectOption('0.1'),
    ]);
    assert.match(request.url(), /debug\/pyroscope\.relabel\.team/);
    await page.goto(`${base}graph?v=1&sel=pyroscope.write.archive&tab=live`);
    await list.getByText(/to http:\/\/127\.0\.0\.1:9 failed/).first().waitFor({ timeout: 30_000 });
    await page.goto(`${base}graph?v=1&sel=pyroscope.scrape.shop&tab=live`);
    await list.getByText(/memory from http:.* forwarded · /).first().waitFor();
    await list.getByText(/failed: cannot reach the target/).first().waitFor();
    await done();
  });

  it('works with the keyboard alone, in the graph and in the table', async () => {
    const { page, param, done } = await open('graph');
    await drawn(page, 7);
    for (let tab = 0; tab < 30 && (await page.evaluate(() => document.activeElement?.id)) !== 'pipeline'; tab += 1) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'pipeline', 'the graph is reached by Tab');
    await page.keyboard.press('ArrowRight');
    await page.locator('.pipeline-graph [aria-live]', { hasText: 'discovery.file.machines, healthy' }).waitFor();
    await page.keyboard.press('ArrowRight');
    await page.locator('.pipeline-graph [aria-live]', { hasText: 'discovery.relabel.shop' }).waitFor();
    await page.keyboard.press('Enter');
    assert.equal(param('sel'), 'discovery.relabel.shop');
    await page.keyboard.press('Escape');
    assert.equal(param('sel'), null);
    for (const key of ['+', '-', '0']) await page.keyboard.press(key);
    await page.keyboard.press('2');
    const grid = page.getByRole('grid', { name: 'Components' });
    await grid.waitFor();
    assert.equal(await grid.getByRole('row').count(), 8);
    await accessible(page, 'table');
    await page.getByRole('button', { name: 'Health', exact: true }).click();
    assert.equal(param('sort'), 'health');
    assert.match(await grid.getByRole('row').nth(1).textContent(), /unhealthy/);
    await page.keyboard.press('/');
    await page.keyboard.type('scrape');
    await page.waitForFunction(() => document.querySelectorAll('.component-table .grid-body [role=row]').length === 2);
    for (let tab = 0; tab < 30 && !(await page.evaluate(() => document.activeElement?.matches('.grid-body .grid-row'))); tab += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement?.getAttribute('data-index') === '1');
    await page.waitForTimeout(2500);
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('data-index')), '1', 'new rates do not move the focus');
    await page.keyboard.press('Enter');
    assert.match(param('sel'), /^pyroscope\.scrape\./);
    await page.getByRole('tab', { name: 'Overview' }).focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(param('tab'), 'arguments');
    await done();
  });

  it('filters by text and by health, and keeps the filters in the link', async () => {
    const { page, param, done } = await open('graph?v=1&filter=write&view=table');
    await page.waitForFunction(() => document.querySelectorAll('.component-table .grid-body [role=row]').length === 2);
    await page.getByRole('searchbox', { name: 'Filter components' }).fill('');
    await page.getByRole('button', { name: /\d unhealthy/ }).click();
    assert.equal(param('health'), 'unhealthy');
    await page.waitForFunction(() => [...document.querySelectorAll('.component-table .grid-body [role=row]')].every((row) => row.textContent.includes('unhealthy')));
    await done();
  });

  it('follows a dark colour scheme, and fits a width of 390 px', async () => {
    const dark = await open('graph?v=1&sel=pyroscope.scrape.shop', { colorScheme: 'dark' });
    await drawn(dark.page, 7);
    await dark.page.waitForTimeout(2500);
    await accessible(dark.page, 'graph, dark');
    await image(dark.page, 'pipeline-dark');
    await dark.done();
    const narrow = await open('graph', { viewport: { width: 390, height: 844 } });
    await drawn(narrow.page, 7);
    assert.ok(await narrow.page.evaluate(() => document.documentElement.scrollWidth <= 390), 'nothing is wider than the screen');
    await narrow.page.waitForTimeout(2500);
    await image(narrow.page, 'pipeline-narrow');
    await narrow.page.goto(`${base}graph?v=1&sel=pyroscope.write.archive&view=table`);
    await narrow.page.getByRole('heading', { name: 'archive' }).waitFor();
    assert.ok(await narrow.page.evaluate(() => document.documentElement.scrollWidth <= 390), 'the panel is not wider than the screen');
    await accessible(narrow.page, 'narrow');
    await narrow.done();
  });

  it('shows that a reload failed, and that the previous configuration is in force', async () => {
    const good = await readFile(file, 'utf8');
    // The panel may request the component once more after the reload has removed it.
    const { page, done } = await open('graph', { allow: [/components\/pyroscope\.scrape\.self$/, /status of 404/] });
    await drawn(page, 7);
    await writeFile(file, `${good}\npyroscope.scrap "x" {\n}\n`);
    assert.equal((await get('-/reload')).status, 400);
    const banner = page.getByRole('alert');
    await banner.getByText(/The reload at .* failed\. The previous configuration is still in force\./).waitFor();
    await banner.locator('summary').click();
    await banner.getByText(/cannot find the definition of component name "pyroscope\.scrap"/).waitFor();
    await accessible(page, 'failed reload');
    await drawn(page, 7);
    // A successful reload removes the banner. A component that the new configuration omits disappears from the graph.
    await page.goto(`${base}graph?v=1&sel=pyroscope.scrape.self`);
    await page.getByRole('heading', { name: 'self' }).waitFor();
    const from = good.indexOf('pyroscope.scrape "self"');
    await writeFile(file, good.slice(0, from) + good.slice(good.indexOf('pyroscope.relabel "team"')));
    assert.equal((await get('-/reload')).status, 200);
    await drawn(page, 6);
    await page.getByRole('complementary').waitFor({ state: 'detached' });
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await writeFile(file, good);
    assert.equal((await get('-/reload')).status, 200);
    await drawn(page, 7);
    await done();
  });

  it('opens a module as a graph of its own, with a way back', async () => {
    const good = await readFile(file, 'utf8');
    await writeFile(file, `declare "pipe" {
	argument "targets" { }

	${scrape('inner', ['pyroscope.write.inner.receiver'], 'argument.targets.value').trim()}

	pyroscope.write "inner" {
		endpoint {
			url = "http://127.0.0.1:9"
		}
	}
}

pipe "one" {
	targets = [{"__address__" = "${new URL(base).host}", "service_name" = "inside"}]
}

${good}`);
    const reloaded = await get('-/reload');
    assert.equal(reloaded.status, 200, reloaded.text);
    const { page, param, done } = await open('graph?v=1&sel=pipe.one');
    await page.getByRole('button', { name: 'Open the module' }).click();
    assert.equal(param('module'), 'pipe.one');
    await drawn(page, 2);
    await page.getByRole('navigation', { name: 'Modules' }).getByText('pipe.one').waitFor();
    await page.goto(`${base}graph?v=1&module=pipe.one&sel=pipe.one/pyroscope.scrape.inner&tab=live`);
    await page.getByRole('list', { name: 'Live data, newest first' }).getByText(/memory · .* · inside/).first().waitFor();
    await page.getByRole('tab', { name: 'Overview' }).click();
    await page.getByRole('complementary').getByText(/\d(\.\d+)?\/s · /).first().waitFor();
    await page.goto(`${base}graph?v=1&module=pipe.none`).catch(() => undefined);
    await done().catch((error) => assert.match(error.message, /404/));
    const back = await open('graph?v=1&module=pipe.one');
    await back.page.getByRole('navigation', { name: 'Modules' }).getByRole('button', { name: 'root' }).click();
    await drawn(back.page, 8);
    await back.done();
    await writeFile(file, good);
    assert.equal((await get('-/reload')).status, 200);
  });

  it('explains how to turn on live debugging, and what to do without components', async () => {
    const good = await readFile(file, 'utf8');
    await writeFile(file, good.replace(/^livedebugging \{[^}]*\}\n/, ''));
    assert.equal((await get('-/reload')).status, 200);
    const { page, done } = await open('graph?v=1&sel=pyroscope.relabel.team&tab=live');
    await page.getByText('Live debugging is off').waitFor();
    await page.getByText('livedebugging { enabled = true }').waitFor();
    await accessible(page, 'live debugging is off');
    // The list of components may arrive long before the page knows that live debugging is off. Until then, the page must request no stream.
    await page.route('**/api/v0/web/controller', async (route) => {
      await sleep(1000);
      await route.continue();
    });
    await page.reload();
    await page.getByText('Live debugging is off').waitFor();
    await page.unroute('**/api/v0/web/controller');
    await writeFile(file, '// nothing\n');
    assert.equal((await get('-/reload')).status, 200);
    await page.getByText('The configuration has no components').waitFor();
    await accessible(page, 'no components');
    await writeFile(file, good);
    assert.equal((await get('-/reload')).status, 200);
    await drawn(page, 7);
    await done();
  });

  it('shows that the collector cannot be reached, and recovers by itself', async () => {
    const { page, done } = await open('graph', { allow: [/ERR_/] });
    await drawn(page, 7);
    await page.route('**/api/v0/web/**', (route) => route.abort());
    await page.getByText(/The refresh failed, older data is shown: cannot reach the collector/).waitFor({ timeout: 15_000 });
    await page.unroute('**/api/v0/web/**');
    await page.getByText(/The refresh failed, older data is shown/).waitFor({ state: 'detached', timeout: 15_000 });
    await done();
  });

  for (const count of [200, 3000]) {
    it(`stays usable with ${count} components`, async (t) => {
      const chain = Array.from({ length: count / 10 }, (_, part) =>
        Array.from({ length: 10 }, (_, at) => `discovery.relabel "r${part}_${at}" {\n\ttargets = ${at === 0 ? '[{"__address__" = "h:1"}]' : `discovery.relabel.r${part}_${at - 1}.output`}\n}\n`).join('\n')).join('\n');
      const good = await readFile(file, 'utf8');
      await writeFile(file, chain);
      assert.equal((await get('-/reload')).status, 200);
      const { page, param, done } = await open('graph');
      await drawn(page, count);
      const canvas = page.locator('.pipeline-graph canvas');
      const layouts = await page.evaluate(() => performance.getEntriesByName('pipeline:layout').map(({ duration, detail }) => ({ duration, ...detail })));
      const layout = layouts.find(({ nodes }) => nodes === count);
      const read = async () => ({ ms: Number(await canvas.getAttribute('data-draw-ms')), inView: Number(await canvas.getAttribute('data-in-view')) });
      const near = await read();
      assert.ok(near.inView < count, 'nodes outside the view are not drawn');
      await page.getByRole('button', { name: 'Zoom to fit' }).click();
      await page.waitForFunction((wanted) => Number(document.querySelector('.pipeline-graph canvas').dataset.inView) === wanted, count);
      const far = await read();
      const box = await canvas.boundingBox();
      const times = [];
      for (let step = 0; step < 20; step += 1) {
        await page.mouse.move(box.x + 200, box.y + 200);
        await page.mouse.wheel(0, step < 10 ? -200 : 200);
        await page.waitForTimeout(30);
        times.push((await read()).ms);
      }
      times.sort((a, b) => a - b);
      await page.getByRole('button', { name: 'Table' }).click();
      await page.getByRole('grid').waitFor();
      assert.ok((await page.locator('.component-table .grid-body [role=row]').count()) < 100, 'rows outside the view do not exist');
      await page.keyboard.press('/');
      await page.keyboard.type('r3_7');
      await page.locator('.component-table .grid-body [role=row]').first().click();
      assert.match(param('sel'), /r3_7/);
      t.diagnostic(`${count} components: layout ${layout.duration.toFixed(1)} ms, drawing ${near.inView} in view ${near.ms} ms, all ${far.ms} ms, zooming median ${times[10]} ms, worst ${times[19]} ms`);
      await writeFile(file, good);
      assert.equal((await get('-/reload')).status, 200);
      await done();
    });
  }

  it('works below a path prefix', async () => {
    assert.ok(await stop(collector));
    await launch((port) => configuration(port, `${folder}/targets.json`), '/my/agent/');
    const { page, done } = await open('my/agent/');
    await drawn(page, 7);
    assert.equal(new URL(page.url()).pathname, '/my/agent/graph');
    await page.goto(`${base}my/agent/component/pyroscope.write.main`);
    await page.getByRole('heading', { name: 'main' }).waitFor();
    await done();
  });
});
