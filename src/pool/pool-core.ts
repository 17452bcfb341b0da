import type { BrowserService, LeaseRequest } from '../services/browser-service.js';
import { onAbort } from '../shared/abort.js';
import { PoolClosedError } from '../shared/service-errors.js';
import { ServiceClient } from './client.js';
import type { Gate } from './gate.js';
import type { GrantReply } from './grant-reply.js';
import { PendingReleases } from './pending-releases.js';
import type { LocalOptions } from './pool-options.js';
import { INTERNALS, type PoolApi } from './pool-settings.js';
import { ANY_ID, type ReleaseTicket, type SearchTicket } from './tickets.js';
import { createAbort } from '../shared/globals.js';

/** What belongs to a pool, and is shared by all who use it. */
export class PoolCore<Session extends object = object> {
  /** The pool, as its user sees it. */
  readonly api: PoolApi<Session>;
  readonly idOrName: string;
  readonly service: BrowserService<Session>;
  /** Most leases of this process at once. */
  readonly limit: number;
  readonly client: ServiceClient;
  /** The browsers of this machine, which end with this process. */
  readonly local: LocalOptions | undefined;
  /** The leased browsers that this process must release. */
  readonly releases: PendingReleases;
  /** Aborts when the pool is closed. */
  readonly closing = createAbort();

  constructor(pool: PoolApi<Session>) {
    const settings = pool[INTERNALS]();
    this.api = pool;
    this.idOrName = pool.idOrName;
    this.service = settings.service;
    this.limit = settings.limit;
    this.client = new ServiceClient(settings);
    this.local = settings.url.protocol === 'local:' ? (settings.local ?? {}) : undefined;
    this.releases = new PendingReleases(this.idOrName, this.client);
  }

  /** Decides who may ask for a browser. The own limit of a service counts for all pools at its address. */
  get gate(): Gate<GrantReply> {
    const { limit, waits } = this.service;
    return this.client.host.gateOf(limit === undefined ? this.idOrName : '', waits === 'never');
  }

  /**
   * Begins a call that uses the pool: `pool.close()` ends the call, and waits until the returned function is called.
   *
   * @param end Ends the call. Each call receives an error of its own, so that `runOf` returns its run. Called at once if the pool
   *   is closed already.
   */
  beginCall(end: (error: PoolClosedError) => void): () => void {
    const leave = this.client.background.begin();
    const close = () => end(new PoolClosedError({ pool: this.idOrName }));
    const stopListening = onAbort(this.closing.signal, close);
    return () => {
      stopListening();
      leave();
    };
  }

  /**
   * How to release the session of an acquire request. Undefined if the end of the connection releases it.
   *
   * @param isShown Whether the service showed the mark of the lease in its response. A service that did not will not show it later.
   */
  ticketOf(id: string, lease: LeaseRequest, isShown?: boolean): ReleaseTicket | undefined {
    const { service, client, idOrName: pool } = this;
    const reuse = service.release(id, { pool, reuse: true });
    const destroy = service.release(id, { pool, reuse: false });
    if (!reuse || !destroy) return undefined;
    const ticket = { id, reuse: client.complete(reuse), destroy: client.complete(destroy) };
    const test = service.owner?.(id, lease);
    if (test === undefined) return ticket;
    if (test === null || isShown === false) return { ...ticket, owner: null };
    const { at, is, ...request } = test;
    return { ...ticket, owner: { ...client.complete(request), at, is, isShown: isShown ?? false } };
  }

  /** How to find the session of an acquire request whose response was lost. */
  searchOf(lease: LeaseRequest): SearchTicket | undefined {
    const { service, client } = this;
    const search = service.find?.(lease);
    const found = this.ticketOf(ANY_ID, lease);
    if (!search || !found) return undefined;
    const { list, at, isWhole: _, ...message } = search;
    const where = { list, ...(at && { at }), is: lease.id, idField: service.idField };
    return { search: client.complete(message), ...where, found };
  }

  /** Ends all calls that use the pool, and closes its connections when no browser is left to release and no request is open. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.client.background.settled();
    await this.client.close();
  }
}

const cores = new WeakMap<object, unknown>();

/** Returns what belongs to a pool: built with its first use, because an import of this library loads nothing that sends requests. */
export function coreOf<Session extends object>(pool: PoolApi<Session>): PoolCore<Session> {
  const core = (cores.get(pool) as PoolCore<Session> | undefined) ?? new PoolCore(pool);
  cores.set(pool, core);
  return core;
}
