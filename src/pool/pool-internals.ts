import type { BrowserService } from '../services/browser-service.js';
import type { NetworkSettings } from '../shared/network.js';
import type { LocalOptions, Token } from './pool-options.js';

/** Reads the internals of a pool. */
export const INTERNALS: unique symbol = Symbol('pooled-browser.internals');

/** Where a client sends its requests. */
export interface ClientSettings<Session extends object = object> {
  readonly service: BrowserService<Session>;
  /** Address of the service; `local:<pool>` for browsers of this machine. */
  readonly url: URL;
  readonly token: Token | undefined;
  readonly insecure: boolean;
  readonly local: LocalOptions | undefined;
  readonly network: NetworkSettings;
}

/** What the modules of a lease share. An import of the library loads neither the client nor the release. */
export interface PoolInternals<Session extends object = object> {
  /** A function, because `inspect` must not show the token. */
  readonly settings: () => ClientSettings<Session>;
  /** Most leases of this process at once. */
  readonly limit: number;
  /** Returns what `create` creates for the pool, which happens once: see `clientOf`. */
  readonly part: <Part extends object>(create: (pool: PoolWithInternals) => Part) => Part;
}

/** A pool, as far as its requests need it. */
export interface PoolWithInternals<Session extends object = object> {
  readonly idOrName: string;
  readonly [INTERNALS]: PoolInternals<Session>;
}

export function createInternals<Session extends object>(
  pool: PoolWithInternals<Session>,
  settings: ClientSettings<Session>,
  limit: number,
): PoolInternals<Session> {
  const parts = new Map<unknown, object>();
  const part = <Part extends object>(create: (pool: PoolWithInternals) => Part) => {
    const created = parts.get(create) ?? create(pool);
    parts.set(create, created);
    return created as Part;
  };
  return { settings: () => settings, limit, part };
}
