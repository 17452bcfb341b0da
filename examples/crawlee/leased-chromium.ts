import type { Browser, BrowserContextOptions, BrowserType } from 'playwright-core';
import type { BrowserPool, RunEvent } from 'pooled-browser';
import { leaseBrowser } from 'pooled-browser/playwright';

type Lease = Awaited<ReturnType<typeof leaseBrowser>>;

/**
 * A launcher for Crawlee's `PlaywrightCrawler` that leases browsers instead of starting them, and releases them instead
 * of closing them. Needs `useIncognitoPages: true`, because a persistent profile is a folder on this machine.
 */
export class LeasedChromium implements AsyncDisposable {
  /** For Crawlee's option `launcher`. */
  readonly launcher = { name: () => 'chromium', launch: () => this.#launch() } as unknown as BrowserType;
  /** Numbers of browsers. */
  readonly counts = { leased: 0, released: 0 };
  readonly #pool: BrowserPool;
  readonly #launches = new Set<Promise<Lease>>();
  readonly #closed = new AbortController();

  constructor(pool: BrowserPool) {
    this.#pool = pool;
  }

  /** Releases all browsers: Crawlee does not close a browser that was leased after its timeout. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    const launches = await Promise.allSettled(this.#launches);
    await Promise.all(
      launches.map(async (launch) => launch.status === 'fulfilled' && launch.value.release()),
    );
  }

  /** A browser that is leased after an abort is an orphan, which the pool releases. */
  #count(type: RunEvent['type']): void {
    if (type === 'acquired' || type === 'grant-orphaned') this.counts.leased++;
    if (type === 'released') this.counts.released++;
  }

  async #launch(): Promise<Browser> {
    const launch = leaseBrowser(this.#pool, {
      signal: this.#closed.signal,
      onEvent: ({ type }) => this.#count(type),
    });
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

/** Removes Crawlee's proxy on this machine, which a remote browser cannot reach. Keeps a proxy of yours. */
export function withoutLocalProxy(_id: string, _controller: unknown, options?: BrowserContextOptions): void {
  if (options && !options.proxy) Object.assign(options, { proxy: undefined });
}
