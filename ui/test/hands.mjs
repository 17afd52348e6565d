// The page without a pointer, in another time zone, with other names, and in the dark theme. Also compares a screenshot of each view
// with a reviewed reference image.

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { accessible, drawn, mock, open, profilePath, samePicture } from './page.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const checkout = (more = {}) => profilePath({ service: 'checkout', type: CPU, ...more });

beforeEach(() => mock.reset());

/** Presses Tab until the wanted element has the focus. */
async function tabTo(page, selector) {
  for (let tab = 0; tab < 60; tab += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not lead to ${selector}`);
}

describe('with the keyboard alone', () => {
  it('a range of the chart is selected, read out, and zoomed to', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await tabTo(page, '#chart');
    for (let step = 0; step < 40; step += 1) await page.keyboard.press('ArrowLeft');
    await page.locator('.chart-tip').waitFor();
    const spoken = page.locator('.chart [aria-live]');
    assert.match(await spoken.textContent(), /^\d+ \w+ \d\d:\d\d.*: CPU .*cores$/);
    for (let step = 0; step < 20; step += 1) await page.keyboard.press('Shift+ArrowLeft');
    await page.getByRole('group', { name: 'Selected range' }).waitFor();
    assert.match(await spoken.textContent(), /10 min selected, Enter: Zoom$/);
    await accessible(page, 'a selected range');
    await page.keyboard.press('Escape');
    assert.equal(await page.getByRole('group', { name: 'Selected range' }).count(), 0);
    await page.keyboard.press('End');
    for (let step = 0; step < 20; step += 1) await page.keyboard.press('Shift+ArrowLeft');
    await page.keyboard.press('Enter');
    assert.equal(Number(param('until')) - Number(param('from')), 600_000);
    await done();
  });

  it('the chart is read as a table', async () => {
    const { page, param, done } = await open(checkout({ by: 'pod' }));
    await drawn(page);
    await page.getByRole('button', { name: 'Show chart as table' }).press('Enter');
    const table = page.getByRole('grid', { name: 'CPU over time' });
    await table.waitFor();
    assert.equal(param('chart'), 'table');
    assert.equal(await table.getByRole('columnheader').count(), 5);
    assert.match(await table.getByRole('row').nth(1).textContent(), /^\d+ \w+ \d\d:\d\d:\d\d.*cores/);
    await accessible(page, 'the chart as a table');
    await tabTo(page, '.chart-table .grid-body .grid-row');
    await page.keyboard.press('End');
    await page.waitForFunction(() => Number(document.activeElement?.dataset.index) > 100);
    await done();
  });

  it('an operator is selected by arrow keys, and is one stop of Tab', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await page.locator('#add-filter').press('Enter');
    await page.getByRole('combobox', { name: 'Label' }).fill('pod');
    await page.getByRole('option', { name: 'pod' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Value' }).waitFor();
    await accessible(page, 'the editor of a filter');
    await page.keyboard.press('Shift+Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'is');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'matches');
    await page.keyboard.press('Tab');
    await page.keyboard.type('checkout.*');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search.includes('q='));
    assert.equal(param('q'), 'pod=~"checkout.*"');
    await done();
  });
});

describe('single-key shortcuts', () => {
  it('do nothing once they are switched off, and the setting is remembered', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await page.keyboard.press('3');
    assert.equal(param('view'), 'table');
    await page.keyboard.press('1');
    await page.keyboard.press('?');
    await accessible(page, 'the list of keyboard shortcuts');
    await page.getByRole('checkbox', { name: 'Enable single-key shortcuts' }).uncheck();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.reload();
    await drawn(page);
    for (const key of ['3', 'f', 't', '?', 's', '[']) await page.keyboard.press(key);
    assert.deepEqual([param('view'), param('orient'), param('from')], [null, null, null]);
    assert.equal(await page.getByRole('dialog').count(), 0);
    await page.locator('.flame').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => location.search.includes('focus='));
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !location.search.includes('focus='));
    await done();
  });
});

describe('the time zone', () => {
  it('is shown, and a switch changes it to UTC', async () => {
    const { page, done } = await open(checkout({ from: '1700000000000', until: '1700003600000' }), { timezoneId: 'Asia/Kolkata' });
    const button = page.locator('#time-range');
    await page.waitForFunction(() => document.querySelector('#time-range')?.textContent.includes('UTC+5:30'));
    assert.match(await button.textContent(), /15 Nov 2023 03:43 – 04:43/);
    await button.click();
    await accessible(page, 'the range picker');
    await page.getByRole('radio', { name: 'UTC' }).click();
    assert.equal(await page.getByLabel('From').inputValue(), '2023-11-14T22:13:20');
    await page.getByRole('button', { name: 'Apply' }).click();
    assert.match(await button.textContent(), /14 Nov 2023 22:13 – 23:13 UTC$/);
    await page.reload();
    await page.waitForFunction(() => document.querySelector('#time-range')?.textContent.endsWith('23:13 UTC'));
    await done();
  });
});

describe('a narrow screen', () => {
  it('leads to every view, and nothing is wider than it', async () => {
    for (const width of [760, 480, 360]) {
      const { page, param, done } = await open(checkout({ sel: 'runtime.mallocgc' }), { viewport: { width, height: 844 } });
      await drawn(page);
      const choices = page.getByRole('radiogroup', { name: 'View' }).getByRole('radio');
      assert.deepEqual(await choices.allTextContents(), ['Flame', 'Callers', 'Peek', 'Graph', 'List']);
      for (const [name, pane, shown] of [
        ['Callers', 'callers', '#flame-callees canvas[data-nodes]'],
        ['Peek', 'peek', '.peek h2'],
        ['Graph', 'graph', '.call-node'],
        ['List', 'list', '.line-list h2'],
        ['Flame', null, '#flame canvas[data-nodes]'],
      ]) {
        const choice = choices.filter({ hasText: name });
        await choice.click();
        await page.locator(shown).first().waitFor();
        assert.equal(param('pane'), pane);
        assert.equal(await choice.getAttribute('aria-checked'), 'true');
        const box = await choice.boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} is outside of ${width} px`);
        const widths = await page.evaluate(() => [document.documentElement.scrollWidth, document.querySelector('.view').scrollWidth]);
        assert.ok(Math.max(...widths) <= width, `${name} is wider than ${width} px: ${widths}`);
      }
      await done();
    }
  });
});

describe('the screenshots', () => {
  // A time at which the seeded data is always the same.
  const now = Date.UTC(2026, 6, 1, 12, 0, 0);
  const of = async (name, path, options = {}) => {
    mock.now = now;
    const { page, done } = await open('about:blank', options);
    await page.clock.setFixedTime(now);
    await page.goto(mock.url + path);
    await page.locator('.card, .flame canvas[data-nodes], .call-node, .peek h2, .line-list h2').first().waitFor();
    await page.waitForFunction(() => document.querySelector('.progress')?.dataset.on === 'false');
    await page.waitForTimeout(400);
    await samePicture(page, name);
    await done();
  };
  const wide = { viewport: { width: 1280, height: 720 }, timezoneId: 'UTC' };

  it('match the reviewed reference images', async () => {
    await of('services', '', wide);
    await of('services-dark', '', { ...wide, colorScheme: 'dark' });
    await of('profile', checkout(), wide);
    await of('profile-dark', checkout({ by: 'pod' }), { ...wide, colorScheme: 'dark' });
    for (const pane of ['callers', 'peek', 'graph', 'list']) await of(`profile-${pane}`, checkout({ pane, sel: 'runtime.mallocgc' }), wide);
    await of('profile-rules', checkout({ only: '=runtime.mallocgc', fold: 'go', invert: '1' }), { ...wide, colorScheme: 'dark' });
    const compared = `compare?${new URLSearchParams({ v: '1', service: 'payments', type: CPU, with: 'same', q: 'version="1.43.0"', baseq: 'version="1.42.1"' })}`;
    await of('compare', compared, wide);
    await of('compare-dark', compared, { ...wide, colorScheme: 'dark' });
    await of('compare-narrow', compared, { ...wide, viewport: { width: 390, height: 844 } });
    await of('labels', `labels?${new URLSearchParams({ v: '1', service: 'checkout', type: CPU, label: 'pod' })}`, wide);
    await of('profile-narrow', checkout(), { ...wide, viewport: { width: 390, height: 844 } });
  });
});
