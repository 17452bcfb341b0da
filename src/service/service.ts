import type { Dispatcher } from 'undici';
import { readOption } from '../shared/options.js';
import { services } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { checkBaseUrl } from '../shared/urls.js';
import { FairSemaphore } from './fair-semaphore.js';
import type { LocalService } from './local-service.js';
import { OutageGate } from './outage-gate.js';
import { leaseName, type LocalOptions } from './pool-options.js';
import { Reachability } from './reachability.js';
import { SpareConnection } from './spare-connection.js';

/** Milliseconds to establish a TCP and TLS connection. */
const CONNECT_TIMEOUT = 10_000;

/** `baseUrl` of Chromium on this machine. Each pool is a separate service. */
const LOCAL = 'local';

/**
 * Returns the address of a service: a URL, or `local:<pool>`.
 *
 * @throws InvalidOptionError
 */
export function serviceUrl(baseUrl: string | undefined, idOrName: string): URL {
  if (baseUrl !== LOCAL) return checkBaseUrl(baseUrl);
  return new URL(`${LOCAL}:${readOption(leaseName(), 'pool', idOrName)}`);
}

interface Connections {
  dispatcher: Dispatcher;
  /** The process that serves local browsers. */
  local?: LocalService;
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  connected: Promise<void>;
  /** Closes the connections and ends the local browsers. */
  close(): Promise<void>;
}

/**
 * The state that all pools of this process at one address share: keep-alive connections, queues, and the outage gate.
 */
export class Service {
  readonly gate = new OutageGate();
  /** For the next WebSocket. */
  readonly spare = new SpareConnection();
  /** Leases whose callbacks wait for another browser of this service. */
  readonly blockedLeases = new Set<object>();
  /** Pools that callers named by a string, with the token that they use. */
  readonly namedPools = new Map<string, { pool: object; token: string | undefined }>();

  /** Settings of local browsers. */
  local: LocalOptions = {};

  readonly reachability: Reachability;
  readonly #key: string;
  #url: URL;
  readonly #queues = new Map<string, FairSemaphore>();
  #users = 0;
  #connections: Promise<Connections> | undefined;

  static at(url: URL): Service {
    const known = services.get(url.href) ?? new Service(url);
    services.set(url.href, known);
    return known as Service;
  }

  private constructor(url: URL) {
    this.#key = url.href;
    this.#url = url;
    this.reachability = Reachability.of(url.href);
  }

  /** Address of the requests. The address of local browsers is known after `dispatcher()`. */
  get url(): URL {
    return this.#url;
  }

  /** The beginning of all paths, without a slash at its end. Local browsers have no such path. */
  get root(): string {
    return this.#url.protocol === `${LOCAL}:` ? '' : this.#url.pathname.replace(/\/+$/, '');
  }

  /** Joins the users of this service. The returned function leaves; the last user closes the connections. */
  join(): () => Promise<void> {
    this.#users++;
    return async () => {
      if (--this.#users > 0) return;
      if (services.get(this.#key) === this) services.delete(this.#key);
      this.spare.close();
      const connections = this.#connections?.catch(() => undefined);
      this.#connections = Promise.reject(new PoolClosedError());
      this.#connections.catch(() => {});
      await (await connections)?.close();
    };
  }

  /** The queue of the callers of one pool. */
  queueOf(idOrName: string): FairSemaphore {
    const queue = this.#queues.get(idOrName) ?? new FairSemaphore();
    this.#queues.set(idOrName, queue);
    return queue;
  }

  async dispatcher(): Promise<Dispatcher> {
    return (await this.#connect()).dispatcher;
  }

  /** Resolves when the first request is on its way. */
  async connected(): Promise<void> {
    return (await this.#connect()).connected;
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
      const local = await startLocalService(this.#url.pathname, this.local);
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
  const { Pool } = await import('undici');
  // Each request has its own timeout. undici's timeouts of 300 s would end a long poll too early.
  const dispatcher = new Pool(origin, {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: CONNECT_TIMEOUT },
  });
  dispatcher.on('connect', () => reachability.connected());
  dispatcher.on('connectionError', (_origin, _targets, error) => reachability.failed(error));
  const connected = new Promise<void>((resolve) => {
    dispatcher.once('connect', () => setImmediate(resolve));
  });
  return { dispatcher, connected, close: () => dispatcher.close() };
}
