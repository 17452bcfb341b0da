import { AcquireTimeoutError, PoolConnectionError, PoolServiceError } from '../../shared/service-errors.js';
import { ConnectError } from '../../shared/lease-errors.js';
import { environment } from '../../shared/environment.js';

/** What to do about an error; nothing where its own message says so. */
export function adviceFor(error: unknown): string | undefined {
  if (error instanceof PoolConnectionError) return adviceOnNetwork(error);
  if (error instanceof AcquireTimeoutError) return EXHAUSTED;
  if (error instanceof ConnectError) return adviceOnWebsocket(error);
  if (error instanceof PoolServiceError && error.status >= 500)
    return 'The service is in trouble: try later.';
  return undefined;
}

const EXHAUSTED =
  'Are all browsers leased? The counts of the pool stand above; the names of its leases are known to ' +
  'the service. One that nobody gives back ends by its inactivity time-out. To wait longer: --acquire-timeout.';

function adviceOnNetwork({ cause }: PoolConnectionError): string {
  const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException;
  const proxies = environment.proxyVariables();
  const proxy =
    proxies.length > 0 ? ` ${proxies.join(', ')} is set, but pooled-browser connects directly.` : '';
  return `${CAUSES.find(([pattern]) => pattern.test(code))?.[1] ?? UNREACHABLE}${proxy}`;
}

const UNREACHABLE = 'Check the address, and that the network lets you get there.';

const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, 'No such host is known: check the address and the name server.'],
  [/ECONNREFUSED/, 'Nothing listens there: check the address, its port, and that the service runs.'],
  [/CERT|TLS|UNABLE_TO/, 'Its certificate is not trusted: NODE_EXTRA_CA_CERTS names further ones.'],
];

function adviceOnWebsocket({ status }: ConnectError): string {
  if (status === undefined) return `${BETWEEN} or a service that hands out addresses of another network.`;
  return `${BETWEEN} or a service that does not accept the jwt of its own websocket URL.`;
}

const BETWEEN =
  'The service was reached, its browser was not. Look for a proxy or firewall that lets no websockets through,';
