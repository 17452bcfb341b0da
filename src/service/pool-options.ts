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

export interface DownloadOptions extends RequestOptions {
  /** How long to wait for the film to be written, in ms. Once it comes, it may take its time. Default: 60,000. */
  timeout?: number | undefined;
  /** Told of the bytes received so far, and of all there are where the service says so. Default: none. */
  onProgress?: ((progress: { received: number; total?: number }) => void) | undefined;
}

/** A film that was downloaded. */
export interface DownloadedReplay {
  /** Where it was written. */
  path: string;
  bytes: number;
  /** Its MIME type, such as `video/mp4`; missing where the service did not say. */
  type?: string;
}
