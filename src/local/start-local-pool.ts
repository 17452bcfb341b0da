import { inspect } from 'node:util';
import { InvalidOptionError } from '../shared/errors.js';
import { beforeProcessEnds } from '../shared/process-end.js';
import { hideOwnSecret } from '../shared/redact.js';
import { apiRoutes } from './api/routes.js';
import { NO_UDP } from './browser/chromium-flags.js';
import { findBrowser, isHeadlessShell } from './browser/find-browser.js';
import { KINDS } from './browser/local-browser.js';
import { lacksDisplay, VirtualDisplay } from './browser/virtual-display.js';
import type { LocalPoolEvent, LocalPoolStats } from './events.js';
import type { FeatureContext } from './feature.js';
import { startFeatures } from './features.js';
import { Pages } from './http/pages.js';
import { PoolServer } from './http/server.js';
import { readLocalPoolOptions, type CheckedOptions, type LocalPoolOptions } from './options.js';
import type { LaunchBrowser } from './pool/served-pool.js';
import { PoolSet } from './pool/pool-set.js';
import { LeaseRecordings } from './replays/lease-recordings.js';
import { replayPages } from './replays/replay-pages.js';
import { LeaseTokens } from './sockets/jwt.js';
import { upgrade } from './sockets/upgrade.js';

/** A running local pool. Its server keeps the process alive until `close()`. */
export interface LocalPool extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`. */
  readonly baseUrl: string;
  /** The access token. It is not enumerable: `inspect` and JSON of this object do not contain it. */
  readonly token: string;
  /**
   * URL of a page that shows browsers, leases and recordings. It contains a secret, and works until
   * the pool closes. The property is not enumerable.
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
   * Ends all waiting requests, WebSockets, browsers and profile folders. Resolves when they have ended. Further calls have
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
  const { browser } = checked;
  const executablePath = await findBrowser({ browser, executablePath: checked.executablePath });
  const withWindows = checked.pools.find(({ headless }) => !headless);
  if (withWindows && isHeadlessShell(executablePath)) {
    throw new InvalidOptionError(
      'headless',
      `Pool ${withWindows.name} has headless: false, but ${executablePath} opens no windows. ` +
        'Use a whole Chrome or Chromium: change the option executablePath or CHROME_PATH.',
    );
  }
  hideOwnSecret(checked.token, 'rotated');
  const server = new PoolServer();
  await server.listen(checked.port);
  const { pool, pools, log } = assemble(checked, executablePath, server);
  try {
    await pools.fill();
  } catch (error) {
    await pool.close();
    throw error;
  }
  log({ type: 'listening', baseUrl: pool.baseUrl });
  return pool;
}

/** Creates the parts of a local pool, and gives each what it needs. Starts to serve them. */
function assemble(checked: CheckedOptions, executablePath: string, server: PoolServer) {
  const { token, quirks, recording } = checked;
  const { host } = server;
  const log = (event: LocalPoolEvent) => {
    try {
      checked.onLog?.(event);
    } catch {
      // An error of the caller's function must not break the pool.
    }
    recordings.note(event);
    for (const feature of features) feature.onEvent?.();
  };
  const display = new VirtualDisplay(checked.pools);
  const { browser } = checked;
  const launch: LaunchBrowser = async ({ headless, viewport, noUdp }, signal) => {
    const screen = headless || !lacksDisplay() ? undefined : await display.start();
    const args = noUdp === true ? [...checked.args, ...NO_UDP] : checked.args;
    return await KINDS[browser].launch({ executablePath, args, headless, viewport, screen }, signal);
  };
  const neverUdp = browser !== 'chromium' || NO_UDP.every((flag) => checked.args.includes(flag));
  const pools = new PoolSet(checked.pools, { quirks, log, launch, neverUdp });
  // Only a pool of Chromium has recordings.
  const launchEncoder = async (signal: AbortSignal) => (await launch({ headless: true }, signal)).chromium!;
  const recordings = new LeaseRecordings({ limits: recording, launch: launchEncoder, log });
  const liveLinks: FeatureContext['liveLinks'] = (pool, lease) =>
    features.map((feature) => feature.liveLinks?.(pool, lease)).find((links) => links !== undefined);
  const context = { host, pools, recordings, quirks, log, liveLinks };
  const { features, dashboardUrl } = startFeatures(context);
  const parts = { ...context, tokens: new LeaseTokens(), features };
  server.serve({
    token,
    log,
    routes: apiRoutes(parts),
    pages: new Pages([replayPages(recordings), ...features]),
    upgrade: (...received) => upgrade(parts, ...received),
  });
  const close = async () => {
    server.refuse();
    for (const part of [pools, recordings, display, server]) await part.close();
  };
  return { pool: new RunningPool({ host, token, dashboardUrl, pools, close, log }), pools, log };
}

interface RunningPoolOptions {
  readonly host: string;
  readonly token: string;
  readonly dashboardUrl: string;
  readonly pools: PoolSet;
  readonly close: () => Promise<void>;
  readonly log: (event: LocalPoolEvent) => void;
}

class RunningPool implements LocalPool {
  readonly baseUrl: string;
  readonly pools: readonly string[];
  readonly #options: RunningPoolOptions;
  readonly #unregister: () => void;
  #closed: Promise<void> | undefined;

  constructor(options: RunningPoolOptions) {
    this.baseUrl = `http://${options.host}`;
    this.#unregister = beforeProcessEnds({ servedOrigin: this.baseUrl });
    this.pools = options.pools.names;
    this.#options = options;
  }

  get token(): string {
    return this.#options.token;
  }

  get dashboardUrl(): string {
    return this.#options.dashboardUrl;
  }

  stats(pool?: string): LocalPoolStats {
    if (pool === undefined) return this.#options.pools.stats;
    const found = this.#options.pools.find(pool);
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
    await this.#options.close();
    this.#unregister();
    this.#options.log({ type: 'closed' });
  }
}
