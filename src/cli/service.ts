import { environment } from '../shared/environment.js';
import type { LocalPool } from '../local/start-local-pool.js';
import type { LocalPoolOptions } from '../local/options.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { ServiceClient } from '../service/client.js';
import { checkBaseUrl } from '../shared/urls.js';
import { CliError, EXIT } from './errors.js';
import type { ServiceOptions } from './options.js';

/**
 * Creates a client of a pool. Nothing is sent yet.
 *
 * @param limit Most leases at once.
 * @throws CliError when the address or the token is missing.
 */
export async function openPool(
  idOrName: string,
  options: ServiceOptions,
  limit?: number,
): Promise<BrowserPool> {
  const baseUrl = addressOf(options);
  // The flag replaces the address of the environment, to which the token belongs.
  const token = baseUrl === 'local' ? undefined : requireToken();
  const { BrowserPool } = await import('../service/browser-pool.js');
  return new BrowserPool(idOrName, { baseUrl, token, limit });
}

/**
 * Calls a function with a client of the service, for requests that belong to no pool.
 *
 * @throws CliError when the address or the token is missing, or when the address is `local`.
 */
export async function withService<T>(
  options: ServiceOptions,
  use: (client: ServiceClient) => Promise<T>,
): Promise<T> {
  const baseUrl = addressOf(options);
  if (baseUrl === 'local') throw new CliError(NO_SERVICE, EXIT.usage);
  const given = requireToken();
  const { readOption } = await import('../shared/options.js');
  const { ServiceClient } = await import('../service/client.js');
  const { tokenCheck } = await import('../service/pool-options.js');
  const { kernel } = await import('../service/services/kernel.js');
  const token = readOption(tokenCheck, 'token', given);
  const url = checkBaseUrl(baseUrl);
  const client = new ServiceClient({
    service: kernel,
    url,
    token,
    insecure: false,
    local: undefined,
    network: {},
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

function addressOf({ baseUrl = environment.baseUrl() }: ServiceOptions): string {
  if (baseUrl === undefined) throw new CliError(NO_ADDRESS, EXIT.usage);
  return baseUrl;
}

function requireToken(): string {
  const token = environment.accessToken();
  if (token === undefined) throw new CliError(NO_TOKEN, EXIT.usage);
  return token;
}

export const NO_ADDRESS =
  'The address of the service is missing: pass --base-url, or set BROWSER_POOL_BASE_URL to your service, or to local ' +
  'for Chromium on this machine: export BROWSER_POOL_BASE_URL=local';

const NO_SERVICE =
  'The address is local, but browsers of this machine end with the program that leases them. Their recordings stay in ' +
  'the folder pooled-browser-recordings, or in that of BROWSER_POOL_LOCAL_RECORDINGS. ' +
  'Pass --base-url with the address of a service.';

const NO_TOKEN =
  'The access token is missing: set the environment variable BROWSER_POOL_ACCESS_TOKEN. ' +
  'There is no flag for it: every user of a machine can read the arguments of its processes.';

/**
 * In ms: `acquire_timeout_seconds` of each acquire request. Ctrl-C waits for the answer to the request that is under
 * way, so that a browser in it is released; Docker kills a program ten seconds after SIGTERM.
 */
export const POLL_TIMEOUT = 5000;

/** Starts a local pool, unless the signal aborts first. */
export async function startPool(options: LocalPoolOptions, signal: AbortSignal): Promise<LocalPool> {
  const { startLocalPool } = await import('../local/start-local-pool.js');
  const { raceAbort } = await import('../shared/abort.js');
  signal.throwIfAborted();
  return raceAbort(startLocalPool(options), signal, (late) => void late.close());
}

/** Without this package, a local pool serves no BiDi. */
export const BIDI_LIBRARY = 'chromium-bidi';

/** True when this package can import the other package. */
export function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
