import { once, type EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { isIP, Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import { credentialsOf, ProxyError, type Route } from '../shared/network.js';
import { isEncrypted, portOf } from '../shared/urls.js';
import { nativeRequest } from './native-requests.js';
import { explain } from './reachability.js';
import { isSuccess, meaningOf } from './status.js';

/** Milliseconds to connect, with TLS. A proxy has the same time to open a tunnel. */
const CONNECT_TIMEOUT = 10_000;
/** Milliseconds without traffic after which the system checks whether the other side still exists. */
const PROBE_AFTER = 60_000;

interface OpenOptions {
  readonly signal?: AbortSignal | undefined;
  /** The connection does not keep the process alive. */
  readonly isSpare?: boolean;
}

/**
 * Opens a connection to the host of a URL, directly or through the proxy.
 *
 * @throws ProxyError
 */
export async function openConnection(url: URL, route: Route, options: OpenOptions = {}): Promise<Socket> {
  const tunnel = route.proxy === undefined ? undefined : await openTunnel(url, route, options);
  return dial(url, route, options, tunnel);
}

/** Lets the proxy connect to the host, with the method CONNECT. */
async function openTunnel(url: URL, route: Route, options: OpenOptions): Promise<Socket> {
  const proxy = new URL(route.proxy!);
  const target = `${url.hostname}:${portOf(url)}`;
  const headers = { host: target, ...authorizationFor(proxy) };
  let connection: Socket | undefined;
  let answer: unknown[];
  try {
    const opened = (connection = await dial(proxy, route, options));
    const { hostname: host } = proxy;
    const to = { host, port: portOf(proxy), createConnection: () => opened };
    const sent = nativeRequest({ ...to, method: 'CONNECT', path: target, headers });
    sent.on('error', () => {}).end();
    answer = await inTime(opened, sent, 'connect', options.signal);
  } catch (cause) {
    connection?.destroy();
    options.signal?.throwIfAborted();
    throw new ProxyError(`${nameOf(proxy)} could not be reached: ${explain(cause)}`, { cause });
  }
  const [{ statusCode: status = 0 }, , head] = answer as [IncomingMessage, Socket, Buffer];
  if (!isSuccess(status)) {
    connection.destroy();
    throw refusal(proxy, target, status);
  }
  // A server may speak first.
  if (head.length > 0) connection.unshift(head);
  return connection;
}

/** @param tunnel An open connection to the host. */
async function dial(url: URL, route: Route, options: OpenOptions, tunnel?: Socket): Promise<Socket> {
  const { signal, isSpare = false } = options;
  signal?.throwIfAborted();
  const isTls = isEncrypted(url);
  if (tunnel && !isTls) return tunnel;
  const host = url.hostname.replaceAll(/^\[|\]$/g, '');
  const port = Number(portOf(url));
  const secureContext = secureContextOf(route);
  const connection = isTls
    ? connectTls({
        host,
        port,
        ...(tunnel && { socket: tunnel }),
        ...(isIP(host) === 0 && { servername: host }),
        ...(secureContext && { secureContext }),
      })
    : new Socket().connect({ host, port });
  // The end of the connection follows each error.
  connection.on('error', () => {});
  if (isSpare) connection.unref();
  try {
    await inTime(connection, connection, isTls ? 'secureConnect' : 'connect', signal);
  } catch (error) {
    connection.destroy();
    signal?.throwIfAborted();
    throw error;
  }
  return connection.setNoDelay().setKeepAlive(true, PROBE_AFTER);
}

/** Waits for an event, as long as opening a connection may take. */
async function inTime(
  connection: Socket,
  source: EventEmitter,
  event: string,
  signal: AbortSignal | undefined,
): Promise<unknown[]> {
  const expire = () => connection.destroy(new Error(`no answer within ${CONNECT_TIMEOUT / 1000} s`));
  connection.setTimeout(CONNECT_TIMEOUT, expire);
  try {
    return (await once(source, event, { signal })) as unknown[];
  } finally {
    connection.setTimeout(0, expire);
  }
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

/** The certificates that are trusted, if they are not only those of Node. Node's option `ca` would replace these. */
function secureContextOf({ ca }: Route): SecureContext | undefined {
  if (ca === undefined) return undefined;
  const secure = createSecureContext();
  (secure.context as { addCACert(pem: string): void }).addCACert(ca);
  return secure;
}
