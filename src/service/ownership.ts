import { isRecord } from '../shared/json.js';
import type { AcquireRequest } from './pool-options.js';
import type { BrowserSession } from './wire.js';

/**
 * The tag of the acquire request that distinguishes the leases of a session: a session id can belong to one lease after
 * another. The service returns the tag with the session (API: tags) until the lease ends.
 */
const LEASE_TAG = 'pooled-browser-lease';
const MOST_TAGS = 50;

/** Identifies one lease of a session: our tag, or the name of the lease at a service that returns no tags. */
export type LeaseMark = { tag: string } | { name: string };

/** A lease with its mark, which distinguishes it from other leases of the same session. */
export interface MarkedLease {
  readonly sessionId: string;
  readonly mark: LeaseMark | undefined;
  /** The service returned the mark when it leased the browser, so a session without the mark is no longer ours. */
  readonly isMarkShown: boolean;
}

/** Adds the tag of a new lease. A lease that already has the maximum number of tags receives none. */
export function withLeaseTag(tags: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  if (Object.keys(tags).length >= MOST_TAGS) return tags;
  return { ...tags, [LEASE_TAG]: globalThis.crypto.randomUUID() };
}

/** Returns the lease of a session that the service returned. */
export function leaseOf(session: BrowserSession): MarkedLease {
  return { sessionId: session.session_id, mark: markOf(session), isMarkShown: true };
}

/** Returns the mark of a session or of an acquire request, if it has one. */
export function markOf({ tags, name }: Pick<AcquireRequest, 'name' | 'tags'>): LeaseMark | undefined {
  const tag = tags?.[LEASE_TAG];
  if (tag !== undefined) return { tag };
  return name === undefined ? undefined : { name };
}

/** Returns true if a record of `GET /browsers/{id}` has this mark: the lease is still active. */
export function bearsMark(record: unknown, mark: LeaseMark): boolean {
  if (!isRecord(record)) return false;
  if ('name' in mark) return record['name'] === mark.name;
  return isRecord(record['tags']) && record['tags'][LEASE_TAG] === mark.tag;
}
