import { chromium } from 'playwright-core';
import { startMock } from './mock.mjs';
const mock = await startMock({});
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
const shots = [
  ['services-light', '', { width: 1440, height: 900 }, 'light'],
  ['services-dark', '', { width: 1440, height: 900 }, 'dark'],
  ['profile-light', 'profile?v=1&service=checkout', { width: 1440, height: 900 }, 'light'],
  ['profile-dark', 'profile?v=1&service=gateway&q=namespace%3D"prod"&by=pod&search=json', { width: 1440, height: 900 }, 'dark'],
  ['profile-narrow', 'profile?v=1&service=checkout', { width: 390, height: 844 }, 'light'],
];
for (const [name, path, viewport, colorScheme] of shots) {
  if (process.argv[2] && !name.includes(process.argv[2])) continue;
  const page = await browser.newPage({ viewport, colorScheme });
  page.on('console', (m) => console.log(name, m.type(), m.text()));
  page.on('pageerror', (e) => console.log(name, 'ERROR', e.message, e.stack));
  page.on('response', (r) => r.status() >= 400 && console.log(r.status(), r.url()));
  await page.goto(mock.url + path);
  await page.waitForTimeout(1200);
  await page.screenshot({ path: `/tmp/ui-shots/${name}.png` });
  console.log(name, page.url());
  await page.close();
}
await browser.close();
await mock.close();
