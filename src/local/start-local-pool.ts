import { inspect } from 'node:util';
import { InvalidOptionError } from '../shared/errors.js';
import { ownOrigins } from '../shared/process-end.js';
import { hideSecret } from '../shared/redact.js';
import { launchChromium } from './browser/chromium.js';
import { findBrowser } from './browser/find-browser.js';
import { DashboardFeed } from './dashboard/dashboard-feed.js';
import { DisplayOnDemand } from './display/display-on-demand.js';
import { checkOptions, type CheckedOptions } from './options/check-options.js';
import { safeLog, type Log } from './events.js';
import { PoolServer } from './http/server.js';
import type { LocalPool, LocalPoolStats } from './local-pool.js';
import type { LocalPoolOptions } from './options.js';
import { PoolSet } from './pool/pool-set.js';
import { Recorder } from './replays/recorder.js';
import { StartLimit } from './pool/start-limit.js';
import { LeaseTokens } from './sockets/jwt.js';
import { upgrade } from './sockets/upgrade.js';

/**
 * Starts the service's interface over Chromium processes of this machine: for development, tests and CI.
 *
 * Resolves when the server listens and the first browser has started; the others start in the background. The server
 * and its browsers keep this process alive until `close()`.
 *
 * Throws `InvalidOptionError`, `BrowserNotFoundError` when this machine has no Chrome or Chromium, and `LocalPoolError`
 * when the port is taken or the browser does not start. Nothing is left running then.
 */
export async function startLocalPool(options: LocalPoolOptions = {}): Promise<LocalPool> {
  const checked = checkOptions(options);
  const executablePath = await findBrowser({ executablePath: checked.executablePath });
  hideSecret(checked.token);
  const callersLog = safeLog(checked.onLog);
  const log: Log = (event) => {
    callersLog(event);
    pools.recorder.note(event);
    dashboard.changed();
  };
  const server = new PoolServer();
  await server.listen(checked.port);
  const { port } = server;
  const display = new DisplayOnDemand(checked.pools);
  const pools = createPools({ ...checked, executablePath, port }, display, log);
  const dashboard = new DashboardFeed(pools);
  const { token } = checked;
  const pool = new RunningPool({ token, server, pools, display, log }, await pools.tokens.signDashboard());
  server.serve({
    token,
    pools,
    log,
    onUpgrade: (...upgraded) => void upgrade({ pools, dashboard, port, log }, ...upgraded),
  });
  try {
    await pools.fill();
  } catch (error) {
    await pool.close();
    throw error;
  }
  log({ type: 'listening', baseUrl: pool.baseUrl });
  return pool;
}

/** Browsers that start at the same time, over all pools. */
const MOST_STARTS = 2;

/** What pools are made from: the caller's options, and what was found out since. */
interface Ingredients extends CheckedOptions {
  readonly executablePath: string;
  /** The server's. */
  readonly port: number;
}

function createPools(ingredients: Ingredients, display: DisplayOnDemand, log: Log): PoolSet {
  const { pools, args, quirks, recording, executablePath, port } = ingredients;
  const launchStudio = (signal: AbortSignal) =>
    launchChromium({ executablePath, args, headless: true }, signal);
  const recorder = new Recorder({ limits: recording, launch: launchStudio, log });
  return new PoolSet(
    pools,
    { quirks, tokens: new LeaseTokens(), host: `127.0.0.1:${port}`, recorder },
    {
      log,
      limit: new StartLimit(MOST_STARTS),
      launch: async (settings, signal) => {
        const { headless, viewport } = settings;
        const screen = await display.screenFor(settings);
        return await launchChromium({ executablePath, args, headless, viewport, screen }, signal);
      },
    },
  );
}

/** What a running pool consists of. */
interface Parts {
  readonly token: string;
  readonly server: PoolServer;
  readonly pools: PoolSet;
  readonly display: DisplayOnDemand;
  readonly log: Log;
}

class RunningPool implements LocalPool {
  readonly baseUrl: string;
  readonly pools: readonly string[];
  readonly #parts: Parts;
  readonly #dashboardJwt: string;
  #closed: Promise<void> | undefined;

  constructor(parts: Parts, dashboardJwt: string) {
    this.baseUrl = `http://127.0.0.1:${parts.server.port}`;
    ownOrigins.add(this.baseUrl);
    this.pools = parts.pools.names;
    this.#parts = parts;
    this.#dashboardJwt = dashboardJwt;
  }

  get token(): string {
    return this.#parts.token;
  }

  get dashboardUrl(): string {
    return `${this.baseUrl}/?jwt=${this.#dashboardJwt}`;
  }

  stats(pool?: string): LocalPoolStats {
    if (pool === undefined) return this.#parts.pools.stats;
    const found = this.#parts.pools.find(pool);
    if (found) return found.stats;
    throw new InvalidOptionError('pool', `There is no pool ${pool}. There are: ${this.pools.join(', ')}.`);
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What `console.log` shows: no token. */
  [inspect.custom](): string {
    return `LocalPool ${inspect({ baseUrl: this.baseUrl, pools: this.pools })}`;
  }

  async #close(): Promise<void> {
    const { server, pools, display, log } = this.#parts;
    server.refuse();
    await pools.close();
    await display.close();
    await server.close();
    ownOrigins.delete(this.baseUrl);
    log({ type: 'closed' });
  }
}
