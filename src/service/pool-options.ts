import type { Token } from './authorization.js';
import type { PoolEvent } from './pool-events.js';

export interface BrowserPoolOptions {
  /** Address of the service. Default: the environment variable `BROWSER_POOL_BASE_URL`. */
  baseUrl?: string | undefined;
  /**
   * Bearer token, or a function that gives one: asked before each request, and again after a 401.
   * Default: the environment variable `BROWSER_POOL_ACCESS_TOKEN`.
   */
  token?: Token | undefined;
}

export interface RequestOptions {
  /** Gives up waiting. A browser that is granted all the same is given back. */
  signal?: AbortSignal | undefined;
}

export interface AcquireOptions extends RequestOptions {
  /** Told of browsers that are given back behind the scenes, and of outcomes that can't be known. */
  onEvent?: ((event: PoolEvent) => void) | undefined;
}

export interface ReleaseOptions extends RequestOptions {
  /** `true`: back to the pool as it is; `false`: destroyed. Default: `true`. */
  reuse?: boolean | undefined;
  /** Limit of the request, in ms. Default: 30,000. */
  timeout?: number | undefined;
}
