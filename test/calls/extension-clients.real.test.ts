import { once } from 'node:events';
import puppeteer from 'puppeteer-core';
import { expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { serveProxy } from '../../src/index.js';
import { titled, useLocalPool } from '../support/local.js';
import { marking, useExtensions } from '../support/extension.js';
import { useWholeBrowser } from '../support/whole-browser.js';

// A headless shell has no extensions.
useWholeBrowser();
const used = useLocalPool();
const folders = useExtensions({ loaded: marking('loaded') });
const STRANGER = 'a'.repeat(32);

/** Connects a program that loads an extension. */
async function connect(browserWSEndpoint: string) {
  const browser = await puppeteer.connect({ browserWSEndpoint });
  return { browser, id: await browser.installExtension(folders.loaded) };
}

/** Connects as the worker of an extension. */
const openAs = (url: string, id: string) => new WebSocket(url, { origin: `chrome-extension://${id}` });

/** Resolves to 'open' or to the status of the refusal. */
async function outcomeOf(client: WebSocket): Promise<number | string> {
  const open = once(client, 'open').then(() => 'open');
  const refused = once(client, 'unexpected-response').then(([, { statusCode }]) => statusCode as number);
  return Promise.race([open, refused]).finally(() => client.close());
}

/** The browsers of the proxy's leases, by a page of each. */
async function titlesFor(client: WebSocket): Promise<string> {
  await once(client, 'open');
  client.send(JSON.stringify({ id: 1, method: 'Target.getTargets' }));
  const [answer] = (await once(client, 'message')) as [Buffer];
  return answer.toString();
}

it('an extension that is loaded in a leased browser can be a client of it, no other one and no page', async () => {
  const session = (await used.pool.acquire({ acquire_timeout_seconds: 60 }))!;
  const url = session.cdp_ws_url;
  const { browser, id } = await connect(url);
  expect(await outcomeOf(openAs(url, id))).toBe('open');
  expect(await outcomeOf(openAs(url, STRANGER))).toBe(403);
  expect(await outcomeOf(openAs(url.replace(/jwt=.*/, 'jwt=e30.e30.e30'), id))).toBe(401);
  expect(await outcomeOf(new WebSocket(url, { origin: 'https://site.test' }))).toBe(403);
  await browser.disconnect();
  await used.pool.release(session.session_id, { reuse: false });
});

it('an extension that a client of a proxy has loaded reaches the browser of this client, as long as it is there', async () => {
  await using proxy = await serveProxy(used.pool);
  const url = `${proxy.url.replace('http', 'ws')}/alice`;
  const { browser, id } = await connect(url);
  const page = await browser.newPage();
  await page.goto(titled('of alice'));
  const worker = openAs(url, id);
  expect(await titlesFor(worker)).toContain('of alice');
  expect(proxy.counts.leased).toBe(1);
  const closed = once(worker, 'close');
  await browser.disconnect();
  await closed;
});

it('a proxy refuses an extension that no client has loaded, without a name, or without a secret', async () => {
  await using proxy = await serveProxy(used.pool);
  const url = proxy.url.replace('http', 'ws');
  const reasons: string[] = [];
  expect(await outcomeOf(openAs(`${url}/nobody`, STRANGER))).toBe(403);
  const { browser, id } = await connect(`${url}/alice`);
  expect(await outcomeOf(openAs(`${url}/alice`, STRANGER))).toBe(403);
  expect(await outcomeOf(openAs(`${url}/bob`, id))).toBe(403);
  expect(await outcomeOf(openAs(`${url}/alice/session`, id))).toBe(403);
  expect(await outcomeOf(openAs(url, id))).toBe(409);
  expect(await outcomeOf(openAs(url.replace(/[^/]*$/, ''), id))).toBe(404);
  expect(await outcomeOf(new WebSocket(`${url}/alice`, { origin: 'https://site.test' }))).toBe(403);
  expect(proxy.counts.leased).toBe(1);
  await browser.disconnect();
  await proxy.close();
  await using open = await serveProxy(used.pool, {
    secret: false,
    onClient: (event) => {
      if (event.type === 'refused') reasons.push(event.reason);
    },
  });
  const named = `${open.url.replace('http', 'ws')}/alice`;
  const second = await connect(named);
  expect(await outcomeOf(openAs(named, second.id))).toBe(403);
  expect(reasons).toEqual(['Requests from other origins are refused.']);
  await second.browser.disconnect();
});
