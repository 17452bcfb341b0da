import type { Dispatcher } from 'undici';
import { hasFakeTimers } from '../shared/clock.js';
import { readOption } from '../shared/options.js';
import { routeTo, type NetworkSettings, type Route } from '../shared/network.js';
import { hosts } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { checkBaseUrl } from '../shared/urls.js';
import type { Connections } from './connections.js';
import { FairQueue } from './fair-queue.js';
import type { LocalService } from './local-service.js';
import { OutageGate } from './outage-gate.js';
import { leaseName, type LocalOptions } from './pool-options.js';
import { Reachability } from './reachability.js';
import type { SpareConnection } from './spare-connection.js';

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

interface OpenHost extends Connections {
  /** The process that serves local browsers. */
  readonly local?: LocalService;
}

/** What all pools of this process at one address share: keep-alive connections, queues, and the outage gate. */
export class Host {
  readonly gate = new OutageGate();
  readonly reachability: Reachability;
  readonly #network: NetworkSettings;
  readonly #route: Route;
  /** The options `local` of the pools. */
  readonly #local: LocalOptions;
  readonly #key: string;
  #url: URL;
  readonly #queues = new Map<string, FairQueue>();
  #users = 0;
  #connections: Promise<OpenHost> | undefined;

  /** Pools with other settings of local browsers have other browsers, and those with another proxy other connections. */
  static at(url: URL, local: LocalOptions = {}, network: NetworkSettings = {}): Host {
    const key = `${url.href} ${JSON.stringify(url.protocol === `${LOCAL}:` ? local : network)}`;
    const known = (hosts.get(key) as Host | undefined) ?? new Host(key, url, local, network);
    hosts.set(key, known);
    return known;
  }

  private constructor(key: string, url: URL, local: LocalOptions, network: NetworkSettings) {
    this.#key = key;
    this.#url = url;
    this.#network = network;
    this.#route = routeTo(url, network);
    this.#local = local;
    this.reachability = Reachability.of(url.href);
  }

  /** Address of the requests. The address of local browsers is known after `dispatcher()`. */
  get url(): URL {
    return this.#url;
  }

  /** Hidden from `inspect`, because it can contain a password. */
  get network(): NetworkSettings {
    return this.#network;
  }

  /** How to connect to the service. */
  get route(): Route {
    return this.#route;
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

  #connect(): Promise<OpenHost> {
    return (this.#connections ??= this.#open());
  }

  async #open(): Promise<OpenHost> {
    const { openConnections } = await import('./connections.js');
    if (this.#url.protocol !== `${LOCAL}:`) return openConnections(this.#url, this);
    const { startLocalService } = await import('./local-service.js');
    try {
      const local = await startLocalService(this.#url.pathname, this.#local);
      this.#url = local.url;
      const connections = openConnections(local.url, this);
      return { ...connections, local, close: () => connections.close().then(() => local.close()) };
    } catch (error) {
      // The next request tries again.
      this.#connections = undefined;
      throw error;
    }
  }
}
