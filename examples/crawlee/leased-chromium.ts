import type { Browser, BrowserContextOptions, BrowserType } from 'playwright-core';
import type { BrowserPool } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

type Lease = Awaited<ReturnType<typeof leaseBrowser>>;

/**
 * A launcher for Crawlee's `PlaywrightCrawler`: leases a browser where it would start one, and gives it back where it
 * would close it. With `useIncognitoPages: true` only; a persistent profile is a folder of this machine.
 */
export class LeasedChromium implements AsyncDisposable {
  /** What to pass as `launcher`. */
  readonly launcher = { name: () => 'chromium', launch: () => this.#launch() } as unknown as BrowserType;
  readonly #pool: BrowserPool;
  readonly #launches = new Set<Promise<Lease>>();
  readonly #closed = new AbortController();

  constructor(pool: BrowserPool) {
    this.#pool = pool;
  }

  /** Gives back what the crawler did not: it forgets a browser that came after its request had timed out. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    const launches = await Promise.allSettled(this.#launches);
    await Promise.all(
      launches.map(async (launch) => launch.status === 'fulfilled' && launch.value.release()),
    );
  }

  async #launch(): Promise<Browser> {
    const launch = leaseBrowser(this.#pool, { signal: this.#closed.signal });
    this.#launches.add(launch);
    const lease = await launch;
    return new Proxy(lease.browser, {
      get(browser, name) {
        if (name === 'close') return async () => void (await lease.release());
        const value: unknown = Reflect.get(browser, name);
        return typeof value === 'function' ? value.bind(browser) : value;
      },
    });
  }
}

/** Crawlee has pages go through a proxy on this machine, which a browser elsewhere can't reach. Yours stay. */
export function withoutLocalProxy(_id: string, _controller: unknown, options?: BrowserContextOptions): void {
  if (options && !options.proxy) Object.assign(options, { proxy: undefined });
}
