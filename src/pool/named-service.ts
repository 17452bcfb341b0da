import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { isRecord, jsonOf, showValue } from '../shared/json.js';
import { optional, readOption } from '../shared/options.js';
import { checkBaseUrl } from '../shared/urls.js';
import type { BrowserService } from '../services/browser-service.js';
import { leaseName, tokenCheck, type Token } from './pool-options.js';
import { anchor } from '../services/anchor.js';
import { browserUse } from '../services/browser-use.js';
import { browserbase } from '../services/browserbase.js';
import { browserless } from '../services/browserless.js';
import { cdp } from '../services/cdp.js';
import { cloudflare } from '../services/cloudflare.js';
import { hyperbrowser } from '../services/hyperbrowser.js';
import { kernel, type KernelCreate } from '../services/kernel.js';
import { steel } from '../services/steel.js';
import { webdriver } from '../services/webdriver.js';

/**
 * The services by name, without options. Some are wherever the address says; the others have an address of their own.
 * Undefined: the service needs an address.
 */
const SERVICES: Readonly<Record<string, (address: string | undefined) => BrowserService | undefined>> = {
  kernel: () => kernel,
  'kernel:browsers': () => kernel({ create: createOfEnvironment() }),
  webdriver: (url) => webdriver({ url }),
  cdp: (url) => (url === undefined ? undefined : cdp(url)),
  browserless: (baseUrl) => browserless({ baseUrl }),
  browserbase: () => browserbase(),
  steel: () => steel(),
  hyperbrowser: () => hyperbrowser(),
  anchor: () => anchor(),
  'browser-use': () => browserUse(),
  cloudflare: (baseUrl) => {
    const accountId = environment.cloudflareAccount();
    return accountId === undefined && baseUrl === undefined ? undefined : cloudflare({ accountId, baseUrl });
  },
};

export const SERVICE_NAMES: readonly string[] = Object.keys(SERVICES);

/** The API of a service with this name: it has one address and one token. */
export const apiOf = (name: string) => name.split(':', 1)[0]!;

/** The fields of the request that creates a browser. @throws InvalidOptionError if they are no JSON object. */
function createOfEnvironment(): KernelCreate {
  const text = environment.kernelCreate() ?? '{}';
  const create = jsonOf(text);
  if (isRecord(create)) return create;
  const message = `BROWSER_POOL_KERNEL_CREATE must be a JSON object, such as {"headless":true}, not ${showValue(text)}.`;
  throw new InvalidOptionError('create', message);
}
const VARIABLE = 'BROWSER_POOL_SERVICE';
const TOKEN_VARIABLE = 'BROWSER_POOL_ACCESS_TOKEN';

/** A service, and the address of its requests. */
interface ServiceAt {
  readonly service: BrowserService;
  /** The base URL; undefined if none was named. */
  readonly baseUrl: string | undefined;
}

/**
 * Returns the service with a name. Without a name it is that of the given API, whose address must be given.
 *
 * @throws InvalidOptionError for an unknown name, or a service that needs an address.
 */
export function serviceNamed(name: string | undefined, address: string | undefined): ServiceAt {
  if (name === undefined || address === 'local') return { service: kernel, baseUrl: address };
  const create = Object.hasOwn(SERVICES, name) ? SERVICES[name] : undefined;
  if (!create) {
    const place = name === environment.service() ? VARIABLE : 'service';
    const message = `${place} must be one of ${SERVICE_NAMES.join(', ')}, not ${JSON.stringify(name)}. In code, an own service is an object; commands take the path of its module, such as ./service.ts.`;
    throw new InvalidOptionError('service', message);
  }
  const service = create(address) ?? missingAddress(name);
  // The address of a browser may be that of its WebSocket.
  return { service, baseUrl: name === 'cdp' ? service.baseUrl : (address ?? service.baseUrl) };
}

/** The service that the environment names, at this address or at that of the environment. */
export function serviceOfEnvironment(address = addressOfEnvironment()): ServiceAt {
  return serviceNamed(environment.service(), address);
}

/** @throws InvalidOptionError if it is `local` beside another service: one of both was forgotten. */
export function addressOfEnvironment(): string | undefined {
  const [name, address] = [environment.service(), environment.baseUrl()];
  if (address === 'local' && name !== undefined && name !== 'kernel') {
    const message = `BROWSER_POOL_BASE_URL is local, but ${VARIABLE} is ${name}: unset one of the two.`;
    throw new InvalidOptionError('baseUrl', message);
  }
  return address;
}

/** Whether a service is the one of the environment, or a copy of it, and has no other address: the environment describes it. */
function isServiceOfEnvironment({ baseUrl }: Pick<BrowserService, 'baseUrl'>): boolean {
  const name = environment.service() ?? 'kernel';
  return baseUrl !== undefined && baseUrl === ownAddressOf(name);
}

/** The address for a service that the caller chose: its own, unless the environment describes that service. */
export function addressOf(service: BrowserService): string | undefined {
  const own = isServiceOfEnvironment(service) ? undefined : service.baseUrl;
  return own ?? environment.baseUrl() ?? service.baseUrl;
}

/** The address of a service where it is always the same. */
function ownAddressOf(name: string): string | undefined {
  return Object.hasOwn(SERVICES, name) ? SERVICES[name]!(undefined)?.baseUrl : undefined;
}

const NEEDED_ADDRESS: Readonly<Record<string, string>> = {
  cdp: 'BROWSER_POOL_BASE_URL, such as http://127.0.0.1:9222',
  cloudflare: 'CLOUDFLARE_ACCOUNT_ID, or BROWSER_POOL_BASE_URL with the account',
};

function missingAddress(name: string): never {
  const message = `The address is missing: the service ${name} (${VARIABLE}) needs ${NEEDED_ADDRESS[name]}.`;
  throw new InvalidOptionError('baseUrl', message);
}

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
  const given = environment.baseUrl() ?? '';
  // Undefined also for `local`: those browsers need no token, so the token is that of another service.
  const address = URL.canParse(given) ? new URL(given) : undefined;
  const isForThis = address ? address.origin === url.origin : isServiceOfEnvironment(service);
  if (token !== undefined && isForThis) return token;
  const variables = usualVariables(service, url);
  const [name, own] = environment.firstOf(variables) ?? [];
  if (name !== undefined) return readOption(tokenCheck, name, own);
  if (service.isTokenOptional) return undefined;
  const owner = address ? `the service at ${address.origin} (BROWSER_POOL_BASE_URL)` : 'the default service';
  const others =
    token === undefined
      ? ''
      : ` ${TOKEN_VARIABLE} is the token of ${owner}, and is not sent to ${url.origin}.`;
  const names = isForThis ? [TOKEN_VARIABLE, ...variables] : variables;
  const place =
    names.length > 0 ? names.join(' or ') : 'BROWSER_POOL_BASE_URL to the address of this service';
  const message = `The access token is missing.${others} Pass the option token, or set ${place}.`;
  throw new InvalidOptionError('token', message);
}

/** The variables with the key of a service, if the address is its own. */
export function usualVariables({ usualToken }: BrowserService, url: URL): readonly string[] {
  const isThere = usualToken && URL.canParse(usualToken.at) && new URL(usualToken.at).origin === url.origin;
  return isThere ? usualToken.variables : [];
}

/**
 * Returns the address of a service: a URL, or `local:<pool>`.
 *
 * @throws InvalidOptionError
 */
export function serviceUrl(
  baseUrl: string | undefined,
  idOrName: string,
  options: { insecure: boolean },
): URL {
  // Chromium on this machine. Each pool is a separate service.
  if (baseUrl !== 'local') return checkBaseUrl(baseUrl, options);
  return new URL(`local:${readOption(leaseName(), 'pool', idOrName)}`);
}
