import { randomUUID } from 'node:crypto';

/** What a pool, and a lease, may be called (interface: acquire, name). */
export const NAME_PATTERN = /^[a-zA-Z0-9._-]{1,255}$/;

/** An id that needs no escaping in a URL. */
export function newId(): string {
  return randomUUID().replaceAll('-', '');
}
