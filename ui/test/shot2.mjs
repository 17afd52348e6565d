import { chromium } from 'playwright-core';
import { startMock } from './mock.mjs';
const mock = await startMock({});
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
const S='profile?v=1&service=checkout';
const shots = [
  ['tip', S, 'light', async (p) => { const b=await p.locator('.flame canvas').boundingBox(); await p.mouse.click(b.x+200,b.y+190); await p.waitForTimeout(400); await p.mouse.move(b.x+300,b.y+230); }],
  ['menu', S, 'dark', async (p) => { const b=await p.locator('.flame canvas').boundingBox(); await p.mouse.click(b.x+300,b.y+150,{button:'right'}); }],
  ['type', S, 'light', async (p) => { await p.locator('#pick-type').click(); }],
  ['time', S, 'dark', async (p) => { await p.locator('#time-range').click(); }],
  ['filter', S+'&q=region%3D~"eu.*"', 'light', async (p) => { await p.locator('#add-filter').click(); await p.waitForTimeout(300); await p.keyboard.type('pod'); await p.keyboard.press('Enter'); await p.waitForTimeout(400);}],
  ['drag', S+'&type=memory:inuse_space:bytes:space:bytes', 'light', async (p) => { const o=await p.locator('.chart .u-over').boundingBox(); await p.mouse.move(o.x+400,o.y+30); await p.mouse.down(); await p.mouse.move(o.x+700,o.y+30,{steps:5}); await p.mouse.up(); }],
  ['charttip', S+'&by=pod&orient=flame', 'dark', async (p) => { const o=await p.locator('.chart .u-over').boundingBox(); await p.mouse.move(o.x+400,o.y+30); }],
  ['help', S+'&view=table', 'light', async (p) => { await p.keyboard.press('?'); }],
  ['share', S+'&sel=runtime.mallocgc', 'light', async (p) => { await p.getByRole('button',{name:'Share'}).click(); }],
  ['empty', '', 'light', async () => {}, 'empty'],
  ['error', S, 'dark', async () => {}, 'error'],
  ['slow', S, 'light', async () => {}, 'slow'],
  ['nosuch', 'profile?v=1&service=chekout', 'light', async () => {}],
  ['past', S+'&from=1700000000000&until=1700003600000', 'light', async () => {}],
];
for (const [name, path, colorScheme, act, mode] of shots) {
  if (process.argv[2] && !process.argv.slice(2).includes(name)) continue;
  mock.mode = mode ?? 'normal';
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme });
  page.on('pageerror', (e) => console.log(name, 'ERROR', e.message));
  await page.goto(mock.url + path);
  await page.waitForTimeout(mode === 'slow' ? 700 : 900);
  await act(page);
  await page.waitForTimeout(400);
  await page.screenshot({ path: `/tmp/ui-shots/${name}.png` });
  await page.close();
}
await browser.close();
await mock.close();
