import type { FeatureContext } from '../feature.js';
import type { LeaseTokens } from '../sockets/jwt.js';

/** What the endpoints use. */
export interface Api extends Pick<FeatureContext, 'host' | 'pools' | 'recordings' | 'quirks' | 'liveLinks'> {
  /** Signs the URLs of WebSockets. */
  readonly tokens: LeaseTokens;
}
