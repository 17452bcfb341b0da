import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { BrowserPool, isPoolServiceError, serveProxy, type ProxyOptions } from '../../src/index.js';
import type { LocalPool } from '../../src/local.js';
import * as playwright from '../../src/playwright.js';
import * as puppeteer from '../../src/puppeteer.js';
import { CdpRelay } from './cdp-relay.js';
import { look } from './local.js';
import type { AnyPage } from './polling-pages.js';
import { variablesOf } from './program.js';

/** A pool, and what a lease shows in its page. */
export interface Scene {
  readonly local: LocalPool;
  readonly allowedHosts: string;
  readonly show: (page: AnyPage) => Promise<void>;
}

/** Leases a browser, shows the pages, and ends the lease. Resolves to the time of the release, in ms. */
export type End = (scene: Scene) => Promise<number>;

/** The client of a pool for one lease. */
function poolOf({ local: { baseUrl, token, pools } }: Scene): BrowserPool {
  return new BrowserPool(pools[0]!, { baseUrl, token });
}

const over = () => new Error('The lease ends.');
const hang = () => new Promise<never>(() => {});

interface Closable extends AnyPage {
  close(): Promise<void>;
}
interface Handles {
  page: AnyPage;
  browser: { newContext?(): Promise<unknown>; createBrowserContext?(): Promise<unknown> };
}

/** A page in a context of its own. */
async function pageInContext({ browser }: Handles): Promise<{ page: Closable; close(): Promise<void> }> {
  const context = (await (browser.newContext ?? browser.createBrowserContext)!.call(browser)) as {
    newPage(): Promise<Closable>;
    close(): Promise<void>;
  };
  return { page: await context.newPage(), close: () => context.close() };
}

/** The ends of a lease of a library. */
function endsOf(name: 'playwright' | 'puppeteer'): Record<string, End> {
  const library = (name === 'playwright' ? playwright : puppeteer) as typeof puppeteer;
  type Options = Parameters<typeof puppeteer.withPooledBrowser>[2];
  const run =
    (options: Options = {}, finish: () => unknown = () => {}): End =>
    async (scene) => {
      await using pool = poolOf(scene);
      const use = async ({ page }: Handles) => {
        await scene.show(page);
        await finish();
      };
      const { allowedHosts } = scene;
      const ended = await library
        .withPooledBrowser(pool, use as never, { allowedHosts, ...options })
        .catch(() => undefined);
      const at = Date.now();
      if (options?.release === 'leave')
        await pool.release(ended!.session.session_id, { reuse: false }).catch(() => {});
      return at;
    };
  const lose: End = async (scene) => {
    await using far = poolOf(scene);
    return await look(far, async ({ cdp_ws_url: url }) => {
      await using relay = await CdpRelay.start(() => url);
      await using pool = new BrowserPool('any', { service: relay.service() });
      const use = async ({ page }: Handles) => {
        await scene.show(page);
        await relay[Symbol.asyncDispose]();
        await hang();
      };
      await library
        .withPooledBrowser(pool, use as never, { allowedHosts: scene.allowedHosts })
        .catch(() => {});
      return Date.now();
    });
  };
  return {
    return: run(),
    throw: run({}, () => {
      throw over();
    }),
    timeout: async (scene) => {
      // It begins with the callback, before the pages are shown.
      let stop = () => {};
      const shown = new Promise<void>((resolve) => (stop = resolve));
      await using pool = poolOf(scene);
      const use = async ({ page }: Handles) => {
        await scene.show(page).then(stop, stop);
        await hang();
      };
      const options = { allowedHosts: scene.allowedHosts, timeout: 30_000 };
      const lease = library.withPooledBrowser(pool, use as never, options).catch(() => {});
      await shown;
      await lease;
      return Date.now();
    },
    abort: async (scene) => {
      const abort = new AbortController();
      // The call rejects before the release.
      let onReleased = () => {};
      const released = new Promise<void>((resolve) => (onReleased = resolve));
      const onEvent = ({ type }: { type: string }) => void (type === 'released' && onReleased());
      await run({ signal: abort.signal, onEvent }, () => abort.abort(over()))(scene);
      await released;
      return Date.now();
    },
    "release 'leave'": run({ release: 'leave' }),
    "release 'reuse'": run({ release: 'reuse' }),
    "release 'destroy'": run({ release: 'destroy' }),
    'lost connection': lose,
    'lease.release()': async (scene) => {
      await using pool = poolOf(scene);
      const lease = await library.leaseBrowser(pool, { allowedHosts: scene.allowedHosts, release: 'reuse' });
      await scene.show(lease.page);
      await lease.release();
      return Date.now();
    },
    'pool.close()': async (scene) => {
      const pool = poolOf(scene);
      const lease = await library.leaseBrowser(pool, { allowedHosts: scene.allowedHosts });
      await scene.show(lease.page);
      await pool.close();
      return Date.now();
    },
    SIGTERM: async (scene) => {
      const program = `
        import { withPooledBrowser } from 'pooled-browser/${name}';
        await withPooledBrowser('${scene.local.pools[0]!}', async ({ page }) => {
          process.stdin.resume();
          console.log('leased');
          const [url] = await new Promise((resolve) => process.stdin.once('data', (data) => resolve(String(data).split('\\n'))));
          await page.goto(url);
          await new Promise(() => {});
        }, { allowedHosts: '${scene.allowedHosts}' });`;
      const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
        env: { ...process.env, ...variablesOf(scene.local) },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      await once(child.stdout, 'data');
      await scene.show({ goto: async (url) => void child.stdin.write(`${url}\n`) });
      child.kill('SIGTERM');
      await once(child, 'exit');
      return Date.now();
    },
    'a context that the client closes': async (scene) => {
      await using pool = poolOf(scene);
      const use = async (handles: Handles) => {
        const { page, close } = await pageInContext(handles);
        await scene.show(page);
        void close().catch(() => {});
        await sleep(50);
      };
      const options = { allowedHosts: scene.allowedHosts, release: 'reuse' } as const;
      await library.withPooledBrowser(pool, use as never, options);
      return Date.now();
    },
  };
}

/** A client of a proxy. */
interface ProxyClient {
  readonly page: AnyPage;
  /** Closes its page with the context, if the client has made one. */
  closeContext?(): Promise<void>;
  leave(): Promise<void>;
}
type Connect = (urls: { url: string; playwrightUrl?: string | undefined }) => Promise<ProxyClient>;

const CONNECTS: Record<string, Connect> = {
  'proxy /': async ({ url }) => {
    const browser = await chromium.connectOverCDP(url);
    const context = await browser.newContext();
    return {
      page: await context.newPage(),
      closeContext: () => context.close(),
      leave: () => browser.close(),
    };
  },
  'proxy /playwright': async ({ playwrightUrl }) => {
    const browser = await chromium.connect(playwrightUrl!);
    const context = await browser.newContext();
    return {
      page: await context.newPage(),
      closeContext: () => context.close(),
      leave: () => browser.close(),
    };
  },
};

/** The ends of a lease of a client of a proxy. */
function endsOfProxy(connect: Connect): Record<string, End> {
  const serve =
    (
      finish: (client: ProxyClient, proxy: { close(): Promise<void>; pool: BrowserPool }) => unknown,
      options: ProxyOptions = {},
    ): End =>
    async (scene) => {
      const pool = poolOf(scene);
      let onReleased = (_at: number) => {};
      const released = new Promise<number>((resolve) => (onReleased = resolve));
      let session = '';
      const proxy = await serveProxy(pool, {
        allowedHosts: scene.allowedHosts,
        ...options,
        onClient: (event) => {
          if (event.type !== 'released') return;
          session = event.sessionId;
          onReleased(Date.now());
        },
      });
      const client = await connect(proxy);
      await scene.show(client.page);
      await finish(client, { close: () => proxy.close(), pool });
      const at = await released;
      await client.leave().catch(() => {});
      // A browser whose pages could not be closed in time is destroyed instead.
      if (options.release === 'leave')
        await pool.release(session, { reuse: false }).catch((error: unknown) => {
          if (!isPoolServiceError(error) || error.status !== 404) throw error;
        });
      await proxy.close();
      await pool.close();
      return at;
    };
  return {
    'a client that leaves': serve((client) => client.leave()),
    "release 'leave'": serve((client) => client.leave(), { release: 'leave' }),
    "release 'reuse'": serve((client) => client.leave(), { release: 'reuse' }),
    "release 'destroy'": serve((client) => client.leave(), { release: 'destroy' }),
    'a client that is idle': serve(() => {}, { idleTimeout: 1500 }),
    'proxy.close()': serve((_client, proxy) => void proxy.close()),
    'pool.close()': serve((_client, { pool }) => void pool.close()),
    'a context that the client closes': serve(
      async (client) => {
        void client.closeContext!().catch(() => {});
        await sleep(50);
        await client.leave();
      },
      { release: 'reuse' },
    ),
    SIGTERM: async (scene) => {
      const args = ['dist/cli/main.js', 'proxy', scene.local.pools[0]!, '--json', '--port', '0'];
      const child = spawn(process.execPath, [...args, '--allow-hosts', scene.allowedHosts], {
        env: { ...process.env, ...variablesOf(scene.local) },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const { url, playwright: playwrightUrl } = JSON.parse(String(line).split('\n')[0]!) as {
        url: string;
        playwright?: string;
      };
      child.stdout.resume();
      const client = await connect({ url, playwrightUrl });
      await scene.show(client.page);
      child.kill('SIGTERM');
      await once(child, 'exit');
      const at = Date.now();
      await client.leave().catch(() => {});
      return at;
    },
  };
}

/** The ends of a lease, by the client of the browser. */
export const LEASE_ENDS: Record<string, Record<string, End>> = {
  Playwright: endsOf('playwright'),
  Puppeteer: endsOf('puppeteer'),
  ...Object.fromEntries(Object.entries(CONNECTS).map(([name, connect]) => [name, endsOfProxy(connect)])),
};
