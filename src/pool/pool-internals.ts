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

/** What the modules of a lease share. */
export interface PoolInternals<Session extends object = object> {
  /** A function, because `inspect` must not show the token. */
  readonly settings: () => ClientSettings<Session>;
  /** Most leases of this process at once. */
  readonly limit: number;
}

/** A pool, as far as its requests need it. */
export interface PoolWithInternals<Session extends object = object> {
  readonly idOrName: string;
  readonly [INTERNALS]: PoolInternals<Session>;
}
