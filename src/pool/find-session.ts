import { isGone } from '../net/status.js';
import { readAs } from '../net/response.js';
import { headersFault } from '../services/check-service.js';
import type { BrowserService, Grant, LeaseRequest } from '../services/browser-service.js';
import { hideValuesIn } from '../shared/redact.js';
import { addressOf } from './grant.js';
import type { PoolCore } from './pool-core.js';
import { sealGrant } from './session.js';
import { entryIn } from './tickets.js';

/** Whether another process can find the browser of a lease, and its URLs, by the id of the lease. */
export function isFindable({ find }: Pick<BrowserService, 'find'>, lease: LeaseRequest): boolean {
  return find?.(lease)?.isWhole === true;
}

/**
 * Reads the browser of a lease from the service, with the URLs that it has now. Undefined if the service shows no session with this id
 * that has the tag of the lease: it is over, or belongs to another lease.
 *
 * @throws `PoolServiceError`, `PoolConnectionError`, `PoolResponseError`; the signal's reason.
 */
export async function findSession<Session extends object>(
  pool: PoolCore<Session>,
  id: string,
  { lease, signal }: { readonly lease: LeaseRequest; readonly signal?: AbortSignal | undefined },
): Promise<Grant<Session> | undefined> {
  const { service, client, idOrName } = pool;
  const search = service.find?.(lease);
  if (!search?.isWhole) return undefined;
  const { list, at, isWhole: _, ...request } = search;
  const facts = { pool: idOrName, sessionId: id };
  const response = await client.send(request, { facts, signal });
  if (isGone(response.status)) return undefined;
  hideValuesIn(response.body);
  const where = { list, idField: service.idField, ...(at && { at }), is: lease.id };
  return readAs(response, facts, (json) => {
    const entry = entryIn(json, id, where);
    if (entry === undefined) return undefined;
    const grant = service.grant(entry, lease, addressOf(pool));
    const fault = headersFault(grant.headers);
    if (fault !== undefined) throw new Error(`has ${fault}`);
    // The URLs that connect for the first time are used up.
    return sealGrant({ ...grant, ...grant.reconnect });
  });
}
