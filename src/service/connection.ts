import { request } from 'node:http';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { credentialsOf, ProxyError, type Route } from '../shared/network.js';
import { isEncrypted, portOf } from '../shared/urls.js';
import { explain } from './reachability.js';
import { isSuccess, meaningOf } from './status.js';

/** Milliseconds until a proxy must have opened a connection to the service. */
const TUNNEL_TIMEOUT = 10_000;

interface OpenOptions {
  readonly signal?: AbortSignal | undefined;
  /** The connection does not keep the process alive. */
  readonly isSpare?: boolean;
}

/**
 * Opens a connection to the host of a URL. The caller handles its errors: a connection without a proxy, and the TLS handshake,
 * may still be under way.
 *
 * @throws ProxyError
 */
export async function openConnection(
  url: URL,
  route: Route,
  { signal, isSpare = false }: OpenOptions = {},
): Promise<Socket> {
  signal?.throwIfAborted();
  const tunnel = route.proxy === undefined ? undefined : await openTunnel(url, route, { signal, isSpare });
  const connection = dial(url, route, tunnel);
  return isSpare ? connection.unref() : connection;
}

/**
 * Opens a connection to the host of a URL through the proxy, with the method CONNECT. It is not encrypted.
 *
 * @throws ProxyError
 */
export async function openTunnel(
  url: URL,
  route: Route,
  { signal, isSpare = false }: OpenOptions = {},
): Promise<Socket> {
  const proxy = new URL(route.proxy!);
  const target = `${url.hostname}:${portOf(url)}`;
  const connection = dial(proxy, route);
  if (isSpare) connection.unref();
  const abort = () => connection.destroy();
  const expire = () => connection.destroy(new Error(`no answer within ${TUNNEL_TIMEOUT / 1000} s`));
  connection.setTimeout(TUNNEL_TIMEOUT, expire);
  signal?.addEventListener('abort', abort);
  return new Promise<Socket>((resolve, reject) => {
    const headers = { host: target, ...authorizationFor(proxy) };
    const sent = request({ createConnection: () => connection, method: 'CONNECT', path: target, headers });
    sent.on('error', (cause) => {
      if (signal?.aborted) reject(signal.reason as Error);
      else reject(new ProxyError(`${nameOf(proxy)} could not be reached: ${explain(cause)}`, { cause }));
    });
    sent.once('connect', ({ statusCode: status = 0 }, _socket, head: Buffer) => {
      if (isSuccess(status)) {
        // A server may speak first.
        if (head.length > 0) connection.unshift(head);
        return resolve(connection);
      }
      connection.destroy();
      reject(refusal(proxy, target, status));
    });
    sent.end();
  }).finally(() => {
    connection.setTimeout(0).off('timeout', expire);
    signal?.removeEventListener('abort', abort);
  });
}

/** The proxy in messages: without its credentials. */
export function nameOf({ protocol, host }: URL): string {
  return `the proxy ${protocol}//${host}`;
}

function refusal(proxy: URL, target: string, status: number): ProxyError {
  const isPermanent = !meaningOf(status).isTransient;
  const name = nameOf(proxy);
  if (status !== 407)
    return new ProxyError(`${name} refused to connect to ${target} (status ${status})`, { isPermanent });
  const what = hasCredentials(proxy)
    ? 'does not accept the user name and the password in its URL (status 407). Correct them'
    : 'requires a user name and a password (status 407). Add them to its URL';
  return new ProxyError(`${name} ${what} in the option proxy, or in HTTPS_PROXY`, { isPermanent });
}

function authorizationFor(proxy: URL): { 'proxy-authorization'?: string } {
  if (!hasCredentials(proxy)) return {};
  return { 'proxy-authorization': `Basic ${Buffer.from(credentialsOf(proxy.href)).toString('base64')}` };
}

function hasCredentials({ username, password }: URL): boolean {
  return username !== '' || password !== '';
}

/** @param through An open connection to the host. */
function dial(url: URL, route: Route, through?: Socket): Socket {
  const host = url.hostname.replaceAll(/^\[|\]$/g, '');
  const port = Number(portOf(url));
  if (!isEncrypted(url)) return through ?? connectTcp({ host, port });
  const secureContext = secureContextOf(route);
  return connectTls({
    host,
    port,
    ...(through && { socket: through }),
    ...(isIP(host) === 0 && { servername: host }),
    ...(secureContext && { secureContext }),
  });
}

/** The certificates that are trusted, if they are not only those of Node. Node's option `ca` would replace these. */
export function secureContextOf({ ca }: Route): SecureContext | undefined {
  if (ca === undefined) return undefined;
  const secure = createSecureContext();
  (secure.context as { addCACert(pem: string): void }).addCACert(ca);
  return secure;
}
