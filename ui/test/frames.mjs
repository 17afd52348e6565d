// Actions on frames in Chromium, against the stand-in: callers and callees, rules for frames, peek, call graph, lines. Each action
// works by mouse and by keyboard alone, is in the link, and can be undone by the Back button.

import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { draws, picture } from './measure.mjs';
import { accessible, api, clickFrame, drawn, imageAsIs, mock, open, profilePath } from './page.mjs';
import { temporary } from './program.mjs';

const CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds';
const MALLOC = 'runtime.mallocgc';
/** Returns an absolute range, so that numbers can be compared. */
const still = () => ({ from: String(Date.now() - 3_600_000), until: String(Date.now()) });
const checkout = (more = {}) => profilePath({ service: 'checkout', type: CPU, ...more });

beforeEach(() => mock.reset());

/** Returns the self and total values of a function in the flame graph of the server. */
async function valuesOf(name, { from, until }) {
  const { flamegraph } = await api('SelectMergeStacktraces', { profileTypeID: CPU, labelSelector: '{service_name="checkout"}', start: from, end: until, maxNodes: '262144' });
  const index = flamegraph.names.indexOf(name);
  let self = 0;
  for (const { values } of flamegraph.levels) for (let at = 0; at < values.length; at += 4) if (Number(values[at + 3]) === index) self += Number(values[at + 2]);
  return { self, sum: Number(flamegraph.total) };
}

const chips = (page) => page.locator('.rules .chip .edit').allTextContents();
const share = (text) => Number(/([\d.]+)%/.exec(text)[1]);

/** Selects a function in the table by keys. */
async function point(page, name) {
  await page.getByRole('searchbox', { name: 'Filter functions' }).fill(name);
  await page.waitForFunction((wanted) => document.querySelector('.table-part .grid-body .name-cell')?.title === wanted, name);
  await page.locator('.table-part .grid-body .grid-row').first().focus();
  await page.keyboard.press('ArrowUp');
}

describe('callers and callees', () => {
  it('open by one key, follow clicks to other functions, and Back returns', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await point(page, MALLOC);
    await page.keyboard.press('c');
    await page.locator('#flame-callees canvas[data-nodes]').waitFor();
    assert.deepEqual([param('pane'), param('sel')], ['callers', MALLOC]);
    assert.match(await page.locator('.sandwich .part-head').textContent(), new RegExp(`^${MALLOC}total .*% of total$`));
    await accessible(page, 'callers and callees');
    // The second row of the callees is the callee with the largest value.
    const box = await page.locator('#flame-callees canvas').boundingBox();
    await page.mouse.click(box.x + box.width * 0.75, box.y + 30);
    await page.waitForFunction((name) => new URL(location.href).searchParams.get('sel') !== name, MALLOC);
    assert.match(param('sel'), /^runtime\./);
    await page.goBack();
    await page.waitForFunction((name) => document.querySelector('.sandwich h2')?.textContent === name, MALLOC);
    await page.reload();
    await page.locator('#flame-callers canvas[data-nodes]').waitFor();
    await page.keyboard.press('Escape');
    await drawn(page);
    assert.equal(param('pane'), null);
    await done();
  });

  it('work with the keyboard alone', async () => {
    const { page, param, done } = await open(checkout({ pane: 'callers', sel: MALLOC }));
    await page.locator('#flame-callers canvas[data-nodes]').waitFor();
    await page.locator('#flame-callers').focus();
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('ArrowUp');
    const caller = await page.locator('.tooltip .name').textContent();
    assert.match(await page.locator('.tooltip').textContent(), /Total.*of total, in runtime\.mallocgc/);
    await page.keyboard.press('Enter');
    await page.waitForFunction((name) => document.querySelector('.sandwich h2')?.textContent === name, caller);
    assert.equal(param('sel'), caller);
    await done();
  });

  it('open by a double click and from a menu, and show both sides of a difference', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    const box = await page.locator('.flame canvas').boundingBox();
    await page.mouse.dblclick(box.x + 60, box.y + 30);
    await page.waitForFunction(() => location.search.includes('pane=callers'));
    assert.equal(param('sel'), 'net/http.(*conn).serve');
    await page.getByText('No callers: stacks begin with this function.').waitFor();
    await done();
    const compared = await open(`compare?${new URLSearchParams({ v: '1', service: 'payments', type: CPU, with: 'same', q: 'version="1.43.0"', baseq: 'version="1.42.1"' })}`);
    await drawn(compared.page);
    assert.deepEqual(await compared.page.getByRole('radiogroup', { name: 'View' }).getByRole('radio').allTextContents(), ['Flame', 'Callers']);
    await compared.page.locator('.diff-grid .grid-body .grid-row').first().click({ button: 'right' });
    await compared.page.getByRole('menuitem', { name: /^Callers and callees/ }).click();
    await compared.page.locator('#flame-callees canvas[data-nodes]').waitFor();
    assert.match(await compared.page.locator('.sandwich .part-head').textContent(), /0\.00% → [\d.]+%/);
    await accessible(compared.page, 'callers and callees of a difference');
    await compared.done();
  });
});

describe('the rules for frames', () => {
  it('are set by keys, kept in the link, and undone by Back', async () => {
    const range = still();
    const { page, param, done } = await open(checkout(range));
    await drawn(page);
    const { self, sum } = await valuesOf(MALLOC, range);
    await point(page, MALLOC);
    await page.keyboard.press('o');
    await page.locator('.rules').waitFor();
    assert.deepEqual(await chips(page), [`only stacks with${MALLOC}`]);
    const shown = share(await page.locator('.rules [role=status]').textContent());
    assert.ok(shown > (self / sum) * 100 && shown < 30, `${shown}% of the total is shown`);
    await accessible(page, 'only some stacks');
    await page.keyboard.press('i');
    await page.waitForFunction(() => location.search.includes('invert=1'));
    await page.keyboard.press('g');
    await page.waitForFunction(() => location.search.includes('recursion=1'));
    await point(page, 'runtime.nextFreeFast');
    await page.keyboard.press('x');
    await page.waitForFunction(() => document.querySelectorAll('.rules .chip').length === 4);
    const link = page.url();
    assert.equal(param('hide'), '=runtime.nextFreeFast');
    await page.reload();
    await drawn(page);
    assert.equal((await chips(page)).length, 4);
    await page.goBack();
    await page.waitForFunction(() => document.querySelectorAll('.rules .chip').length === 3);
    await page.getByRole('button', { name: 'Remove rule: inverted from leaves to callers' }).click();
    await page.waitForFunction(() => !location.search.includes('invert='));
    await page.goto(link);
    await drawn(page);
    await page.keyboard.press('0');
    await page.locator('.rules').waitFor({ state: 'detached' });
    assert.deepEqual(['only', 'hide', 'invert', 'recursion'].map(param), [null, null, null, null]);
    await done();
  });

  it('are set in a menu: a runtime is folded into the frame that entered it', async () => {
    const { page, param, done } = await open(checkout({ search: 'nextFreeFast' }));
    await drawn(page);
    assert.doesNotMatch(await page.locator('.tools .match').textContent(), /No matches/);
    await page.getByRole('button', { name: 'Frames', exact: true }).click();
    await accessible(page, 'the menu of frames');
    const presets = await page.getByRole('menuitemcheckbox', { name: /^Fold / }).allTextContents();
    assert.deepEqual(presets, ['Fold Go runtime', 'Fold Go standard library', 'Fold Kernel']);
    await page.getByRole('menuitemcheckbox', { name: 'Fold Go runtime' }).click();
    await page.getByText('No matches').waitFor();
    assert.equal(param('fold'), 'go');
    assert.equal(await page.locator('.rules [role=status]').count(), 0, 'folding loses no value');
    await done();
  });

  it('also apply to all matches of the search', async () => {
    const { page, param, done } = await open(checkout({ search: '/^runtime\\.mallocgc$/' }));
    await drawn(page);
    const found = await page.locator('.tools .match b').textContent();
    await page.keyboard.press('O');
    await page.locator('.rules').waitFor();
    assert.equal(param('only'), '/^runtime\\.mallocgc$/');
    assert.equal(await page.locator('.rules [role=status] b').textContent(), found);
    await page.getByRole('button', { name: 'Frames', exact: true }).click();
    await page.getByRole('menuitem', { name: /^Hide frames that match the search/ }).click();
    await page.getByText('No matches').waitFor();
    assert.equal(await page.locator('.rules [role=status] b').textContent(), found, 'the value of hidden frames falls to their callers');
    await done();
  });

  it('keep the function of the zoomed frame in view', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await clickFrame(page, 3);
    const title = await page.locator('.crumbs .here').getAttribute('title');
    const before = param('focus');
    await page.locator('.flame').focus();
    await page.keyboard.press('i');
    await page.waitForFunction((old) => new URL(location.href).searchParams.get('focus') !== old, before);
    assert.equal(await page.locator('.crumbs .here').getAttribute('title'), title);
    await page.goBack();
    await page.waitForFunction(() => !location.search.includes('invert='));
    await done();
  });

  it('can leave one package, or no stacks', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await point(page, 'strings.Split');
    await page.keyboard.press('k');
    await page.waitForFunction(() => location.search.includes('package=strings'));
    const names = await page.locator('.table-part .grid-body .name-cell').evaluateAll((all) => all.map(({ title }) => title));
    assert.ok(names.length > 0 && names.every((name) => name.startsWith('strings.')), names.join());
    await page.goto(`${mock.url}${checkout({ only: 'nosuch;/(/' })}`);
    await page.getByRole('heading', { name: 'No stacks match' }).waitFor();
    assert.match(await page.locator('.rules [role=alert]').textContent(), /^\/\(\/: /);
    await accessible(page, 'no stacks match');
    await page.getByRole('button', { name: 'Remove all rules', exact: true }).first().click();
    await drawn(page);
    assert.equal(param('only'), null);
    await done();
  });

  it('apply to both sides of a difference, and to downloads', async () => {
    const { page, done } = await open(`compare?${new URLSearchParams({ v: '1', service: 'payments', type: CPU, with: 'same', q: 'version="1.43.0"', baseq: 'version="1.42.1"', only: '=github.com/acme/shop/payments.(*Tax).roundEachCent' })}`);
    await drawn(page);
    assert.match(await page.locator('.rules [role=status]').textContent(), /0\.00% → [\d.]+% of total/);
    await page.getByRole('button', { name: 'Download' }).click();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('menuitem', { name: /SVG/ }).click()]);
    assert.equal((await readFile(await download.path(), 'utf8')).match(/<rect /g).length, 3, 'background, root and the one function');
    await done();
  });

  it('request small frames, too, and tell if the server has folded some', async () => {
    mock.nodes = 30;
    const { page, done } = await open(checkout());
    const few = await drawn(page);
    const from = mock.calls.length;
    await page.locator('.flame').focus();
    await page.keyboard.press('i');
    await page.waitForFunction((count) => Number(document.querySelector('.flame canvas')?.dataset.nodes) > count, few * 4);
    assert.deepEqual(mock.asked('SelectMergeStacktraces', from).map(({ maxNodes }) => maxNodes), ['65536']);
    await done();
  });
});

describe('peek', () => {
  it('shows the calls of a function as numbers, and switches to others by keys', async () => {
    const range = still();
    const { page, param, done } = await open(checkout({ ...range, sel: MALLOC }));
    await drawn(page);
    await page.keyboard.press('6');
    const callers = page.getByRole('grid', { name: 'Callers' });
    await callers.waitFor();
    assert.equal(param('pane'), 'peek');
    const { self, sum } = await valuesOf(MALLOC, range);
    assert.ok(Math.abs(share(await page.locator('.peek .facts').textContent()) - (self / sum) * 100) < 0.1);
    // The shares of all callers add up to 100 %.
    const shares = await callers.locator('.grid-body .grid-row').evaluateAll((rows) => rows.map((row) => Number.parseFloat(row.children[2].textContent)));
    assert.ok(Math.abs(shares.reduce((all, one) => all + one, 0) - 100) < 1, shares.join());
    await accessible(page, 'peek');
    await callers.locator('.grid-body .grid-row').first().focus();
    const caller = await callers.locator('.grid-body .name-cell').first().getAttribute('title');
    await page.keyboard.press('Enter');
    await page.waitForFunction((name) => document.querySelector('.peek h2')?.textContent === name, caller);
    await page.goBack();
    await page.waitForFunction((name) => document.querySelector('.peek h2')?.textContent === name, MALLOC);
    await done();
  });

  it('starts with the function with the largest own value', async () => {
    const { page, done } = await open(checkout({ pane: 'peek' }));
    const first = page.locator('.table-part .grid-body .name-cell').first();
    await first.waitFor();
    await page.locator('.peek h2').waitFor();
    assert.equal(await page.locator('.peek h2').textContent(), await first.getAttribute('title'));
    await page.goto(`${mock.url}${checkout({ pane: 'peek', sel: 'nosuch' })}`);
    await page.getByRole('heading', { name: 'The function is not in this profile' }).waitFor();
    await done();
  });
});

describe('the call graph', () => {
  it('is laid out in the worker, tells what it omits, and is navigated by arrow keys', async () => {
    const { page, param, done } = await open(checkout());
    await drawn(page);
    await page.keyboard.press('7');
    const nodes = page.locator('.call-node');
    await nodes.first().waitFor();
    assert.ok(page.workers().length === 1, 'a worker runs');
    assert.equal(await nodes.count(), 80);
    assert.match(await page.locator('.call-graph .facts').textContent(), /^80 functions, \d+ calls; omitted: \d+ functions/);
    await accessible(page, 'the call graph');
    await page.getByRole('radio', { name: 'The 30 largest functions' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.call-node').length === 30);
    assert.equal(param('nodes'), '30');
    await page.locator('#call-graph').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    const spoken = page.locator('.call-graph [aria-live]');
    await page.waitForFunction(() => /: self .*, total .*%/.test(document.querySelector('.call-graph [aria-live]')?.textContent ?? ''));
    const name = (await spoken.textContent()).split(': self')[0];
    const width = await page.locator('.graph-scroll svg').getAttribute('width');
    await page.keyboard.press('+');
    assert.ok(Number(await page.locator('.graph-scroll svg').getAttribute('width')) > Number(width));
    await page.keyboard.press('Enter');
    await page.locator('.call-node.selected').waitFor();
    assert.equal(param('sel'), name);
    // New values do not move the graph.
    const there = () => page.locator('#call-graph').evaluate((box) => [box.scrollLeft, box.scrollTop, box.querySelector('svg').getAttribute('width')].map(Number));
    const before = await there();
    await page.keyboard.press('r');
    await page.waitForFunction(() => document.querySelector('.progress')?.dataset.on === 'false');
    await page.waitForTimeout(300);
    const after = await there();
    assert.deepEqual(after.slice(0, 2), before.slice(0, 2));
    assert.ok(Math.abs(after[2] - before[2]) < before[2] * 0.1, 'the scale stays');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download as SVG' }).click()]);
    const drawing = await readFile(await download.path(), 'utf8');
    assert.equal(drawing.match(/<rect /g).length, 31);
    assert.equal(await page.evaluate((xml) => new DOMParser().parseFromString(xml, 'image/svg+xml').querySelector('parsererror')?.textContent ?? '', drawing), '');
    await page.locator('#call-graph').focus();
    await page.keyboard.press('Shift+F10');
    await page.getByRole('menuitem', { name: /^Hide this function/ }).click();
    await page.waitForFunction(() => document.querySelectorAll('.rules .chip').length === 1);
    await done();
  });
});

/** Made-up source text of a function, with its line breaks. */
const CODE = Object.fromEntries([
  '// mallocgc gives memory of a size; what it holds is data: <img src=x onerror=alert(1)>',
  'func mallocgc(size uintptr, kind *_type, zeroed bool) unsafe.Pointer {',
  '\tif size == 0 {',
  '\t\treturn unsafe.Pointer(&zeroBase)',
  '\t}',
  '\tspan := currentCache().spanFor(sizeClass(size))',
  '\tat := nextFreeFast(span)',
  '\tif at == 0 {',
  '\t\tat, span = refill(span)',
  '\t}',
  '\tif zeroed && span.isDirty {',
  '\t\tmemclrNoHeapPointers(unsafe.Pointer(at), size)',
  '\t}',
  '\treturn unsafe.Pointer(at)',
  '}',
].map((line, at) => [1050 + at, line]));

describe('the lines of a function', () => {
  it('have the values of the stacks, and add up to the function', async () => {
    const range = still();
    const { page, param, done } = await open(checkout({ ...range, sel: MALLOC }));
    await drawn(page);
    await page.keyboard.press('8');
    const lines = page.getByRole('grid', { name: `Lines of ${MALLOC}` });
    await lines.waitFor();
    assert.equal(param('pane'), 'list');
    assert.match(await page.locator('.line-list .facts').textContent(), /^runtime\/malloc\.go/);
    const rows = await lines.locator('.grid-body .grid-row').evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    assert.ok(rows.length > 1 && rows.every(([line]) => /^10\d\d$/.test(line)), JSON.stringify(rows));
    const { self, sum } = await valuesOf(MALLOC, range);
    const shares = rows.reduce((all, row) => all + Number.parseFloat(row[2]), 0);
    assert.ok(Math.abs(shares - (self / sum) * 100) < 0.1, `${shares}% of ${(self / sum) * 100}%`);
    await accessible(page, 'the lines of a function');
    // Another function uses the same response.
    const from = mock.calls.length;
    await page.locator('.table-part .grid-body .grid-row').first().click();
    await page.waitForFunction((name) => document.querySelector('.line-list h2')?.textContent !== name, MALLOC);
    assert.equal(mock.asked('SelectMergeProfile', from).length, 0);
    await page.getByRole('button', { name: 'Frames', exact: true }).click();
    await page.getByRole('menuitemcheckbox', { name: /^Invert/ }).click();
    await page.getByText('The values of lines come from all stacks').waitFor();
    await done();
  });

  it('are shown beside the source text from a folder that the browser reads and sends nowhere', async () => {
    const folder = join(await temporary(), 'goroot');
    await mkdir(join(folder, 'src/runtime'), { recursive: true });
    await mkdir(join(folder, 'other/runtime'), { recursive: true });
    const source = Array.from({ length: 1100 }, (_, at) => CODE[at + 1] ?? `\t// ${at + 1}`);
    await writeFile(join(folder, 'src/runtime/malloc.go'), source.join('\r\n'));
    const { page, done } = await open(checkout({ sel: MALLOC, pane: 'list' }));
    const lines = page.getByRole('grid', { name: `Lines of ${MALLOC}` });
    await lines.waitFor();
    const plain = await lines.locator('.grid-body .grid-row').count();
    const from = mock.calls.length;
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Choose a folder' }).click()]);
    await chooser.setFiles(folder);
    const rows = lines.locator('.grid-body .grid-row');
    await rows.getByText(CODE[1055].trim()).waitFor();
    assert.ok((await rows.count()) >= plain + 10, 'lines around those with values are shown');
    const shown = await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    for (const [line, self, total, text] of shown) {
      assert.equal(text, source[line - 1]);
      assert.equal(self === '', total === '');
    }
    assert.equal(shown.filter(([, self]) => self !== '').length, plain);
    await page.getByText('source folder goroot').waitFor();
    assert.deepEqual(mock.calls.slice(from), [], 'no request is sent');
    await accessible(page, 'lines beside their source');
    await imageAsIs(page, 'list', { width: 1280, height: 640 });
    // The folder stays open for the next function. A function whose file is not in it shows a note.
    await page.getByRole('searchbox', { name: 'Filter functions' }).fill('runtime.memmove');
    await page.locator('.table-part .grid-body .grid-row').first().click();
    await page.getByText('runtime/memmove_amd64.s is not in goroot.').waitFor();
    // If several files match the path, the user selects one; the page reports an older version of the file.
    await writeFile(join(folder, 'other/runtime/malloc.go'), 'package runtime\n');
    const [again] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Choose another folder' }).click()]);
    await again.setFiles(folder);
    await page.goBack();
    await page.getByText('2 files match this path').waitFor();
    await page.locator('.line-list select').selectOption('goroot/other/runtime/malloc.go');
    await page.getByText('it is not the version that was profiled').waitFor();
    await accessible(page, 'lines beside another source');
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByRole('button', { name: 'Choose a folder' }).waitFor();
    await done();
  });

  it('link to their repository, if labels name one', async () => {
    mock.routes.set('/querier.v1.QuerierService/LabelValues', (_, body) => [200, { names: { service_repository: ['https://github.com/lib/pq'], service_git_ref: ['v1.10.9'] }[JSON.parse(body).name] ?? ['checkout'] }]);
    const { page, done } = await open(checkout({ sel: MALLOC, pane: 'list' }));
    await page.getByRole('grid', { name: `Lines of ${MALLOC}` }).waitFor();
    const link = page.getByRole('link', { name: 'Open in the repository' });
    assert.equal(await link.count(), 0, 'the runtime does not belong to this repository');
    await page.getByRole('searchbox', { name: 'Filter functions' }).fill('github.com/lib/pq.');
    await page.locator('.table-part .grid-body .grid-row').first().click();
    await link.waitFor();
    assert.match(await link.getAttribute('href'), /^https:\/\/github\.com\/lib\/pq\/blob\/v1\.10\.9\/conn\.go#L\d+$/);
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    await accessible(page, 'lines with a link');
    await done();
  });

  it('show an error if they cannot be loaded, and can be requested again', async () => {
    mock.fails.add('SelectMergeProfile');
    const { page, done } = await open(checkout({ pane: 'list', sel: MALLOC }), { allowErrors: true });
    await page.getByText('Cannot load the lines').waitFor();
    mock.fails.clear();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('grid', { name: `Lines of ${MALLOC}` }).waitFor();
    await done();
  });
});

describe('names', () => {
  // Markup, a name of ten thousand characters, one from right to left, control characters.
  const NAMES = ['total', '<img src=x onerror=alert(1)>', 'x'.repeat(10_000), 'דוגמה.שלום', 'a\u0000b\u001b[31m\u202ec;d\\e\nf'];
  const flamegraph = {
    names: NAMES,
    levels: [{ values: [0, 100, 0, 0] }, { values: [0, 100, 10, 1] }, { values: [10, 90, 10, 2] }, { values: [20, 80, 30, 3] }, { values: [50, 50, 50, 4] }],
    total: 100,
    files: ['', '<b>.go', 'y'.repeat(5000), '', ''],
    mappings: ['', '', '', '', ''],
    lines: [{ values: [0] }, { values: [1] }, { values: [2] }, { values: [3] }, { values: [4] }],
  };

  it('break nothing, whatever they contain', async () => {
    const { page, context, param, done } = await open('about:blank');
    await context.route('**/SelectMergeStacktraces', (route) => route.fulfill({ json: { flamegraph } }));
    for (const name of NAMES.slice(1)) {
      for (const pane of ['callers', 'peek', 'graph', 'list']) {
        await page.goto(`${mock.url}${checkout({ pane, sel: name })}`);
        await page.locator('.sandwich, .peek, .call-node, .line-list').first().waitFor();
        await page.locator('.table-part .grid-body .grid-row').first().waitFor();
        // The rule for a very long name makes a link that is too long for some servers; this test does not need the rule.
        await page.keyboard.press('o');
        await page.locator('.rules .chip').waitFor();
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${pane} of ${name.slice(0, 20)} is as wide as the window`);
        assert.equal(await page.locator('.table-part .grid-body .grid-row').count(), 4, 'the rule matches exactly that name');
      }
    }
    await page.goto(`${mock.url}${checkout()}`);
    await drawn(page);
    await point(page, NAMES[4]);
    await page.keyboard.press('x');
    await page.waitForFunction(() => document.querySelectorAll('.table-part .grid-body .grid-row').length === 0 || location.search.includes('hide='));
    assert.equal(param('hide'), '=a\u0000b\u001b[31m\u202ec\\;d\\e\nf');
    assert.equal(await page.locator('img').count(), await page.locator('.rail img').count());
    await done();
  });
});

describe('every view', () => {
  it('is readable in the dark and at 390 pixels', async () => {
    for (const pane of ['callers', 'peek', 'graph', 'list']) {
      const { page, done } = await open(checkout({ pane, sel: MALLOC, only: `=${MALLOC}`, fold: 'kernel' }), { viewport: { width: 390, height: 844 }, colorScheme: 'dark' });
      await page.locator('#flame-callees canvas[data-nodes], .peek h2, .call-node, .line-list h2').first().waitFor();
      await accessible(page, `${pane}, dark and narrow`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 390), `${pane} is wider than the screen`);
      await done();
    }
  });
});

describe('200,000 nodes', () => {
  it('are shown in every view, with the times printed', async (t) => {
    const { page, context, done } = await open(checkout());
    await drawn(page);
    const first = await picture({ page, context }, 200_000);
    assert.equal(first.nodes, 200_000);
    await page.evaluate(() => {
      globalThis.long = [];
      new PerformanceObserver((list) => globalThis.long.push(...list.getEntries().map(({ duration }) => Math.round(duration)))).observe({ type: 'longtask' });
    });
    t.diagnostic(`200,000 nodes: to the first drawing ${first.duration.toFixed(0)} ms, of which drawing ${first.drawMs.toFixed(1)} ms`);
    await page.locator('.flame').focus();
    for (const [key, what] of [['i', 'inverted'], ['g', 'recursion collapsed'], ['0', 'without rules']]) {
      const before = (await draws(page)).length;
      const begin = Date.now();
      await page.keyboard.press(key);
      await page.waitForFunction((count) => performance.getEntriesByName('flame:first-draw').length > count, before);
      const last = (await draws(page)).at(-1);
      t.diagnostic(`${what}: ${last.nodes} nodes, ${last.duration.toFixed(0)} ms, with the key and the wait ${Date.now() - begin} ms`);
    }
    await page.waitForTimeout(200);
    t.diagnostic(`tasks of the page longer than 50 ms: ${(await page.evaluate(() => globalThis.long)).join(', ')}`);
    await page.keyboard.press('7');
    await page.locator('.call-node').first().waitFor();
    await done();
  });
});
