import { InvalidOptionError } from '../shared/errors.js';
import { environment } from '../shared/environment.js';
import { BrowserPool } from '../service/browser-pool.js';
import { CliError } from './cli-error.js';
import { EXIT } from './exit-codes.js';
import type { ServiceOptions } from './service-option.js';

/** A client of the pool; what it lacks is told in the terms of the command line. Nothing is sent yet. */
export function openPool(idOrName: string, { baseUrl = environment.baseUrl() }: ServiceOptions): BrowserPool {
  if (baseUrl === undefined) throw new CliError(NO_ADDRESS, EXIT.usage);
  if (environment.accessToken() === undefined) throw new CliError(NO_TOKEN, EXIT.usage);
  try {
    return new BrowserPool(idOrName, { baseUrl });
  } catch (error) {
    const option = error instanceof InvalidOptionError ? SOURCES[error.option] : undefined;
    throw option === undefined ? error : new CliError(`${option}: ${(error as Error).message}`, EXIT.usage);
  }
}

/** For endpoints that name no pool (interface: endpoint 3), where the client wants one all the same. */
export const ANY_POOL = '-';

export const NO_ADDRESS =
  'There is no address of a service: pass --base-url or set BROWSER_POOL_BASE_URL. ' +
  '"pooled-browser serve" is one on this machine, and prints both variables.';

export const NO_TOKEN =
  'There is no access token: set the environment variable BROWSER_POOL_ACCESS_TOKEN. ' +
  'It is no option: every user of a machine can read the arguments of its processes.';

/** Where the command line has an option of `BrowserPool` from. */
const SOURCES: Readonly<Record<string, string>> = {
  baseUrl: '--base-url or BROWSER_POOL_BASE_URL',
  token: 'BROWSER_POOL_ACCESS_TOKEN',
};
