import { socketUrl, type BrowserService, type SessionFields } from './browser-service.js';
import { objectAt, path, urlAt } from './service-json.js';
import { proxyAs } from './session-fields.js';
import { withSessionFields } from './check-service.js';

/** A session of Browserless. `util.inspect` and JSON show its URLs without the token. */
export interface BrowserlessSession {
  /** Identifier of the session; of a connection its `trackingId`. */
  readonly id: string;
  /** WebSocket URL for the Chrome DevTools Protocol; contains the token. Only the Session API returns it. */
  readonly connect?: string;
  /** The same under another name: the documentation of the Session API uses both. */
  readonly browserWSEndpoint?: string;
  /** URL that ends the session; contains the token. Only the Session API returns it. */
  readonly stop?: string;
  /** Milliseconds after which the service ends the session. Only the Session API returns it. */
  readonly ttl?: number;
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to start a browser of Browserless. */
export interface BrowserlessOptions {
  /** Address of the service. Default: `https://production-sfo.browserless.io`. */
  baseUrl?: string | undefined;
  /**
   * Creates each session with the Session API of the service's cloud (`POST /session`), and passes these fields.
   * Default: a browser for each connection, which ends with it.
   */
  session?: BrowserlessSessionOptions | undefined;
  /** Path of the WebSocket, which names the browser. Default: `/chromium`. */
  path?: string | undefined;
  /** Launch options of the browser (`args`, `headless`, `stealth`, …), sent as the parameter `launch`. */
  launch?: object | undefined;
  /** Milliseconds after which the service closes the connection. Default: the service's, 30,000. It can't be used with `session`. */
  timeout?: number | undefined;
  /** Further parameters of the WebSocket, such as `blockAds`. */
  parameters?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/** Fields of the request that creates a session. */
export interface BrowserlessSessionOptions {
  /** Milliseconds after which the service ends the session. */
  ttl: number;
  /** Runs in stealth mode. */
  stealth?: boolean | undefined;
  /** Runs headless. */
  headless?: boolean | undefined;
  /** Arguments of the browser. */
  args?: readonly string[] | undefined;
  /** Further fields of the request. */
  [field: string]: unknown;
}

/** The longest `trackingId`. */
const LONGEST_ID = 32;

/**
 * Browserless, in its cloud or self-hosted. By default each connection starts a browser, which ends with it; the number of
 * browsers and of waiting connections is that of the service. Tested with the package `@browserless.io/browserless` 2.42.0.
 *
 * With `session`, the Session API of its cloud, by its documentation; not run against the service.
 */
export function browserless(options: BrowserlessOptions = {}): BrowserService<BrowserlessSession> {
  const baseUrl = options.baseUrl ?? 'https://production-sfo.browserless.io';
  const common = {
    name: 'browserless',
    baseUrl,
    auth: { query: 'token' },
    usualToken: {
      variables: ['BROWSERLESS_TOKEN', 'BROWSERLESS_API_TOKEN', 'BROWSERLESS_API_KEY'],
      at: baseUrl,
    },
    isTokenOptional: true,
    secretParameters: ['token'],
    idField: 'id',
    probe: { method: 'GET', path: '/pressure' },
  } as const;
  const { session } = options;
  return session ? sessionService(common, session) : connectionService(common, options);
}

type Common = Pick<BrowserService, 'name' | 'idField'> & Partial<BrowserService>;

function connectionService(
  common: Common,
  { path: browser = '/chromium', timeout, launch, parameters = {} }: BrowserlessOptions,
): BrowserService<BrowserlessSession> {
  return {
    ...common,
    waits: 'always',
    lossAdvice:
      'Browserless closes each connection after a time, 30 s by default: pass browserless({ timeout: 300_000 }), in ms.',
    sessionOptions: OF_CONNECTION,
    acquire: () => undefined,
    grant: (_json, { id, sessionOptions }, at) => {
      const trackingId = id.slice(0, LONGEST_ID);
      const url = new URL(socketUrl(at, browser));
      const own = {
        ...(timeout !== undefined && { timeout }),
        ...parameters,
        ...(launch && { launch }),
        trackingId,
      };
      const all = withSessionFields(own, OF_CONNECTION, sessionOptions);
      for (const [name, value] of Object.entries(all))
        url.searchParams.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
      if (at.token !== undefined) url.searchParams.set('token', at.token);
      return { id: trackingId, session: { id: trackingId }, cdpUrl: url.href, endsWithConnection: true };
    },
    release: () => undefined,
  };
}

const REGION = 'the region is in its address: pass browserless({ baseUrl })';

const OF_CONNECTION: SessionFields = {
  region: REGION,
  timeout: (timeout) => ({ timeout: Math.ceil(timeout) }),
  stealth: (stealth) => ({ launch: { stealth } }),
  // Of its cloud.
  proxy: proxyAs({
    none: {},
    any: { proxy: 'residential' },
    country: (country) => ({ proxy: 'residential', proxyCountry: country.toLowerCase() }),
  }),
};

const OF_SESSION: SessionFields = {
  region: REGION,
  timeout: (ttl) => ({ ttl: Math.ceil(ttl) }),
  stealth: (stealth) => ({ stealth }),
};

function sessionService(
  common: Common,
  create: BrowserlessSessionOptions,
): BrowserService<BrowserlessSession> {
  return {
    ...common,
    waits: 'never',
    lossAdvice: `Browserless ends each session after its ttl, here ${create.ttl} ms: increase browserless({ session: { ttl } }).`,
    sessionOptions: OF_SESSION,
    acquire: () => ({ method: 'POST', path: '/session', body: create }),
    grant: (json, _lease, { token }) => {
      const session = objectAt<BrowserlessSession>(json, [], ['id']);
      const url = urlAt(session, session.browserWSEndpoint === undefined ? 'connect' : 'browserWSEndpoint');
      if (token !== undefined) url.searchParams.set('token', token);
      return { id: session.id, session, cdpUrl: url.href };
    },
    release: (id) => ({ method: 'DELETE', path: path`/session/${id}?force=true` }),
  };
}
