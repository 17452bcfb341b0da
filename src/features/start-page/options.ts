import { pageUrl } from '../../pool/pool-options.js';
import { checksOf, optional, type Checked } from '../../shared/options.js';

/** The page at which a lease begins. */
export interface StartPageOptions {
  /**
   * URL at which the callback begins, and each task and test. The library opens it after the connect if the service opens no URL, or
   * not in the page of the callback. If it fails to load within `connectTimeout`, the lease continues. Default: the pool's.
   */
  startUrl?: string | undefined;
}

export const startPageChecks = checksOf<StartPageOptions>()({ startUrl: optional(pageUrl()) });

/** The checked options of the feature. */
export interface StartPageSettings extends Checked<typeof startPageChecks> {}

/** Other options that it depends on. */
export interface OtherStartOptions {
  readonly connectTimeout: number;
  /** A service does not limit what it opens. */
  readonly allowedHosts?: string | undefined;
}

/** Its events. */
export interface StartPageSteps {
  /** The URL of `startUrl` could not be opened. The callback begins with the page as it is. */
  'start-url-failed': { sessionId: string; url: string; error: Error };
}
