// Measures how long a page takes to draw graphs and lists. The browser tests and figures.mjs print the measurements.

import { bigFlamegraph } from './mock.mjs';

/** Returns the first draw of each response, sorted by its end. A duration begins with the layout of the response. */
export const draws = (page) => page.evaluate(() => performance.getEntriesByName('flame:first-draw').sort((a, b) => a.startTime + a.duration - b.startTime - b.duration).map(({ duration, detail }) => ({ duration, ...detail })));

/** Shows a flame graph with a number of nodes in a page, and returns the time from the response to the drawing. */
export async function picture({ page, context }, count, seed = 7) {
  const flamegraph = bigFlamegraph(count, seed);
  await context.unroute('**/SelectMergeStacktraces');
  await context.route('**/SelectMergeStacktraces', (route) => route.fulfill({ json: { flamegraph } }));
  const before = (await draws(page)).length;
  await page.getByRole('button', { name: 'Refresh now' }).click();
  await page.waitForFunction((earlier) => performance.getEntriesByName('flame:first-draw').length > earlier, before);
  return (await draws(page)).at(-1);
}

/** Hovers frames all over the graph, and returns the milliseconds of each redraw, the shortest first. */
export async function hovers(page) {
  const canvas = page.locator('.flame canvas');
  const box = await canvas.boundingBox();
  const times = [];
  for (let step = 0; step < 40; step += 1) {
    await page.mouse.move(box.x + (box.width * (step + 1)) / 42, box.y + 30 + (step % 8) * 20);
    times.push(Number((await canvas.getAttribute('data-draw-ms')) ?? 0));
  }
  return times.sort((a, b) => a - b);
}

/** Opens an address, and returns the milliseconds until something is shown, from the start and from the last response. */
export async function firstSight(page, url, selector) {
  await page.addInitScript((wanted) => {
    globalThis.firstSight = new Promise((resolve) => {
      new MutationObserver(() => document.querySelector(wanted) && resolve(performance.now())).observe(document, { childList: true, subtree: true, attributes: true, attributeFilter: ['data-nodes'] });
    });
  }, selector);
  await page.goto(url);
  await page.locator(selector).first().waitFor();
  return page.evaluate(async () => {
    const since = await globalThis.firstSight;
    const answered = performance.getEntriesByType('resource').filter(({ name }) => /QuerierService/.test(name)).map(({ responseEnd }) => responseEnd).filter((end) => end <= since);
    return { begin: since, answers: since - Math.max(0, ...answered) };
  });
}

/** Cards, rectangles and rows of services. */
export const SERVICES = '.card, a.map-tile, .service-grid .grid-body .grid-row';

/** Filters services by a name, and returns the milliseconds until the next frame. */
export async function filterServices(page, name) {
  const took = await page.getByRole('searchbox', { name: 'Filter services' }).evaluate(async (input, value) => {
    const began = performance.now();
    input.value = value;
    input.dispatchEvent(new InputEvent('input', { bubbles: true }));
    await new Promise(requestAnimationFrame);
    return performance.now() - began;
  }, name);
  await page.waitForFunction((wanted) => document.querySelectorAll(wanted).length === 1, SERVICES);
  return took;
}
