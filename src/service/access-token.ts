import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { optional, readOption } from '../shared/options.js';
import type { BrowserService } from './browser-service.js';
import { isServiceOfEnvironment } from './named-service.js';
import { tokenCheck, type Token } from './pool-options.js';

const VARIABLE = 'BROWSER_POOL_ACCESS_TOKEN';

/**
 * Returns the token for a service whose caller passed none. The token of one service must not reach another one: that of the
 * environment belongs to the address of the environment, and without such an address to the service of the environment; the
 * service's own variable belongs to the service's own address.
 *
 * @throws InvalidOptionError if the service needs a token, and the environment has none for it.
 */
export function tokenOf(service: BrowserService, url: URL): Token | undefined {
  if (url.protocol === 'local:' || service.auth === 'none') return undefined;
  const token = readOption(optional(tokenCheck), 'token', environment.accessToken());
  const address = addressOfEnvironment();
  const isForThis = address ? address.origin === url.origin : isServiceOfEnvironment(service);
  if (token !== undefined && isForThis) return token;
  const own = ownTokenOf(service, url);
  if (own !== undefined || service.isTokenOptional) return own;
  const variables = [VARIABLE, ...usualVariables(service, url)];
  if (token === undefined)
    throw new InvalidOptionError(
      'token',
      `The access token is missing. Pass the option token, or set ${variables.join(' or ')}.`,
    );
  const owner = address ? `the service at ${address.origin} (BROWSER_POOL_BASE_URL)` : 'the default service';
  throw new InvalidOptionError(
    'token',
    `The access token is missing. ${VARIABLE} is the token of ${owner}, and is not sent to ${url.origin}. ` +
      `Pass the option token, or set BROWSER_POOL_BASE_URL to the address of this service.`,
  );
}

/** The token of the variable that users of this service set. */
function ownTokenOf(service: BrowserService, url: URL): Token | undefined {
  const [name, token] = environment.firstOf(usualVariables(service, url)) ?? [];
  return name === undefined ? undefined : readOption(tokenCheck, name, token);
}

/** The variables with the key of a service, if the address is its own. */
export function usualVariables({ usualToken }: BrowserService, url: URL): readonly string[] {
  const isThere = usualToken && URL.canParse(usualToken.at) && new URL(usualToken.at).origin === url.origin;
  return isThere ? usualToken.variables : [];
}

/** Undefined also for `local`: those browsers need no token, so the token is that of another service. */
function addressOfEnvironment(): URL | undefined {
  const address = environment.baseUrl();
  return address !== undefined && URL.canParse(address) ? new URL(address) : undefined;
}
