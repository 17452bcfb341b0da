import { environment } from '../shared/environment.js';
import type { LocalPool } from '../local/start-local-pool.js';
import type { LocalPoolOptions } from '../local/options.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { CliError, EXIT } from './errors.js';
import type { ServiceOptions } from './options.js';

/**
 * Creates a client of a pool. Nothing is sent yet.
 *
 * @throws CliError when the address or the token is missing.
 */
export async function openPool(
  idOrName: string,
  { baseUrl = environment.baseUrl() }: ServiceOptions,
): Promise<BrowserPool> {
  if (baseUrl === undefined) throw new CliError(NO_ADDRESS, EXIT.usage);
  if (baseUrl !== 'local' && environment.accessToken() === undefined)
    throw new CliError(NO_TOKEN, EXIT.usage);
  const { BrowserPool } = await import('../service/browser-pool.js');
  return new BrowserPool(idOrName, { baseUrl });
}

/** Replaces the name of a pool for requests that need none, because the client requires a name. */
export const ANY_POOL = '-';

export const NO_ADDRESS =
  'The address of the service is missing: pass --base-url, or set BROWSER_POOL_BASE_URL to your service, or to local ' +
  'for Chromium on this machine: export BROWSER_POOL_BASE_URL=local';

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
