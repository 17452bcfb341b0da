import type { CheckedQuirks } from '../options/check-quirks.js';
import type { CheckedSettings } from '../options/check-pools.js';
import { HttpFault, notFound } from '../http/http-fault.js';
import type { LocalPoolStats } from '../local-pool.js';
import type { Recorder } from '../replays/recorder.js';
import type { LeaseTokens } from '../sockets/jwt.js';
import { ChromiumPool, type PoolSurroundings } from './chromium-pool.js';
import type { Lease } from './lease.js';

/** All pools of one server. Together they are the "project" within which a lease's name is unique. */
export class PoolSet {
  readonly quirks: CheckedQuirks;
  readonly tokens: LeaseTokens;
  /** `127.0.0.1:<port>`, for the websocket URLs. */
  readonly host: string;
  readonly recorder: Recorder;
  readonly #pools: readonly ChromiumPool[];

  constructor(
    settings: readonly CheckedSettings[],
    { quirks, tokens, host, recorder }: Pick<PoolSet, 'quirks' | 'tokens' | 'host' | 'recorder'>,
    around: Pick<PoolSurroundings, 'launch' | 'limit' | 'log'>,
  ) {
    this.quirks = quirks;
    this.tokens = tokens;
    this.host = host;
    this.recorder = recorder;
    const nameConflict = (name: string) => this.#nameConflict(name);
    const { keepsSessionId } = quirks;
    this.#pools = settings.map((one) => new ChromiumPool(one, { ...around, nameConflict, keepsSessionId }));
  }

  get names(): readonly string[] {
    return this.#pools.map(({ settings }) => settings.name);
  }

  [Symbol.iterator](): Iterator<ChromiumPool> {
    return this.#pools.values();
  }

  /** Starts to fill every pool; rejects when the first browser does not start. */
  async fill(): Promise<void> {
    for (const pool of this.#pools) pool.fill();
    await Promise.race(this.#pools.map(({ firstStart }) => firstStart));
  }

  /** The pool with this id or name, else a 404. */
  pool(idOrName: string): ChromiumPool {
    const found = this.find(idOrName);
    if (!found) throw notFound('There is no pool with this id or name.');
    return found;
  }

  find(idOrName: string): ChromiumPool | undefined {
    return this.#pools.find(({ settings }) => settings.id === idOrName || settings.name === idOrName);
  }

  /** The pool that holds this session's browser, else a 404. */
  poolOfSession(sessionId: string): ChromiumPool {
    const found = this.#pools.find((pool) => pool.has(sessionId));
    if (!found) throw notFound('There is no browser session with this id.');
    return found;
  }

  /** The active lease of this session. */
  lease(sessionId: string): Lease | undefined {
    return this.#pools.map((pool) => pool.lease(sessionId)).find((lease) => lease !== undefined);
  }

  /** Counts of all pools together. */
  get stats(): LocalPoolStats {
    const [first, ...others] = this.#pools.map(({ stats }) => stats);
    return others.reduce(add, first!);
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
    await this.recorder.close();
  }

  #nameConflict(name: string): HttpFault | undefined {
    const isTaken = this.#pools.some((pool) => [...pool.leases].some(({ request }) => request.name === name));
    if (!isTaken) return undefined;
    const message = `name: ${name} is the name of another active session`;
    return new HttpFault(this.quirks.nameConflictStatus, 'conflict', 'An active session has this name.', {
      details: [{ code: 'name_in_use', message }],
    });
  }
}

function add(a: LocalPoolStats, b: LocalPoolStats): LocalPoolStats {
  const sums = Object.entries(a).map(([count, value]) => [count, value + b[count as keyof LocalPoolStats]]);
  return Object.fromEntries(sums) as LocalPoolStats;
}
