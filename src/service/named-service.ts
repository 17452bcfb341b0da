import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { BrowserService } from './browser-service.js';
import { anchor } from './services/anchor.js';
import { browserUse } from './services/browser-use.js';
import { browserbase } from './services/browserbase.js';
import { browserless } from './services/browserless.js';
import { cdp } from './services/cdp.js';
import { hyperbrowser } from './services/hyperbrowser.js';
import { kernel } from './services/kernel.js';
import { steel } from './services/steel.js';
import { webdriver } from './services/webdriver.js';

/** The services by name, without options. Some are wherever the address says; the others have an address of their own. */
const SERVICES: Readonly<Record<string, (address: string | undefined) => BrowserService>> = {
  kernel: () => kernel,
  webdriver: (url) => webdriver({ url }),
  cdp: (url) => cdp(url ?? missingAddress('cdp')),
  browserless: (baseUrl) => browserless({ baseUrl }),
  browserbase: () => browserbase(),
  steel: () => steel(),
  hyperbrowser: () => hyperbrowser(),
  anchor: () => anchor(),
  'browser-use': () => browserUse(),
};

export const SERVICE_NAMES: readonly string[] = Object.keys(SERVICES);
const VARIABLE = 'BROWSER_POOL_SERVICE';

/** A service, and the address of its requests. */
export interface ServiceAt {
  readonly service: BrowserService;
  /** Undefined if nobody named one. */
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
    const message = `service must be one of ${SERVICE_NAMES.join(', ')}, not ${JSON.stringify(name)}.`;
    throw new InvalidOptionError('service', message);
  }
  const service = create(address);
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
export function isServiceOfEnvironment({ baseUrl }: Pick<BrowserService, 'baseUrl'>): boolean {
  const name = environment.service() ?? 'kernel';
  if (baseUrl === undefined || name === 'cdp') return false;
  return baseUrl === serviceNamed(name, undefined).service.baseUrl;
}

/** The address for a service that the caller chose: its own, unless the environment describes that service. */
export function addressOf(service: BrowserService): string | undefined {
  const own = isServiceOfEnvironment(service) ? undefined : service.baseUrl;
  return own ?? environment.baseUrl() ?? service.baseUrl;
}

function missingAddress(name: string): never {
  throw new InvalidOptionError(
    'baseUrl',
    `The address is missing: the service ${name} (${VARIABLE}) needs BROWSER_POOL_BASE_URL, such as http://127.0.0.1:9222.`,
  );
}
