import { InvalidOptionError } from '../shared/errors.js';
import { socketUrl, type BrowserService } from './browser-service.js';
import { objectAt, path } from './service-json.js';

/** A session of Cloudflare Browser Run. */
export interface CloudflareSession {
  /** Identifier of the session. */
  readonly sessionId: string;
  /** WebSocket URL for the Chrome DevTools Protocol, which needs the token. */
  readonly webSocketDebuggerUrl?: string;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to create a session of Cloudflare Browser Run. `accountId` or `baseUrl` is required. */
export interface CloudflareOptions {
  /** Id of the account. */
  accountId?: string | undefined;
  /** Address of the service. Default: that of the account. */
  baseUrl?: string | undefined;
  /** Milliseconds without a command after which the service ends the session, 10,000 to 1,200,000. Default: 60,000. */
  keepAlive?: number | undefined;
  /** Records the session. The dashboard of Cloudflare shows the recording, which is no video. Default: false. */
  recording?: boolean | undefined;
  /** Uses an experimental browser. Default: false. */
  lab?: boolean | undefined;
}

/** The service's default for `keepAlive`. */
const IDLE = 60_000;

/**
 * Cloudflare Browser Run (formerly Browser Rendering), by its documentation of November 2026; not run against the service.
 *
 * Its token needs the permission "Browser Rendering - Edit". Sessions have no names and no tags, so a lost response is reported,
 * not found.
 */
export function cloudflare(options: CloudflareOptions): BrowserService<CloudflareSession> {
  const { accountId, baseUrl, keepAlive, recording, lab } = options;
  if (accountId === undefined && baseUrl === undefined)
    throw new InvalidOptionError('accountId', 'cloudflare needs accountId, or baseUrl with the account.');
  const query = Object.entries({ keep_alive: keepAlive, recording, lab })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => path`${name}=${String(value)}`)
    .join('&');
  return {
    name: 'cloudflare',
    baseUrl:
      baseUrl ?? `https://api.cloudflare.com/client/v4${path`/accounts/${accountId!}`}/browser-rendering`,
    usualToken: { variables: ['CLOUDFLARE_API_TOKEN'], at: 'https://api.cloudflare.com' },
    secretParameters: ['jwt'],
    idField: 'sessionId',
    waits: 'never',
    keepAlive: Math.ceil((keepAlive ?? IDLE) / 2),
    acquire: () => ({ method: 'POST', path: `/devtools/browser${query && `?${query}`}` }),
    grant: (json, _lease, at) => {
      const session = objectAt<CloudflareSession>(json, [], ['sessionId']);
      return {
        id: session.sessionId,
        session,
        // The address in the response is the same. The token must not reach another one.
        cdpUrl: socketUrl(at, path`/devtools/browser/${session.sessionId}`),
        headers: { authorization: `Bearer ${at.token}` },
        idleTimeout: keepAlive ?? IDLE,
      };
    },
    release: (id) => ({ method: 'DELETE', path: path`/devtools/browser/${id}` }),
    // With 429, the service also refuses until the next day.
    meaning: (status, json) =>
      status === 429 && /time limit exceeded/i.test(JSON.stringify(json ?? '')) ? 'refused' : undefined,
    probe: { method: 'GET', path: '/devtools/session?limit=1' },
  };
}
