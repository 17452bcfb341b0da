import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import { BrowserPool } from './browser-pool.js';
import { apiOf, SERVICE_NAMES, serviceNamed } from './named-service.js';
import type { BrowserPoolOptions } from './pool-options.js';

/** A pool as the command line and `BROWSER_POOL` name it: `NAME`, `SERVICE:NAME`, `kernel:browsers` or `local`. */
export interface PoolName {
  readonly name: string;
  /** The service that stands before the name. */
  readonly service?: string | undefined;
  /** The address of that service, or `local`. */
  readonly baseUrl?: string | undefined;
}

/**
 * Reads a list of names with commas between them.
 *
 * @throws InvalidOptionError if a name is empty, or what stands before a colon is no service, or one whose address is missing.
 */
export function readPoolNames(list: string): readonly PoolName[] {
  return list.split(',').map((name) => readPoolName(name.trim(), list));
}

function readPoolName(text: string, list: string): PoolName {
  if (text === LOCAL) return { name: LOCAL, baseUrl: LOCAL };
  const colon = text.indexOf(':');
  const [before, name] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)];
  if (name === '')
    throw new InvalidOptionError('pool', `A name of a pool is missing in ${JSON.stringify(list)}.`);
  if (before === '') return { name };
  // `kernel:browsers` is a service that needs no pool.
  const isWhole = SERVICE_NAMES.includes(text);
  const service = isWhole ? text : before;
  if (!SERVICE_NAMES.includes(service)) {
    const message = `${text} names no service: before the colon, write one of ${SERVICE_NAMES.filter((one) => !one.includes(':')).join(', ')}.`;
    throw new InvalidOptionError('pool', message);
  }
  // The variables with a service and its address describe one service. Browsers of this machine are those of `local`.
  const address = environment.baseUrl();
  const isDescribed = before === apiOf(environment.service() ?? 'kernel') && address !== LOCAL;
  const { baseUrl } = serviceNamed(service, isDescribed ? address : undefined);
  return { name: isWhole ? before : name, service, baseUrl };
}

/** The pool of this machine. */
const LOCAL = 'local';

/**
 * Creates a client of a pool.
 *
 * @param options Those of a name without a service. Of the address and the token, the others have their own.
 */
export function openNamedPool(
  { name, service, baseUrl }: PoolName,
  options: BrowserPoolOptions,
): BrowserPool {
  if (baseUrl === undefined) return new BrowserPool(name, options);
  const { token: _ofAnother, ...rest } = options;
  const at = service === undefined ? { baseUrl } : serviceNamed(service, baseUrl);
  return new BrowserPool<object>(name, { ...rest, ...at }) as BrowserPool;
}
