import { randomBytes, randomUUID } from 'node:crypto';

/** An id that needs no escaping in a URL. */
export function newId(): string {
  return randomUUID().replaceAll('-', '');
}

/** A secret for a link to a page: 128 random bits. It is hexadecimal, so that no terminal cuts a dash off its end. */
export function newLinkToken(): string {
  return randomBytes(16).toString('hex');
}
