import { importForNode, lazy } from '../shared/lazy.js';
import { routeTo, type NetworkSettings, type Route } from '../shared/network.js';
import { hosts } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { openConnection } from '../net/connection.js';
import type { Connections } from '../net/connections.js';
import { Gate } from './gate.js';
import type { GrantReply } from './grant-reply.js';
import type { LocalService } from './local-service.js';
import type { LocalOptions } from './pool-options.js';
import { Reachability } from '../net/reachability.js';
import { SpareConnection } from '../net/spare-connection.js';

interface OpenHost {
  /** The first request opens a connection. */
  readonly connections: Connections;
  /** The connection for the next WebSocket. */
  readonly spare: SpareConnection;
  /** The process that serves local browsers. */
  readonly local: LocalService | undefined;
}

const loadConnections = lazy(async () => {
  // Loads Node's own undici first. Otherwise the undici of this library would also send what the program's `fetch` requests, and
  // refuses some of it.
  Reflect.get(globalThis, 'Headers');
  // Bun has a module 'undici' of its own, without what is used here. Its file is the real one everywhere.
  const loads = [
    importForNode('undici/index.js', () => import('undici/index.js')),
    import('../net/connections.js'),
  ] as const;
  const [undici, { Connections: Class }] = await Promise.all(loads);
  return { undici, Connections: Class };
});

/** What all pools of this process at one address share: connections and gates. */
export class Host {
  readonly reachability: Reachability;
  // Hidden from `inspect`: both can contain a password.
  readonly #network: NetworkSettings;
  readonly #route: Route;
  readonly #local: LocalOptions;
  readonly #key: string;
  #url: URL;
  readonly #gates = new Map<string, Gate<GrantReply>>();
  #users = 0;
  #opened: Promise<OpenHost> | undefined;

  /** Pools with other settings of local browsers have other browsers, and those with another proxy other connections. */
  static at(url: URL, local: LocalOptions = {}, network: NetworkSettings = {}): Host {
    const key = `${url.href} ${JSON.stringify(url.protocol === 'local:' ? local : network)}`;
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

  /** Address of the requests. The address of local browsers is known after `open()`. */
  get url(): URL {
    return this.#url;
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
      const opening = this.#opened?.catch(() => undefined);
      this.#opened = Promise.reject(new PoolClosedError());
      this.#opened.catch(() => {});
      const opened = await opening;
      opened?.spare.close();
      await opened?.connections.close();
      await opened?.local?.close();
    };
  }

  /** The gate of one pool. @param refusesAtOnce The service never lets a request wait. */
  gateOf(idOrName: string, refusesAtOnce: boolean): Gate<GrantReply> {
    const gate = this.#gates.get(idOrName) ?? new Gate(refusesAtOnce);
    this.#gates.set(idOrName, gate);
    return gate;
  }

  /** @internal Prepares the connections, and starts local browsers. Not declared: its types are Node's. */
  open(): Promise<OpenHost> {
    this.#opened ??= this.#start().catch((error: unknown) => {
      // The next request tries again.
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  async #start(): Promise<OpenHost> {
    let local: LocalService | undefined;
    if (this.#url.protocol === 'local:') {
      const { startLocalService } = await import('./local-service.js');
      local = await startLocalService(this.#url.pathname, this.#local);
      this.#url = local.url;
    }
    const connect = () => openConnection(this.#url, this.#route);
    const { Connections, undici } = await loadConnections();
    const connections = new Connections(undici, this.#url.origin, connect, this.reachability);
    return { connections, spare: new SpareConnection(this.#network), local };
  }
}
