import { isRecord } from '../shared/json.js';
import type { AcquireRequest } from './pool-options.js';
import type { BrowserSession } from './wire.js';

/**
 * A session id can belong to one lease after another. This tag of the acquire request tells the leases of a session
 * apart: the service shows it with the session (API: tags) until the lease ends.
 */
const LEASE_TAG = 'pooled-browser-lease';
const MOST_TAGS = 50;

/** What only one lease of a session has: our tag; or its name, from a service that shows no tags. */
export type LeaseMark = { tag: string } | { name: string };

/** A lease, told apart from other leases of the same session. */
export interface MarkedLease {
  readonly sessionId: string;
  readonly mark: LeaseMark | undefined;
  /** The service showed the mark when it leased the browser: a session without the mark is not ours any more. */
  readonly isMarkShown: boolean;
}

/** Adds the tag of a new lease. A lease with as many tags as the API allows gets none. */
export function withLeaseTag(tags: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  if (Object.keys(tags).length >= MOST_TAGS) return tags;
  return { ...tags, [LEASE_TAG]: globalThis.crypto.randomUUID() };
}

/** The lease of a session as the service showed it. */
export function leaseOf(session: BrowserSession): MarkedLease {
  return { sessionId: session.session_id, mark: markOf(session), isMarkShown: true };
}

/** Returns the mark of a session or of an acquire request, if it has one. */
export function markOf({ tags, name }: Pick<AcquireRequest, 'name' | 'tags'>): LeaseMark | undefined {
  const tag = tags?.[LEASE_TAG];
  if (tag !== undefined) return { tag };
  return name === undefined ? undefined : { name };
}

/** Returns true if a record of `GET /browsers/{id}` shows this mark: the lease is still active. */
export function bearsMark(record: unknown, mark: LeaseMark): boolean {
  if (!isRecord(record)) return false;
  if ('name' in mark) return record['name'] === mark.name;
  return isRecord(record['tags']) && record['tags'][LEASE_TAG] === mark.tag;
}
