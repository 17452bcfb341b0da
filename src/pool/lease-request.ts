import type { LeaseRequest } from '../services/browser-service.js';

/** An acquire request to a pool, with a new id. */
export function leaseRequest(
  { idOrName: pool }: { readonly idOrName: string },
  what: Omit<LeaseRequest, 'pool' | 'id' | 'record'> & { readonly record?: boolean | undefined },
): LeaseRequest {
  return { pool, id: globalThis.crypto.randomUUID(), ...what, record: what.record ?? false };
}
