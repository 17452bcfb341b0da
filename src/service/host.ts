import type { Duplex } from 'node:stream';
import type { Dispatcher, Pool } from 'undici';
import { hasFakeTimers, nextTurn } from '../shared/clock.js';
import { readOption } from '../shared/options.js';
import { hosts } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { checkBaseUrl } from '../shared/urls.js';
import { FairQueue } from './fair-queue.js';
import type { LocalService } from './local-service.js';
import { OutageGate } from './outage-gate.js';
import { leaseName, type LocalOptions } from './pool-options.js';
import { Reachability } from './reachability.js';
import type { SpareConnection } from './spare-connection.js';

/** Milliseconds to establish a TCP and TLS connection. */
const CONNECT_TIMEOUT = 10_000;
/** Some gateways add many headers. Node's limit is 16 KiB. */
const LARGEST_HEADERS = 64 * 1024;

/** `baseUrl` of Chromium on this machine. Each pool is a separate service. */
const LOCAL = 'local';

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
  if (baseUrl !== LOCAL) return checkBaseUrl(baseUrl, options);
  return new URL(`${LOCAL}:${readOption(leaseName(), 'pool', idOrName)}`);
}

interface Connections {
  dispatcher: Dispatcher;
  /** Opens a connection for each request. */
  withoutIdle: Dispatcher;
  /** The process that serves local browsers. */
  local?: LocalService;
  /** For the next WebSocket. */
  spare: SpareConnection;
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  connected: Promise<void>;
  /** Closes the connections and ends the local browsers. */
  close(): Promise<void>;
}

/** What all pools of this process at one address share: keep-alive connections, queues, and the outage gate. */
export class Host {
  readonly gate = new OutageGate();
  readonly reachability: Reachability;
  /** The options `local` of the pools. */
  readonly #local: LocalOptions;
  readonly #key: string;
  #url: URL;
  readonly #queues = new Map<string, FairQueue>();
  #users = 0;
  #connections: Promise<Connections> | undefined;

  /** Pools with other settings of local browsers have other browsers. */
  static at(url: URL, local: LocalOptions = {}): Host {
    const key = url.protocol === `${LOCAL}:` ? `${url.href} ${JSON.stringify(local)}` : url.href;
    const known = (hosts.get(key) as Host | undefined) ?? new Host(key, url, local);
    hosts.set(key, known);
    return known;
  }

  private constructor(key: string, url: URL, local: LocalOptions) {
    this.#key = key;
    this.#url = url;
    this.#local = local;
    this.reachability = Reachability.of(url.href);
  }

  /** Address of the requests. The address of local browsers is known after `dispatcher()`. */
  get url(): URL {
    return this.#url;
  }

  /** Joins the users of this address. The returned function leaves; the last user closes the connections. */
  join(): () => Promise<void> {
    this.#users++;
    return async () => {
      if (--this.#users > 0) return;
      if (hosts.get(this.#key) === this) hosts.delete(this.#key);
      const connections = this.#connections?.catch(() => undefined);
      this.#connections = Promise.reject(new PoolClosedError());
      this.#connections.catch(() => {});
      await (await connections)?.close();
    };
  }

  /** The queue of the callers of one pool. */
  queueOf(idOrName: string): FairQueue {
    const queue = this.#queues.get(idOrName) ?? new FairQueue();
    this.#queues.set(idOrName, queue);
    return queue;
  }

  /** Before undici uses an idle connection again, it waits for the global `setImmediate`, which a test can have replaced. */
  async dispatcher(): Promise<Dispatcher> {
    const { dispatcher, withoutIdle } = await this.#connect();
    return hasFakeTimers() ? withoutIdle : dispatcher;
  }

  /** Resolves when the first request is on its way. */
  async connected(): Promise<void> {
    return (await this.#connect()).connected;
  }

  async spare(): Promise<SpareConnection> {
    return (await this.#connect()).spare;
  }

  /** The token of local browsers. */
  async localToken(): Promise<string> {
    return (await this.#connect()).local!.token;
  }

  #connect(): Promise<Connections> {
    return (this.#connections ??= this.#open());
  }

  async #open(): Promise<Connections> {
    if (this.#url.protocol !== `${LOCAL}:`) return openConnections(this.#url.origin, this.reachability);
    const { startLocalService } = await import('./local-service.js');
    try {
      const local = await startLocalService(this.#url.pathname, this.#local);
      this.#url = local.url;
      const connections = await openConnections(local.url.origin, this.reachability);
      return { ...connections, local, close: () => connections.close().then(() => local.close()) };
    } catch (error) {
      // The next request tries again.
      this.#connections = undefined;
      throw error;
    }
  }
}

async function openConnections(origin: string, reachability: Reachability): Promise<Connections> {
  const [{ buildConnector, Pool }, { SpareConnection }] = await Promise.all([
    import('undici'),
    import('./spare-connection.js'),
  ]);
  const spare = new SpareConnection();
  const connect = buildConnector({ timeout: CONNECT_TIMEOUT });
  const poolOf = (options: Pool.Options) => {
    const pool = new Pool(origin, {
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
