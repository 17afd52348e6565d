// The page in a real Chromium: starts the browser and a server, opens pages and records every error, and inspects them.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, it } from 'node:test';
import { chromium } from 'playwright-core';
import { startMock } from './mock.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** Timeout for something to appear, on a machine that is busy with other work. */
const PATIENCE_MS = 12_000;
const WIDE = { width: 1440, height: 900 };
const IMAGES = new URL('../../docs/images/', import.meta.url);
const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);

export let mock;
export let base;
export let services;
let browser;

export async function api(method, request) {
  const response = await fetch(`${base}querier.v1.QuerierService/${method}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(request) });
  assert.equal(response.status, 200, `${method} returned status ${response.status}`);
  return response.json();
}

/** A test that needs the modes of the stand-in. */
export const itOnMock = process.env.BASE_URL ? () => undefined : it;

export const lastHour = () => ({ start: String(Date.now() - 3_600_000), end: String(Date.now()) });

/** Tests with a server of their own set its address here, once it runs. */
export function at(url) {
  base = url;
}

before(async () => {
  if (process.env.BASE_URL) {
    base = process.env.BASE_URL.replace(/\/*$/, '/');
  } else {
    mock = await startMock();
    base = mock.url;
  }
  browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  services = (await api('LabelValues', { name: 'service_name', matchers: ['{}'], ...lastHour() })).names ?? [];
  assert.ok(services.length > 0, 'the server has no service with data in the last hour');
});

after(async () => {
  await browser?.close();
  await mock?.close();
});

/** Returns the profile types of a service: those with values, and those with only zeros. */
export async function typesOf(service) {
  const selector = `{service_name=${JSON.stringify(service)}}`;
  const range = lastHour();
  const { labelsSet = [] } = await api('Series', { matchers: [selector], labelNames: ['__profile_type__'], ...range });
  const full = [];
  const zero = [];
  for (const id of labelsSet.map(({ labels }) => labels[0].value)) {
    const { flamegraph } = await api('SelectMergeStacktraces', { profileTypeID: id, labelSelector: selector, maxNodes: '16', ...range });
    (Number(flamegraph?.total ?? 0) > 0 ? full : zero).push(id);
  }
  return { full, zero };
}

/** Opens a fresh browser context that records every error and every request to another host. */
/** If `tour` is true, the visit is the first one, so the page offers the tour. */
export async function open(path = '', { allowErrors = false, tour = false, ...options } = {}) {
  const context = await browser.newContext({ viewport: WIDE, colorScheme: 'light', acceptDownloads: true, ...options });
  if (!tour) await context.addInitScript(() => location.protocol.startsWith('http') && localStorage.setItem('alluvium.tour', 'seen'));
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const troubles = [];
  page.on('console', (message) => message.type() === 'error' && !allowErrors && troubles.push(`console: ${message.text()}`));
  page.on('response', (response) => response.status() >= 400 && !allowErrors && troubles.push(`${response.status()}: ${response.url()} ${response.request().postData() ?? ''}`));
  page.on('pageerror', (error) => troubles.push(`page: ${error.message}`));
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== new URL(base).origin) troubles.push(`foreign request: ${url}`);
  });
  await page.goto(/^(http|about):/.test(path) ? path : base + path);
  return {
    page,
    context,
    param: (name) => new URL(page.url()).searchParams.get(name),
    async done() {
      assert.deepEqual(troubles, []);
      await context.close();
    },
  };
}

export const profilePath = (more = {}) => `profile?${new URLSearchParams({ v: '1', service: services[0], ...more })}`;

/** Waits until a flame graph is drawn, and returns its number of nodes. */
export async function drawn(page) {
  const canvas = page.locator('.flame canvas[data-nodes]');
  await canvas.waitFor({ state: 'visible' });
  await page.waitForFunction(() => Number(document.querySelector('.flame canvas')?.dataset.nodes) > 1);
  await page.waitForTimeout(250); // longer than the animation of a zoom
  return Number(await canvas.getAttribute('data-nodes'));
}

/** Clicks into a row of the flame graph, at a share of its width. */
export async function clickFrame(page, row, share = 0.3) {
  const box = await page.locator('.flame canvas').boundingBox();
  await page.mouse.click(box.x + box.width * share, box.y + row * 20 + 10);
  await page.waitForTimeout(300);
}

/** Name, colour scheme and viewport of each variant of an image in the documentation. */
const LOOKS = [['light', 'light', null], ['dark', 'dark', null], ['narrow', 'light', { width: 390, height: 844 }]];

/** Writes the images of the view that a page shows, for the service and range in the environment variables. */
export async function image(page, name, size) {
  if (process.env.UPDATE_IMAGES !== '1') return;
  const { IMAGE_SERVICE: service, IMAGE_FROM: from, IMAGE_UNTIL: until } = process.env;
  const url = new URL(page.url());
  if (from) url.searchParams.set('from', from);
  if (until) url.searchParams.set('until', until);
  if (service && url.searchParams.has('service')) url.searchParams.set('service', service);
  const other = await page.context().newPage();
  await other.goto(url.href);
  await other.locator('.card, .flame canvas[data-nodes], .grid-row, .sql-result').first().waitFor();
  await imageAsIs(other, name, size);
  await other.close();
}

/** Writes images of the page in its current state, if its address alone would not show that state. */
export async function imageAsIs(page, name, size) {
  if (process.env.UPDATE_IMAGES !== '1') return;
  await mkdir(IMAGES, { recursive: true });
  const before = page.viewportSize();
  for (const [look, colorScheme, narrow] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(narrow ?? size);
    await page.waitForTimeout(800);
    await page.screenshot({ path: new URL(`${name}-${look}.png`, IMAGES).pathname });
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(before);
}

export async function accessible(page, what) {
  await page.evaluate(await readFile(AXE, 'utf8'));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }));
  assert.deepEqual(violations.map(({ id, nodes }) => `${what}: ${id}: ${nodes.slice(0, 2).map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`), []);
}

/** Maximum difference of a colour channel, out of 255, that other versions of a font or a browser may cause. */
const TOLERANCE = 48;
/** Share of the pixels that may differ by more. */
const DIFFERENT = 0.01;

/**
 * Compares the page with the reference image of that name. UPDATE_PICTURES=1 writes the image anew: look at it before you
 * commit it. If the page differs, the new image is left beside the reference for review.
 */
export async function samePicture(page, name) {
  const path = new URL(`pictures/${name}.png`, import.meta.url);
  const now = await page.screenshot({ animations: 'disabled' });
  if (process.env.UPDATE_PICTURES === '1') return writeFile(path, now);
  const before = await readFile(path);
  const share = await page.evaluate(async ([one, two, tolerance]) => {
    const pixels = async (text) => {
      const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
      context.drawImage(bitmap, 0, 0);
      return context.getImageData(0, 0, bitmap.width, bitmap.height);
    };
    const [a, b] = await Promise.all([pixels(one), pixels(two)]);
    if (a.width !== b.width || a.height !== b.height) return 1;
    let different = 0;
    for (let at = 0; at < a.data.length; at += 4) {
      if ([0, 1, 2].some((channel) => Math.abs(a.data[at + channel] - b.data[at + channel]) > tolerance)) different += 1;
    }
    return different / (a.width * a.height);
  }, [before.toString('base64'), now.toString('base64'), TOLERANCE]);
  if (share > DIFFERENT) await writeFile(new URL(`pictures/${name}.new.png`, import.meta.url), now);
  assert.ok(share <= DIFFERENT, `${name}: ${(share * 100).toFixed(2)}% of the pixels differ; the new image is test/pictures/${name}.new.png`);
  return share;
}
