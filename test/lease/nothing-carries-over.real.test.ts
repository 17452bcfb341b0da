import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chromium } from 'playwright-core';
import { BrowserPool, serveProxy, type Run } from '../../src/index.js';
import { mapPooledBrowsers, withPooledBrowser } from '../../src/playwright.js';
import { withPooledBrowser as withPuppeteer } from '../../src/puppeteer.js';
import { kernel } from '../../src/services.js';
import { CdpRelay } from '../support/cdp-relay.js';
import { DRIVERS, type AnyLease, type Driver } from '../support/drivers.js';
import { look, pagesOf, useLocalPool } from '../support/local.js';
import { hasOpenSsl, selfSigned } from '../support/self-signed.js';
import { useSite } from '../support/site.js';

const used = useLocalPool();

const site = useSite(({ url, headers }, response) => {
  if (url === '/private') {
    if (headers.authorization !== undefined) response.end('<title>logged in</title>');
    else
      response.writeHead(401, { 'www-authenticate': 'Basic realm="private"' }).end('<title>refused</title>');
  } else if (url === '/worker.js') response.writeHead(200, { 'content-type': 'text/javascript' }).end('1');
  else if (url === '/cookies') response.end(headers.cookie ?? 'none');
  else {
    const cookie = url === '/fill' ? { 'set-cookie': 'hidden=1; HttpOnly; Max-Age=3600' } : {};
    response.writeHead(200, { 'content-type': 'text/html', ...cookie }).end('<title>a site</title>');
  }
});
const inSite = (path: string) => `${site.as('localhost')}/${path}`;

/** Stores something in each place that a site has. */
const FILL = `(async () => {
  document.cookie = 'plain=1; max-age=3600';
  localStorage.setItem('key', 'value');
  await new Promise((resolve, reject) => {
    const open = indexedDB.open('database');
    open.onerror = reject;
    open.onsuccess = () => resolve(open.result.close());
  });
  await caches.open('cache');
  await (await navigator.storage.getDirectory()).getFileHandle('file', { create: true });
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  window.name = 'a name';
})()`;

const LOOK = `(async () => JSON.stringify({
  cookies: await (await fetch('/cookies')).text(),
  storage: localStorage.length,
  databases: (await indexedDB.databases()).length,
  caches: (await caches.keys()).length,
  files: (await Array.fromAsync((await navigator.storage.getDirectory()).keys())).length,
  workers: (await navigator.serviceWorker.getRegistrations()).length,
  geolocation: (await navigator.permissions.query({ name: 'geolocation' })).state,
  name: window.name,
}))()`;

const CLEAN = {
  cookies: 'none',
  storage: 0,
  databases: 0,
  caches: 0,
  files: 0,
  workers: 0,
  geolocation: 'prompt',
  name: '',
};
const FULL = {
  cookies: 'hidden=1; plain=1',
  storage: 1,
  databases: 1,
  caches: 1,
  files: 1,
  workers: 1,
  geolocation: 'granted',
  name: 'a name',
};

/** The parts that both libraries have, with their own names for permissions. */
interface Page {
  on(event: 'dialog', listener: () => void): void;
  goto(url: string): Promise<unknown>;
  click(selector: string): Promise<void>;
  evaluate(script: string): Promise<unknown>;
}
interface Permissions {
  grantPermissions?(names: string[], options: object): Promise<void>;
  overridePermissions(site: string, names: string[]): Promise<void>;
}

async function seen({ page }: AnyLease): Promise<object> {
  await page.goto(inSite('look'));
  return JSON.parse(await page.evaluate<string>(LOOK)) as object;
}

/** Fills the page's context, and returns what the page finds there. */
async function fill(lease: AnyLease): Promise<object> {
  const { page, browser, context } = lease;
  await page.goto(inSite('fill'));
  await page.evaluate(FILL);
  const permissions = (context ??
    (browser as unknown as { defaultBrowserContext(): Permissions }).defaultBrowserContext()) as Permissions;
  if (permissions.grantPermissions)
    await permissions.grantPermissions(['geolocation'], { origin: inSite('') });
  else await permissions.overridePermissions(inSite(''), ['geolocation']);
  return seen(lease);
}

interface OwnContext {
  newPage(): Promise<Page>;
  pages(): Page[] | Promise<Page[]>;
}

function ownContextOf({ browser }: AnyLease): OwnContext {
  const either = browser as unknown as { contexts?(): OwnContext[]; defaultBrowserContext(): OwnContext };
  return either.contexts?.()[0] ?? either.defaultBrowserContext();
}

/** Leaves a page that asks before it closes, and one with an open dialog that has broken its own JavaScript. */
async function leavePages(lease: AnyLease, openPage: Driver['openPage']): Promise<void> {
  const asking = (await openPage(lease)) as Page;
  await asking.goto(inSite('asks'));
  await asking.evaluate('void (onbeforeunload = (event) => event.preventDefault())');
  await asking.click('body');
  const blocked = (await openPage(lease)) as Page;
  const opened = new Promise<void>((resolve) => blocked.on('dialog', resolve));
  await blocked.goto(inSite('blocked'));
  await blocked.evaluate(`void setTimeout(() => { Map = Promise = eval = undefined; alert('open') })`);
  await opened;
}

describe.each(DRIVERS)('$name', ({ name, run, openPage }) => {
  const isPuppeteer = name.startsWith('Puppeteer');
  const next = async () => (await run(used.pool, seen)).value;
  const pages = () => look(used.pool, pagesOf);
  const fillAndLeavePages = async (lease: AnyLease) => {
    const filled = await fill(lease);
    await leavePages(lease, openPage);
    return filled;
  };

  it('leaves nothing of a lease to the next one, and reuses the browser', async () => {
    const first = await run(used.pool, fillAndLeavePages);
    expect(first.value).toEqual(FULL);
    expect(first).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(await pages()).toEqual(['about:blank']);
    expect(await next()).toEqual(CLEAN);
  });

  it("leaves the browser as it is with release: 'reuse', and its own context with context: 'new'", async () => {
    expect(await run(used.pool, fill, { release: 'reuse' })).toMatchObject({ released: 'reused' });
    expect(await pages()).toEqual([inSite('look')]);
    const another = await run(used.pool, fillAndLeavePages, { context: 'new' });
    expect(another.value).toEqual(FULL);
    expect(another).toMatchObject({ released: 'reused', cleanupErrors: [] });
    expect(await pages()).toEqual([inSite('look')]);
    // The permission ended with its connection.
    expect(await next()).toMatchObject({ ...FULL, geolocation: 'prompt', name: 'a name' });
    expect(await next()).toEqual(CLEAN);
  });

  const login = async ({ page }: AnyLease) => {
    await page.goto(inSite('private').replace('//', '//user:secret@'));
    return page.title();
  };
  const loggedIn = async ({ page }: AnyLease) => {
    await page.goto(inSite('private')).catch(() => {});
    return page.title();
  };
  const answer = async ({ page }: AnyLease) => {
    // Only of Puppeteer.
    await (page as unknown as { authenticate(one: object): Promise<void> }).authenticate({
      username: 'user',
      password: 'secret',
    });
    return loggedIn({ page } as AnyLease);
  };
  const challenged = async ({ page }: AnyLease) => {
    await page.goto(inSite('look'));
    return page.evaluate<string>(`fetch('/private').then((response) => String(response.status))`);
  };

  const expectLogin = (ended: Run<string>, value: string) => {
    expect(ended).toMatchObject({ value, released: 'destroyed' });
    expect(String(ended.cleanupErrors[0]?.cause)).toContain('HTTP login');
    expect(JSON.stringify(ended.cleanupErrors)).not.toContain('secret');
  };

  it('a login ends with its context or its browser, also if a response only asked for one', async () => {
    expectLogin(await run(used.pool, login), 'logged in');
    if (isPuppeteer) expectLogin(await run(used.pool, answer), 'logged in');
    const inContext = await run(used.pool, login, { context: 'new' });
    expect(inContext).toMatchObject({ value: 'logged in', released: 'reused', cleanupErrors: [] });
    expectLogin(await run(used.pool, challenged), '401');
  });

  it.each<[how: string, open: (context: OwnContext) => Promise<Page>]>([
    ['opened a page', (context) => context.newPage()],
    ['navigated the page', async (context) => (await context.pages())[0]!],
  ])(
    "leaves nothing if a callback with context: 'new' %s of the browser's own context",
    async (_how, open) => {
      const useOwnContext = async (lease: AnyLease) => {
        const page = await open(ownContextOf(lease));
        await page.goto(inSite('fill'));
      };
      const ended = await run(used.pool, useOwnContext, { context: 'new' });
      expect(ended).toMatchObject({ released: 'reused', cleanupErrors: [] });
      expect(await pages()).toEqual(['about:blank']);
      expect(await next()).toEqual(CLEAN);
    },
  );
});

it('between tasks with isolation storage, a login ends with its context', async () => {
  const task = async ({ page, input }: { page: Page & { title(): Promise<string> }; input: string }) => {
    await page.goto(input).catch(() => {});
    return page.title();
  };
  const inputs = [inSite('private').replace('//', '//user:secret@'), inSite('private'), inSite('look')];
  const options = { isolation: 'storage', concurrency: 1, pagesPerLease: 1, ordered: true } as const;
  const titles: unknown[] = [];
  for await (const outcome of mapPooledBrowsers(used.pool, inputs, task, options))
    titles.push(outcome.status === 'fulfilled' && outcome.value);
  expect(titles[0]).toBe('logged in');
  expect(titles[1]).not.toBe('logged in');
});

it('a login by a client of the proxy makes the browser unclean', async () => {
  await using proxy = await serveProxy(used.pool, { keep: 1 });
  const client = await chromium.connectOverCDP(proxy.url);
  const page = client.contexts()[0]!.pages()[0]!;
  await page.goto(inSite('private').replace('//', '//user:secret@'));
  expect(await page.title()).toBe('logged in');
  await client.close();
  await proxy[Symbol.asyncDispose]();
  const { value } = await withPooledBrowser(used.pool, async ({ page: next }) => {
    await next.goto(inSite('private')).catch(() => {});
    return next.title();
  });
  expect(value).not.toBe('logged in');
});

describe.runIf(hasOpenSsl)('a certificate that nobody trusts', () => {
  const secure = createServer(selfSigned(), (_request, response) => response.end('<title>accepted</title>'));
  const open = async ({ page }: { page: Page & { title(): Promise<string> } }) => {
    await page.goto(`https://127.0.0.1:${(secure.address() as AddressInfo).port}`).catch(() => {});
    return page.title();
  };
  beforeAll(() => once(secure.listen(0, '127.0.0.1'), 'listening'));
  afterAll(() => void secure.close());

  it.each<[how: string, released: string, use: () => Promise<object>]>([
    [
      'a command',
      'destroyed',
      () =>
        withPooledBrowser(used.pool, async ({ page, context }) => {
          const client = await context.newCDPSession(page);
          await client.send('Security.setIgnoreCertificateErrors', { ignore: true });
          return open({ page });
        }),
    ],
    [
      'an option of Puppeteer',
      'destroyed',
      () => withPuppeteer(used.pool, open, { connectOptions: { acceptInsecureCerts: true } }),
    ],
    [
      'an option of Puppeteer over WebDriver BiDi',
      'destroyed',
      () =>
        withPuppeteer(used.pool, open, { protocol: 'bidi', connectOptions: { acceptInsecureCerts: true } }),
    ],
    [
      'an option of a context of its own',
      'reused',
      () =>
        withPooledBrowser(used.pool, open, { context: 'new', contextOptions: { ignoreHTTPSErrors: true } }),
    ],
    [
      'an option of a further context',
      'reused',
      () =>
        withPooledBrowser(used.pool, async ({ browser }) => {
          const credentials = { username: 'user', password: 'secret' };
          const options = { ignoreHTTPSErrors: true, httpCredentials: credentials };
          const page = await (await browser.newContext(options)).newPage();
          await page.goto(inSite('private'));
          expect(await page.title()).toBe('logged in');
          return open({ page });
        }),
    ],
  ])('that a lease accepted by %s is refused in the next one', async (_how, released, use) => {
    expect(await use()).toMatchObject({ value: 'accepted', released });
    expect((await withPooledBrowser(used.pool, open)).value).not.toBe('accepted');
  });
});

it.each(['FetchKeepAlive.Requests2', 'Download.Counts'])(
  'a browser in which %s has another name is destroyed',
  async (counter) => {
    await using relay = await CdpRelay.start((path) => decodeURIComponent(path.slice(1)));
    relay.changes = () => ({ toClient: (text) => [text.replaceAll(`"${counter}`, `"New${counter}`)] });
    const grant: typeof kernel.grant = (...args) => {
      const granted = kernel.grant(...args);
      const url = encodeURIComponent(String(granted.cdpUrl));
      return { ...granted, cdpUrl: `ws://127.0.0.1:${relay.port}/${url}` };
    };
    const { baseUrl, token } = used.local;
    await using pool = new BrowserPool('test', { service: { ...kernel, grant }, baseUrl, token });
    const { released, cleanupErrors } = await withPooledBrowser(pool, ({ page }) =>
      page.goto(inSite('look')),
    );
    expect(released).toBe('destroyed');
    expect(String(cleanupErrors[0]?.cause)).toContain('does not count its downloads and keepalive requests');
  },
);
