// Measures the budgets of the page in Chromium against the stand-in, and prints lines of JSON for `make bench-page`:
// `node test/figures.mjs`.

import { execFileSync } from 'node:child_process';
import { it } from 'node:test';
import { filterServices, firstSight, hovers, picture, SERVICES } from './measure.mjs';
import { drawn, mock, open, profilePath } from './page.mjs';

const TIMES = 5;
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const rounded = (values) => values.map((value) => Math.round(value * 100) / 100);
const tell = (what) => console.log(JSON.stringify({ mode: 'page', ...what }));

it('the first view', async () => {
  const report = execFileSync('node', ['scripts/budget.mjs'], { cwd: new URL('..', import.meta.url), encoding: 'utf8' });
  const [, bytes] = /^server: first view (\d+) B/m.exec(report);
  const usable = { services: [], profile: [] };
  for (let time = 0; time < TIMES; time += 1) {
    for (const [view, path, selector] of [['services', '', '.card'], ['profile', profilePath(), '.flame canvas[data-nodes]']]) {
      const { page, done } = await open('about:blank');
      usable[view].push((await firstSight(page, mock.url + path, selector)).begin);
      await done();
    }
  }
  tell({ javascript_kb: Number(bytes) / 1000, usable_ms: { services: rounded(usable.services), profile: rounded(usable.profile) } });
});

for (const [name, count] of [['nodes_50k', 50_000], ['nodes_200k', 200_000]]) {
  it(`${count} nodes`, async () => {
    const opened = await open(profilePath());
    await drawn(opened.page);
    const pictures = [];
    const redraws = [];
    for (let time = 0; time < TIMES; time += 1) {
      pictures.push((await picture(opened, count, 7 + time)).duration);
      redraws.push(median(await hovers(opened.page)));
    }
    tell({ [name]: { picture_ms: rounded(pictures), hover_ms: rounded(redraws) } });
    await opened.done();
  });
}

it('five thousand services', async () => {
  mock.mode = 'many';
  for (const show of ['cards', 'table', 'map']) {
    const sight = [];
    const filter = [];
    for (let time = 0; time < TIMES; time += 1) {
      const { page, done } = await open('about:blank');
      sight.push((await firstSight(page, `${mock.url}?v=1&show=${show}&from=now-1h`, SERVICES)).answers);
      filter.push(await filterServices(page, 'service-4999'));
      await done();
    }
    tell({ services_5000: { [show]: { sight_ms: rounded(sight), filter_ms: rounded(filter) } } });
  }
});
