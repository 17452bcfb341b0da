import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { raceAbort } from '../shared/abort.js';
import { environment } from '../shared/environment.js';
import type { LocalPool } from '../local/start-local-pool.js';
import type { LocalPoolOptions } from '../local/options.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import type { BrowserService } from '../services/browser-service.js';
import { isError } from '../shared/globals.js';
import { isRecord } from '../shared/json.js';
import { checkBaseUrl } from '../shared/urls.js';
import { CliError, EXIT, NO_ADDRESS } from './errors.js';
import type { ServiceOptions } from './options.js';

/**
 * The service of a command, and its address. The flag --base-url replaces the address of the environment, to which its token
 * belongs; the flag --service with another service replaces both.
 *
 * @throws CliError when the address is missing.
 */
export async function serviceOf(options: ServiceOptions): Promise<{
  readonly service: BrowserService;
  readonly baseUrl: string;
  /** The token of the environment is for this service. */
  readonly hasToken: boolean;
}> {
  const { addressOfEnvironment, apiOf, serviceNamed } = await import('../pool/named-service.js');
  const ofEnvironment = environment.service();
  const name = options.service ?? ofEnvironment;
  const own = name !== undefined && PATH.test(name) ? await importService(name) : undefined;
  const hasToken = own ? name === ofEnvironment : apiOf(name ?? DEFAULT) === apiOf(ofEnvironment ?? DEFAULT);
  const address = options.baseUrl ?? (hasToken ? addressOfEnvironment() : undefined);
  const { service, baseUrl } = own
    ? { service: own, baseUrl: address ?? own.baseUrl }
    : serviceNamed(name, address);
  if (baseUrl === undefined) throw new CliError(NO_ADDRESS, EXIT.usage);
  return { service, baseUrl, hasToken };
}

/** The path of a module of the user, in the place of the name of a service. */
const PATH = /^(?:\.|\/|file:)/;

/** The own service in a module: its default export, or its only export that is a service. */
async function importService(path: string): Promise<BrowserService> {
  const { importScript } = await import('./map-script.js');
  const file = path.startsWith('file:') ? fileURLToPath(path) : resolve(path);
  const module = await importScript(file).catch((cause: unknown) => {
    const reason = isError(cause) ? cause.message : String(cause);
    throw new CliError(`The module ${path} of --service can't be imported: ${reason}`, EXIT.usage, { cause });
  });
  const all = new Set(
    [module, module['default']].flatMap((one) => (isRecord(one) ? Object.values(one) : [])),
  );
  const services = [module['default'], ...all].filter(isService);
  if (services[0] !== undefined && (services[0] === module['default'] || new Set(services).size === 1))
    return services[0];
  const message = `The module ${path} of --service needs a service as its default export, or one export that is a service.`;
  throw new CliError(message, EXIT.usage);
}

function isService(value: unknown): value is BrowserService {
  return (
    isRecord(value) && ['acquire', 'grant', 'release'].every((name) => typeof value[name] === 'function')
  );
}

/** The name of the service that nobody named. */
const DEFAULT = 'kernel';

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
  const { service, baseUrl, hasToken } = await serviceOf(options);
  const { headful } = options;
  if (headful && baseUrl !== 'local') throw new CliError(noWindows(idOrName), EXIT.usage);
  const token = await tokenOf(service, baseUrl, hasToken);
  const { BrowserPool } = await import('../pool/browser-pool.js');
  const local = headful && { headful };
  return new BrowserPool<object>(idOrName, { service, baseUrl, token, limit, local }) as BrowserPool;
}

const noWindows = (pool: string) =>
  `--headful shows the windows of browsers on this machine, and pool ${pool} is of another service. Set BROWSER_POOL_BASE_URL=local, ` +
  'name the pool local, or remove --headful: pooled-browser serve has it, too.';

/** The pools of a command. */
type OpenPools = readonly [BrowserPool, ...BrowserPool[]] & AsyncDisposable;

/**
 * Creates a client of each pool of a list. Nothing is sent yet.
 *
 * @param limit Most leases at once, of each pool.
 * @throws CliError when the address or the token of a pool is missing.
 */
export async function openPools(list: string, options: ServiceOptions, limit?: number): Promise<OpenPools> {
  const named = await namedPools(list, options);
  const pools = await Promise.all(named.map(({ name, ...at }) => openPool(name, at, limit)));
  const close = async () => void (await Promise.all(pools.map((pool) => pool.close())));
  return Object.assign(pools, { [Symbol.asyncDispose]: close }) as unknown as OpenPools;
}

/** A pool that a list names, and its service: that of the options, unless the name has its own. */
export type NamedPool = ServiceOptions & { readonly name: string };

export async function namedPools(list: string, options: ServiceOptions): Promise<NamedPool[]> {
  const { service, baseUrl, headful } = options;
  const { readPoolNames } = await import('../pool/pool-names.js');
  const at = (one: NamedPool) => (one.baseUrl === undefined ? { service, baseUrl } : {});
  return readPoolNames(list).map((one) => ({ headful, ...at(one), ...one }));
}

/** @throws CliError if a list names more than one pool, for a command that does something to one. */
export async function onePool(list: string, options: ServiceOptions): Promise<NamedPool> {
  const [first, ...more] = await namedPools(list, options);
  if (first && more.length === 0) return first;
  throw new CliError(`This command takes one pool, not ${list}. Pass its name.`, EXIT.usage);
}

/**
 * Calls a function with a client of the service, for requests that belong to no pool.
 *
 * @throws CliError when the address or the token is missing, or when the address is `local`.
 */
export async function withService<T>(
  options: ServiceOptions,
  use: (service: BrowserPool) => Promise<T>,
): Promise<T> {
  await refuseLocal(options);
  await using pool = await openPool(NO_POOL, options);
  return await use(pool);
}

/** @throws CliError when the address is missing, or `local`: the browsers of such a pool end with the command. */
export async function refuseLocal(options: ServiceOptions): Promise<void> {
  const { baseUrl } = await serviceOf(options);
  if (baseUrl === 'local') throw new CliError(NO_SERVICE, EXIT.usage);
}

/** The name of the pool in requests that belong to no pool. */
export const NO_POOL = 'none';

/** The token of the environment, or of the service's own variable; undefined if the service needs none. */
async function tokenOf(
  service: BrowserService,
  baseUrl: string,
  hasToken: boolean,
): Promise<string | undefined> {
  if (baseUrl === 'local' || service.auth === 'none') return undefined;
  const given = hasToken ? environment.accessToken() : undefined;
  if (given !== undefined) return given;
  const { usualVariables } = await import('../pool/named-service.js');
  const variables = usualVariables(service, checkBaseUrl(baseUrl));
  const token = environment.firstOf(variables)?.[1];
  if (token !== undefined || service.isTokenOptional) return token;
  const ours = hasToken ? ['BROWSER_POOL_ACCESS_TOKEN'] : [];
  throw new CliError(noToken([...ours, ...variables]), EXIT.usage);
}

const NO_SERVICE =
  'The address is local, but browsers of this machine end with the program that leases them. Their recordings stay in ' +
  'the folder pooled-browser-recordings, or in that of BROWSER_POOL_LOCAL_RECORDINGS. ' +
  'Pass --base-url with the address of a service.';

function noToken(variables: readonly string[]): string {
  const names = variables.length > 0 ? variables : ['BROWSER_POOL_SERVICE, BROWSER_POOL_ACCESS_TOKEN'];
  return (
    `The access token is missing: set the environment variable ${names.join(' or ')}. ` +
    'There is no flag for it: every user of a machine can read the arguments of its processes.'
  );
}

/** Starts a local pool, unless the signal aborts first. */
export async function startPool(options: LocalPoolOptions, signal: AbortSignal): Promise<LocalPool> {
  const { startLocalPool } = await import('../local/start-local-pool.js');
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
