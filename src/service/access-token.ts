import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { optional, readOption } from '../shared/options.js';
import type { BrowserService } from './browser-service.js';
import { tokenCheck, type Token } from './pool-options.js';
import { kernel } from './services/kernel.js';

const VARIABLE = 'BROWSER_POOL_ACCESS_TOKEN';

/** Whether a service is the default one, or a copy of it: the environment describes that service. */
export function isDefaultService({ baseUrl }: Pick<BrowserService, 'baseUrl'>): boolean {
  return baseUrl === kernel.baseUrl;
}

/**
 * Returns the token for a service whose caller passed none. The token of one service must not reach another one: that of the
 * environment belongs to the address of the environment, and without such an address to the default service.
 *
 * @throws InvalidOptionError if the service needs a token, and the environment has none for it.
 */
export function tokenOf(service: BrowserService, url: URL): Token | undefined {
  if (url.protocol === 'local:' || service.auth === 'none') return undefined;
  const token = readOption(optional(tokenCheck), 'token', environment.accessToken());
  if (token === undefined)
    throw new InvalidOptionError(
      'token',
      `The access token is missing. Pass the option token, or set ${VARIABLE}.`,
    );
  const address = addressOfEnvironment();
  if (address ? address.origin === url.origin : isDefaultService(service)) return token;
  const owner = address ? `the service at ${address.origin} (BROWSER_POOL_BASE_URL)` : 'the default service';
  throw new InvalidOptionError(
    'token',
    `The access token is missing. ${VARIABLE} is the token of ${owner}, and is not sent to ${url.origin}. ` +
      `Pass the option token, or set BROWSER_POOL_BASE_URL to the address of this service.`,
  );
}

/** Undefined also for `local`: those browsers need no token, so the token is that of another service. */
function addressOfEnvironment(): URL | undefined {
  const address = environment.baseUrl();
  return address !== undefined && URL.canParse(address) ? new URL(address) : undefined;
}
