import type { LeaseRequest } from '../services/browser-service.js';
import type { PoolCore } from './pool-core.js';
import { ANY_ID, type OwnerCheck, type ReleaseTicket, type SearchTicket } from './tickets.js';

/** An acquire request, and its pool. */
interface Leasing {
  readonly pool: PoolCore;
  readonly lease: LeaseRequest;
}

/**
 * How to release the session of an acquire request.
 *
 * @param isShown Whether the service showed the mark of the lease in its response. A service that did not will not show it later.
 */
export function ticketOf(id: string, { pool, lease }: Leasing, isShown?: boolean): ReleaseTicket | undefined {
  const { service, client } = pool;
  const reuse = service.release(id, { pool: pool.idOrName, reuse: true });
  const destroy = service.release(id, { pool: pool.idOrName, reuse: false });
  if (!reuse || !destroy) return undefined;
  const ticket = { id, reuse: client.complete(reuse), destroy: client.complete(destroy) };
  const test = service.owner?.(id, lease);
  if (test === undefined) return ticket;
  if (test === null || isShown === false) return { ...ticket, owner: null };
  const { at, is, ...request } = test;
  const owner: OwnerCheck = { ...client.complete(request), at, is, isShown: isShown ?? false };
  return { ...ticket, owner };
}

export function searchTicketOf(request: Leasing): SearchTicket | undefined {
  const { service, client } = request.pool;
  const search = service.find?.(request.lease);
  const found = ticketOf(ANY_ID, request);
  if (!search || !found) return undefined;
  const { list, at, ...message } = search;
  const where = { list, ...(at && { at }), is: request.lease.id, idField: service.idField };
  return { search: client.complete(message), ...where, found };
}
