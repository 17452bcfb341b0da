import type { Duplex } from 'node:stream';
import { buildConnector, Pool, type Dispatcher } from 'undici';
import { nextTurn } from '../shared/clock.js';
import type { Route, NetworkSettings } from '../shared/network.js';
import { openTunnel, secureContextOf } from './connection.js';
import type { Reachability } from './reachability.js';
import { SpareConnection } from './spare-connection.js';

/** Milliseconds to establish a TCP and TLS connection. */
const CONNECT_TIMEOUT = 10_000;
/** Some gateways add many headers. Node's limit is 16 KiB. */
const LARGEST_HEADERS = 64 * 1024;

/** The connections to a service. */
export interface Connections {
  readonly dispatcher: Dispatcher;
  /** Opens a connection for each request. */
  readonly withoutIdle: Dispatcher;
  /** For the next WebSocket. */
  readonly spare: SpareConnection;
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  readonly connected: Promise<void>;
  /** Closes the connections, and ends the local browsers. */
  close(): Promise<void>;
}

interface Ways {
  readonly network: NetworkSettings;
  readonly route: Route;
  readonly reachability: Reachability;
}

/** Prepares the connections to a service. The first request opens one. */
export function openConnections(url: URL, { network, route, reachability }: Ways): Connections {
  const spare = new SpareConnection(network);
  const connect = connectorTo(url, route);
  const poolOf = (options: Pool.Options) => {
    const pool = new Pool(url.origin, {
      // Each request has its own timeout. undici's timeouts of 300 s would end a long poll too early.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: LARGEST_HEADERS,
      connect: (settings, callback) =>
        connect(settings, (...[error, socket]) =>
          error ? callback(error, null) : callback(null, acceptContinue(socket)),
        ),
      ...options,
    });
    pool.on('connect', () => reachability.connected());
    pool.on('connectionError', (_origin, _targets, error) => reachability.failed(error));
    return pool;
  };
  const dispatcher = poolOf({});
  const withoutIdle = poolOf({ pipelining: 0 });
  const connected = new Promise<void>((resolve) => {
    dispatcher.once('connect', () => void nextTurn().then(resolve));
  });
  const close = async () => {
    spare.close();
    await Promise.all([dispatcher.close(), withoutIdle.close()]);
  };
  return { dispatcher, withoutIdle, spare, connected, close };
}

/** The function with which undici opens a connection. */
function connectorTo(url: URL, route: Route): buildConnector.connector {
  const secureContext = secureContextOf(route);
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT, ...(secureContext && { secureContext }) });
  if (route.proxy === undefined) return connect;
  const connectThroughProxy = async (...[settings, callback]: Parameters<typeof connect>) => {
    let httpSocket;
    try {
      httpSocket = await openTunnel(url, route);
    } catch (error) {
      return callback(error as Error, null);
    }
    if (url.protocol === 'https:') connect({ ...settings, httpSocket }, callback);
    else callback(null, httpSocket);
  };
  return (settings, callback) => void connectThroughProxy(settings, callback);
}

const CONTINUE = /^HTTP\/1\.\d 100$/;
const STATUS_END = 'HTTP/1.1 100'.length;

/**
 * Some gateways send a `100 Continue` that the request did not ask for. undici would close the connection, and with it lose
 * the browser in the response that follows. It skips a 102, so the last digit is changed.
 */
function acceptContinue<Connection extends Duplex>(socket: Connection): Connection {
  let head = '';
  const push = socket.push.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  // What arrives first after a request is the head of its response.
  socket.write = (...args: unknown[]) => {
    head = '';
    return write(...args);
  };
  socket.push = (chunk: Buffer | null) => {
    const missing = STATUS_END - head.length;
    if (missing > 0) head += chunk?.toString('latin1', 0, missing) ?? '';
    if (missing > 0 && CONTINUE.test(head)) chunk![missing - 1] = '2'.charCodeAt(0);
    return push(chunk);
  };
  return socket;
}
