import { isLoopback } from '../shared/urls.js';
import { socketUrl, type BrowserService, type Grant, type ServiceAddress } from './browser-service.js';
import { objectAt, optionalTextAt, path, valueAt } from './service-json.js';

/** A session of a WebDriver server. */
export interface WebDriverSession {
  /** Identifier of the session. */
  readonly sessionId: string;
  /** The capabilities of the browser, as the server sent them. */
  readonly capabilities: Readonly<Record<string, unknown>>;
}

/** A WebDriver server. */
export interface WebDriverOptions {
  /** Address of the server: chromedriver's is usually `http://localhost:9515`. Default: `http://localhost:4444`. */
  url?: string | undefined;
  /**
   * W3C capabilities, such as `{ 'goog:chromeOptions': { args: ['--headless'] } }`, besides `browserName: 'chrome'` and
   * `webSocketUrl: true`.
   */
  capabilities?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * chromedriver, and Selenium Grid 4. The library drives the browser over CDP or WebDriver BiDi, not over classic WebDriver.
 *
 * Tested with chromedriver 156 and Selenium Grid 4.48. The token of a Grid is `user:password`. A server has no recordings, and
 * can't be searched for the session of a lost response.
 */
export function webdriver({ url, capabilities }: WebDriverOptions = {}): BrowserService<WebDriverSession> {
  return {
    name: 'webdriver',
    baseUrl: url ?? 'http://localhost:4444',
    auth: { header: 'authorization', scheme: 'Basic' },
    isTokenOptional: true,
    idField: 'sessionId',
    waits: 'always',
    // Firefox has no CDP.
    protocols: capabilities?.['browserName'] === 'firefox' ? ['bidi'] : undefined,
    acquire: ({ name }) => ({
      method: 'POST',
      path: '/session',
      body: {
        capabilities: {
          alwaysMatch: {
            browserName: 'chrome',
            webSocketUrl: true,
            'se:name': name,
            ...capabilities,
          },
        },
      },
    }),
    grant: (json, _lease, at) => {
      const session = objectAt<WebDriverSession>(json, ['value'], ['sessionId']);
      objectAt(session, ['capabilities'], []);
      const sockets = socketsOf(session, at);
      if (sockets.cdpUrl === undefined && sockets.bidiUrl === undefined)
        throw new Error('lacks the capability webSocketUrl, and a debugging port on this machine');
      return { id: session.sessionId, session, ...sockets };
    },
    release: (id) => ({ method: 'DELETE', path: path`/session/${id}` }),
    // The Grid's queue has a timeout. It ends a session that a node created too late.
    meaning: (status, json) => {
      if (status !== 500 || valueAt(json, ['value', 'error']) !== 'session not created') return undefined;
      return /timed out/i.test(optionalTextAt(json, 'value', 'message') ?? '') ? 'unavailable' : 'refused';
    },
    probe: { method: 'GET', path: '/status' },
  };
}

const DEBUGGING_PORT = /^(localhost|127\.0\.0\.1|\[::1\]):\d{1,5}$/;

/** The Grid serves both protocols itself; the addresses of its nodes are often unreachable. chromedriver has a debugging port. */
function socketsOf(
  { sessionId, capabilities }: WebDriverSession,
  at: ServiceAddress,
): Pick<Grant, 'cdpUrl' | 'bidiUrl'> {
  const bidi = optionalTextAt(capabilities, 'webSocketUrl');
  if (optionalTextAt(capabilities, 'se:cdp') !== undefined)
    return {
      cdpUrl: socketUrl(at, path`/session/${sessionId}/se/cdp`),
      ...(bidi !== undefined && { bidiUrl: socketUrl(at, path`/session/${sessionId}/se/bidi`) }),
    };
  const local = optionalTextAt(capabilities, 'goog:chromeOptions', 'debuggerAddress');
  return {
    // It listens only on the machine of chromedriver. A server chooses its port, but neither the host nor the path.
    ...(DEBUGGING_PORT.test(local ?? '') && isLoopback(at.baseUrl.hostname) && { cdpUrl: `http://${local}` }),
    ...(bidi !== undefined && URL.canParse(bidi) && { bidiUrl: socketUrl(at, new URL(bidi).pathname) }),
  };
}
