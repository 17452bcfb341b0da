import type { BrowserService, SessionRequests } from '../services/browser-service.js';
import type { NetworkSettings } from '../shared/network.js';
import type { LocalOptions, Token } from './pool-options.js';

/** Reads the settings of a pool. */
export const INTERNALS: unique symbol = Symbol('pooled-browser.internals');

/** What the options of a pool and the environment say. */
export interface PoolSettings<Session extends object = object> {
  readonly service: BrowserService<Session>;
  /** Address of the service; `local:<pool>` for browsers of this machine. */
  readonly url: URL;
  readonly token: Token | undefined;
  /** Most leases of this process at once. */
  readonly limit: number;
  readonly insecure: boolean;
  readonly local: LocalOptions | undefined;
  readonly network: NetworkSettings;
}

/** What this library uses of a pool. A `BrowserPool` has it. */
export interface PoolApi<Session extends object = object> extends SessionRequests {
  readonly idOrName: string;
  readonly baseUrl: string;
  readonly [INTERNALS]: () => PoolSettings<Session>;
}
