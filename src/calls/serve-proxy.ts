import { resolvePools, type Pools } from '../pool/browser-pool.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { environment } from '../shared/environment.js';
import { callSite, InvalidOptionError } from '../shared/errors.js';
import { lazy } from '../shared/lazy.js';
import { hideOwnSecret } from '../shared/redact.js';
import { callListener } from '../shared/telemetry.js';
import type { ProxyEvent } from './events.js';
import { proxyChecks, readLeaseOptions, type ProxyOptions } from './options.js';
import type { ProxyPlan } from './proxied-browser.js';
import type { ProxyEndpoint } from './proxy-endpoint.js';
import type { ProxyServer } from './proxy-server.js';

const loadServer = lazy(async () => ({
  ...(await import('./proxy-server.js')),
  ...(await import('./playwright-endpoint/playwright-endpoint.js')),
  ...(await import('./kept-browsers/kept-browsers.js')),
}));

/** The address at which clients use a pool. The holder must call `close()`. */
export interface PoolProxy extends AsyncDisposable {
  /**
   * `http://127.0.0.1:<port>/<secret>`, for clients that read `/json/version`. With `ws` instead of `http` it is the WebSocket
   * URL of the Chrome DevTools Protocol, and with `/session` after that the one of WebDriver BiDi.
   */
  readonly url: string;
  /**
   * `ws://127.0.0.1:<port>/<secret>/playwright`, for Playwright clients of the version that the current folder has:
   * `chromium.connect(playwrightUrl)`. Undefined if the folder has no playwright-core, or one below 1.59, and with `secret: false`.
   */
  readonly playwrightUrl: string | undefined;
  /** Numbers of clients and leased browsers. `leased` counts browsers without a client, too. */
  readonly counts: { readonly connected: number; readonly waiting: number; readonly leased: number };
  /**
   * Disconnects all clients, and waits until their browsers are released. A browser that the service leases later, for a client
   * that waited, is released in the background: `pool.close()` waits for it. Never rejects.
   */
  close(): Promise<void>;
}

/**
 * Serves an address on this machine at which each connection of a program leases a browser. The programs use CDP, WebDriver
 * BiDi or Playwright's own protocol. A name at the end of the path (`/alice`) names a browser that outlasts its connection,
 * and its lease.
 *
 * @param pool A `BrowserPool`, or the id or name of a pool at the service of the environment, or several in the order in
 *   which they are asked. The option `limit` of each is the number of its browsers that are leased at once.
 * @throws `InvalidOptionError`, also if the port is in use.
 */
export async function serveProxy<Session extends object = BrowserSession>(
  pool: Pools<Session>,
  options: ProxyOptions<Session> = {},
): Promise<PoolProxy> {
  return callSite()(startProxy(pool, options, { ownSecret: environment.proxySecret() }));
}

/**
 * Starts the proxy of `serveProxy`, or of another part of this library. Without a secret of its own, the address is random: a program of
 * `exec`, or an agent, must not learn that of `proxy`.
 *
 * @internal
 */
export async function startProxy<Session extends object>(
  pool: Pools<Session>,
  options: ProxyOptions<Session>,
  {
    notLeased,
    ownSecret,
    endpoint,
  }: Partial<Pick<ProxyPlan, 'notLeased' | 'ownSecret'>> & { endpoint?: ProxyEndpoint | undefined } = {},
): Promise<ProxyServer & Pick<PoolProxy, 'playwrightUrl'>> {
  const read = readLeaseOptions(proxyChecks, options, { caller: 'serveProxy' });
  const settings = { ...read, idleTimeout: read.idleTimeout || Number.POSITIVE_INFINITY };
  if (settings.name !== undefined && !settings.share) throw new InvalidOptionError('name', NAME_OF_MANY);
  if (ownSecret !== undefined && settings.secret) expectStrong(ownSecret);
  const emit = (event: ProxyEvent) => callListener(settings.onClient, event, 'onClient');
  const pools = resolvePools(pool);
  const { ProxyServer, PlaywrightEndpoint, KeptBrowsers } = await loadServer();
  const playwright = endpoint ?? new PlaywrightEndpoint();
  const { keepFile } = settings;
  const kept = keepFile === undefined ? undefined : await KeptBrowsers.open(pools, { ...settings, keepFile });
  try {
    const how = { emit, endpoints: [playwright], notLeased, ownSecret, kept };
    const server = await ProxyServer.start(pools, settings, how);
    return Object.assign(server, { playwrightUrl: server.urlOf(playwright) });
  } catch (error) {
    await kept?.close();
    throw error;
  }
}

/** @throws InvalidOptionError, which does not show the secret. */
function expectStrong(ownSecret: string): void {
  if (!OWN_SECRET.test(ownSecret)) throw new InvalidOptionError('BROWSER_POOL_PROXY_SECRET', WEAK_SECRET);
  hideOwnSecret(ownSecret);
}

const OWN_SECRET = /^[\w-]{16,}$/;
const WEAK_SECRET =
  'BROWSER_POOL_PROXY_SECRET must have at least 16 characters, all of them letters, digits, "-" or "_". Create one: openssl rand -hex 32';

const NAME_OF_MANY =
  'The leases of a proxy can not all have one name. Remove the option name, or set share to true for one lease.';
