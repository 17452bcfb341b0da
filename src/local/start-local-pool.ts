import { inspect } from 'node:util';
import { InvalidOptionError } from '../shared/errors.js';
import { beforeProcessEnds } from '../shared/process-end.js';
import { hideOwnSecret } from '../shared/redact.js';
import { launchChromium } from './browser/chromium.js';
import { findBrowser, isHeadlessShell } from './browser/find-browser.js';
import { DashboardFeed } from './dashboard/dashboard-feed.js';
import { lacksDisplay, VirtualDisplay } from './browser/virtual-display.js';
import type { LocalPoolStats, Log } from './events.js';
import { PoolServer } from './http/server.js';
import { readLocalPoolOptions, type LocalPoolOptions } from './options.js';
import { PoolSet, type LaunchBrowser } from './pool/pool-set.js';

/** A running local pool. Its server keeps the process alive until `close()`. */
export interface LocalPool extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`. */
  readonly baseUrl: string;
  /** The access token. It is not enumerable: `inspect` and JSON of this object do not contain it. */
  readonly token: string;
  /**
   * URL of a page that shows all browsers, leases and recordings, and can end leases. It contains a secret, and works until
   * the pool closes. Not enumerable.
   */
  readonly dashboardUrl: string;
  /** Names of the pools. */
  readonly pools: readonly string[];
  /**
   * Counts browsers and leases.
   *
   * @param pool Name or id of a pool. @default all pools together
   */
  stats(pool?: string): LocalPoolStats;
  /**
   * Ends all waiting requests, WebSockets, browsers and profile folders. Resolves when they are gone. Further calls have
   * no effect.
   */
  close(): Promise<void>;
}

/**
 * Starts the API of the pool service over Chromium processes on this machine, for development, tests and CI.
 *
 * @returns The pool, once the server listens and the first browser runs. The other browsers start in the background.
 * @throws InvalidOptionError; BrowserNotFoundError when this machine has no Chrome or Chromium; LocalPoolError when the
 * port is in use or the browser does not start. Nothing keeps running then.
 */
export async function startLocalPool(options: LocalPoolOptions = {}): Promise<LocalPool> {
  const checked = readLocalPoolOptions(options);
  const executablePath = await findBrowser({ executablePath: checked.executablePath });
  const withWindows = checked.pools.find(({ headless }) => !headless);
  if (withWindows && isHeadlessShell(executablePath)) {
    throw new InvalidOptionError(
      'headless',
      `Pool ${withWindows.name} has headless: false, but ${executablePath} opens no windows. ` +
        'Use a whole Chrome or Chromium: change the option executablePath or CHROME_PATH.',
    );
  }
  hideOwnSecret(checked.token, 'rotated');
  const log: Log = (event) => {
    try {
      checked.onLog?.(event);
    } catch {
      // An error of the caller's function must not break the pool.
    }
    pools.recorder.note(event);
    dashboard.changed();
  };
  const server = new PoolServer();
  await server.listen(checked.port);
  const display = new VirtualDisplay(checked.pools);
  const launch: LaunchBrowser = async ({ headless, viewport }, signal) => {
    const screen = headless || !lacksDisplay() ? undefined : await display.start();
    return await launchChromium({ executablePath, args: checked.args, headless, viewport, screen }, signal);
  };
  const pools = new PoolSet(checked, { host: server.host, log, launch });
  const dashboard = new DashboardFeed(pools);
  const pool = new RunningPool(server, pools, display);
  server.serve({ pools, dashboard });
  try {
    await pools.fill();
  } catch (error) {
    await pool.close();
    throw error;
  }
  log({ type: 'listening', baseUrl: pool.baseUrl });
  return pool;
}

class RunningPool implements LocalPool {
  readonly baseUrl: string;
  readonly pools: readonly string[];
  readonly #server: PoolServer;
  readonly #pools: PoolSet;
  readonly #display: VirtualDisplay;
  readonly #unregister: () => void;
  #closed: Promise<void> | undefined;

  constructor(server: PoolServer, pools: PoolSet, display: VirtualDisplay) {
    this.baseUrl = `http://${pools.host}`;
    this.#unregister = beforeProcessEnds({ servedOrigin: this.baseUrl });
    this.pools = pools.names;
    this.#server = server;
    this.#pools = pools;
    this.#display = display;
  }

  get token(): string {
    return this.#pools.token;
  }

  get dashboardUrl(): string {
    return `${this.baseUrl}/?token=${this.#pools.dashboardToken}`;
  }

  stats(pool?: string): LocalPoolStats {
    if (pool === undefined) return this.#pools.stats;
    const found = this.#pools.find(pool);
    if (found) return found.stats;
    throw new InvalidOptionError('pool', `There is no pool ${pool}. There are: ${this.pools.join(', ')}.`);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** `console.log` does not show the token. */
  [inspect.custom](): string {
    return `LocalPool ${inspect({ baseUrl: this.baseUrl, pools: this.pools })}`;
  }

  async #close(): Promise<void> {
    this.#server.refuse();
    await this.#pools.close();
    await this.#display.close();
    await this.#server.close();
    this.#unregister();
    this.#pools.log({ type: 'closed' });
  }
}
