import { Chaos } from '../chaos/chaos.js';
import type { Chromium } from '../browser/chromium.js';
import type { LocalPoolStats, Log } from '../events.js';
import { HttpFault, notFound } from '../http/answer.js';
import { newLinkToken, type CheckedOptions, type CheckedSettings } from '../options.js';
import { Recorder } from '../replays/recorder.js';
import { LeaseTokens } from '../sockets/jwt.js';
import { ChromiumPool } from './chromium-pool.js';
import { StartLimit } from './filler.js';
import { LeaseHistory, type Lease } from './lease.js';

/** Starts a browser with the settings of a pool. */
export type LaunchBrowser = (
  settings: Pick<CheckedSettings, 'headless'> & Partial<CheckedSettings>,
  signal: AbortSignal,
) => Promise<Chromium>;

/** All pools of a server, and the parts that they share. The name of a lease is unique among them. */
export class PoolSet {
  readonly token: string;
  readonly quirks: CheckedOptions['quirks'];
  /** `127.0.0.1:<port>` of the server. */
  readonly host: string;
  readonly log: Log;
  readonly launch: LaunchBrowser;
  readonly startLimit = new StartLimit();
  readonly history = new LeaseHistory();
  readonly tokens = new LeaseTokens();
  /** The secret of the link to the dashboard. */
  readonly dashboardToken = newLinkToken();
  readonly recorder: Recorder;
  readonly chaos: Chaos;
  readonly #pools: readonly ChromiumPool[];

  constructor(
    { token, quirks, recording, chaos, pools }: CheckedOptions,
    { host, log, launch }: Pick<PoolSet, 'host' | 'log' | 'launch'>,
  ) {
    this.token = token;
    this.quirks = quirks;
    this.host = host;
    this.log = log;
    this.launch = launch;
    this.chaos = new Chaos(chaos, log);
    const launchEncoder = (signal: AbortSignal) => launch({ headless: true }, signal);
    this.recorder = new Recorder({ limits: recording, launch: launchEncoder, log });
    this.#pools = pools.map((settings) => new ChromiumPool(settings, this));
  }

  get names(): readonly string[] {
    return this.#pools.map(({ settings }) => settings.name);
  }

  [Symbol.iterator](): Iterator<ChromiumPool> {
    return this.#pools.values();
  }

  /** Starts to fill all pools. Resolves with the first browser; rejects when it does not start. */
  async fill(): Promise<void> {
    await Promise.race(this.#pools.map((pool) => pool.fill()));
  }

  /** @throws HttpFault 404 */
  pool(idOrName: string): ChromiumPool {
    const found = this.find(idOrName);
    if (!found) throw notFound('There is no pool with this id or name.');
    return found;
  }

  find(idOrName: string): ChromiumPool | undefined {
    return this.#pools.find(({ settings }) => settings.id === idOrName || settings.name === idOrName);
  }

  /** Finds the pool with the browser of this session. @throws HttpFault 404 */
  poolOfSession(sessionId: string): ChromiumPool {
    const found = this.#pools.find((pool) => pool.find(sessionId));
    if (!found) throw notFound('There is no browser session with this id.');
    return found;
  }

  /** The active lease of this session. */
  lease(sessionId: string): Lease | undefined {
    return this.#pools.map((pool) => pool.lease(sessionId)).find((lease) => lease !== undefined);
  }

  /** The active leases of all pools. */
  get leases(): readonly Lease[] {
    return this.#pools.flatMap((pool) => [...pool.leases]);
  }

  /** Sums of all pools. */
  get stats(): LocalPoolStats {
    const [first, ...others] = this.#pools.map(({ stats }) => stats);
    return others.reduce(add, first!);
  }

  /** @returns The error for an acquire request whose name an active lease of any pool has. */
  nameConflict(name: string | undefined): HttpFault | undefined {
    if (name === undefined || this.leases.every(({ request }) => request.name !== name)) return undefined;
    return new HttpFault(this.quirks.nameConflictStatus, 'conflict', 'An active session has this name.', {
      details: [{ code: 'name_in_use', message: `name: an active session has the name ${name}` }],
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
    await this.recorder.close();
  }
}

function add(a: LocalPoolStats, b: LocalPoolStats): LocalPoolStats {
  const sums = Object.entries(a).map(([count, value]) => [count, value + b[count as keyof LocalPoolStats]]);
  return Object.fromEntries(sums) as LocalPoolStats;
}
