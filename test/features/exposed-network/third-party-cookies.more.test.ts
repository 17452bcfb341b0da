import { expect, it } from 'vitest';
import { useLocalPool } from '../../support/local.js';
import { LocalhostApp } from '../../support/localhost-app.js';
import { useWholeBrowser } from '../../support/whole-browser.js';
import * as playwright from '../../../src/playwright.js';

// The headless shell blocks no cookies.
useWholeBrowser();
const here = useLocalPool();
const elsewhere = useLocalPool({
  args: ['--host-resolver-rules=MAP localhost 127.0.0.1:9, MAP *.localhost 127.0.0.1:9'],
});

it('neither sends nor stores the cookies of another site in a new context of a whole Chromium, as the browser', async () => {
  await using app = await LocalhostApp.start();
  const at = app.origins.http;
  const other = at.replace('localhost', 'shop.localhost');
  const set = (...cookies: string[]) =>
    `${other}/any?${new URLSearchParams(cookies.map((one) => ['header', `set-cookie: ${one}; SameSite=None; Secure; Path=/`]))}`;
  const show = async (context: playwright.PlaywrightHandles['context']) => {
    app.log = [];
    const page = await context.newPage();
    await page.goto(set('first=1'));
    const found: unknown[] = [await page.evaluate(`import('/cookies').then(() => cookies)`)];
    await page.goto(`${at}/text`);
    found.push(
      await page.evaluate(`(async () => {
        const sent = async () => (await fetch('${other}/cookies', { credentials: 'include' })).text();
        const before = await sent();
        await fetch('${set('third=1')}', { mode: 'no-cors', credentials: 'include' });
        const frame = document.createElement('iframe');
        frame.src = '${set('framed=1')}';
        document.body.append(frame);
        await new Promise((resolve) => (frame.onload = resolve));
        const socket = new WebSocket('${other.replace('http', 'ws')}/socket');
        await new Promise((resolve) => (socket.onopen = resolve));
        return [before, await sent()];
      })()`),
    );
    const sent = app.log.flatMap((line) => (line.startsWith('upgrade') ? /"cookie":"[^"]*"/.exec(line) : []));
    return {
      found,
      sent: sent.flatMap((one) => one ?? []),
      stored: (await context.cookies()).map(({ name }) => name).sort(),
    };
  };
  const look = async ({ browser }: playwright.PlaywrightHandles) => show(await browser.newContext());
  const { value: local } = await playwright.withPooledBrowser(here.pool, look);
  const exposeNetwork = 'localhost,*.localhost';
  const { value: leased } = await playwright.withPooledBrowser(elsewhere.pool, look, { exposeNetwork });
  expect(local.stored).toEqual(['first']);
  expect(leased).toEqual(local);
});
