import { inspect } from 'node:util';
import { InvalidOptionError } from '../errors/invalid-option-error.js';
import { ownOrigins } from '../internal/own-origins.js';
import { hideSecret } from '../internal/redact.js';
import { launchChromium } from './browser/chromium.js';
import { findBrowser } from './browser/find-browser.js';
import { checkOptions, type CheckedOptions } from './options/check-options.js';
import { safeLog, type Log } from './events.js';
import { PoolServer } from './http/server.js';
import type { LocalPool, LocalPoolStats } from './local-pool.js';
import type { LocalPoolOptions } from './options.js';
import { PoolSet } from './pool/pool-set.js';
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
  const log = safeLog(checked.onLog);
  const server = new PoolServer();
  await server.listen(checked.port);
  const pools = createPools(checked, executablePath, server.port, log);
  const pool = new RunningPool(checked.token, server, pools, log);
  server.serve({
    token: checked.token,
    pools,
    log,
    onUpgrade: (...upgraded) => void upgrade({ pools, port: server.port, log }, ...upgraded),
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

function createPools(options: CheckedOptions, executablePath: string, port: number, log: Log): PoolSet {
  const { pools, args, quirks } = options;
  return new PoolSet(
    pools,
    { quirks, tokens: new LeaseTokens(), host: `127.0.0.1:${port}` },
    {
      log,
      limit: new StartLimit(MOST_STARTS),
      launch: ({ headless, viewport }, signal) =>
        launchChromium({ executablePath, args, headless, viewport }, signal),
    },
  );
}

class RunningPool implements LocalPool {
  readonly baseUrl: string;
  readonly pools: readonly string[];
  readonly #token: string;
  readonly #server: PoolServer;
  readonly #set: PoolSet;
  readonly #log: Log;
  #closed: Promise<void> | undefined;

  constructor(token: string, server: PoolServer, set: PoolSet, log: Log) {
    this.baseUrl = `http://127.0.0.1:${server.port}`;
    ownOrigins.add(this.baseUrl);
    this.pools = set.names;
    this.#token = token;
    this.#server = server;
    this.#set = set;
    this.#log = log;
  }

  get token(): string {
    return this.#token;
  }

  stats(pool?: string): LocalPoolStats {
    if (pool === undefined) return this.#set.stats;
    const found = this.#set.find(pool);
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
    this.#server.refuse();
    await this.#set.close();
    await this.#server.close();
    ownOrigins.delete(this.baseUrl);
    this.#log({ type: 'closed' });
  }
}
