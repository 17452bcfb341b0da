import type { Dispatcher } from 'undici';
import { services } from '../shared/process-state.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { FairSemaphore } from './fair-semaphore.js';
import { OutageGate } from './outage-gate.js';
import { Reachability } from './reachability.js';

/** Milliseconds to establish a TCP and TLS connection. */
const CONNECT_TIMEOUT = 10_000;

interface Connections {
  dispatcher: Dispatcher;
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  connected: Promise<void>;
}

/** What all pools of this process at one address share: keep-alive connections, queues, and the outage gate. */
export class Service {
  readonly gate = new OutageGate();
  /** Leases whose callbacks wait for another browser of this service. */
  readonly blockedLeases = new Set<object>();
  /** Pools that callers named by a string, with the token that they use. */
  readonly namedPools = new Map<string, { pool: object; token: string | undefined }>();

  readonly reachability: Reachability;
  readonly #url: URL;
  readonly #queues = new Map<string, FairSemaphore>();
  #users = 0;
  #connections: Promise<Connections> | undefined;

  static at(url: URL): Service {
    const known = services.get(url.href) ?? new Service(url);
    services.set(url.href, known);
    return known as Service;
  }

  private constructor(url: URL) {
    this.#url = url;
    this.reachability = Reachability.of(url.origin);
  }

  /** Joins the users of this service. The returned function leaves; the last user closes the connections. */
  join(): () => Promise<void> {
    this.#users++;
    return async () => {
      if (--this.#users > 0) return;
      if (services.get(this.#url.href) === this) services.delete(this.#url.href);
      const connections = this.#connections;
      this.#connections = Promise.reject(new PoolClosedError());
      this.#connections.catch(() => {});
      await (await connections)?.dispatcher.close();
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

  #connect(): Promise<Connections> {
    return (this.#connections ??= openConnections(this.#url.origin, this.reachability));
  }
}

async function openConnections(origin: string, reachability: Reachability): Promise<Connections> {
  const { Pool } = await import('undici');
  // undici's own timeouts of 300 s would end a long poll that the service still answers: each request has its own.
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
  return { dispatcher, connected };
}
