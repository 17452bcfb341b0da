import { isRecord } from '../shared/json.js';
import type { BrowserService, OwnerTest, ServiceAuth, ServiceRequest } from '../services/browser-service.js';
import { valueAt } from '../services/service-json.js';

/** A request with its address. It is JSON, has no token, and needs no function of the service: any process can send it. */
export interface CompleteRequest extends Omit<ServiceRequest, 'path'> {
  readonly url: string;
  readonly auth: ServiceAuth;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The release of one lease, as JSON: another process can execute it. */
export interface ReleaseTicket {
  readonly id: string;
  /** The browser returns to the pool, and the same session may immediately belong to another lease. */
  readonly reuse: CompleteRequest;
  readonly destroy: CompleteRequest;
  /**
   * How to recognize the lease: a test of the session's record. `null`: the lease can't be recognized. Undefined: each session
   * has one lease.
   */
  readonly owner?: OwnerCheck | null;
  /** Others can have released the lease meanwhile, such as a second program that has attached to it. */
  readonly isShared?: boolean;
}

export interface OwnerCheck extends CompleteRequest, Pick<OwnerTest, 'at' | 'is'> {
  /** The service showed the value when it leased the browser: a session without it is no longer ours. */
  readonly isShown: boolean;
}

/** The search for the session of an acquire request, as JSON: another process can execute it. */
export interface SearchTicket {
  readonly search: CompleteRequest;
  readonly list: readonly string[];
  readonly idField: string;
  /** An entry is ours if the value at this place is `is`. */
  readonly at?: readonly string[];
  readonly is: string;
  /** The release of the session that the search finds. Its requests have `ANY_ID` where the id of that session belongs. */
  readonly found: ReleaseTicket;
}

/** Stands for the id of a session that a search has not found yet. */
export const ANY_ID = 'pooled-browser-found-session';

const BEARER = { header: 'authorization', scheme: 'Bearer' } as const;

/** Adds the address and the headers of a service to a request. */
export function completeRequest(
  { path, ...request }: ServiceRequest,
  baseUrl: URL,
  { auth = BEARER, headers }: Pick<BrowserService, 'auth' | 'headers'>,
): CompleteRequest {
  const root = baseUrl.pathname.replace(/\/+$/, '');
  return { ...request, url: baseUrl.origin + root + path, auth, ...(headers && { headers: { ...headers } }) };
}

/** Adds the token to a request. */
export function authorize(
  { url, auth, headers = {} }: Pick<CompleteRequest, 'url' | 'auth' | 'headers'>,
  token: string | undefined,
): { url: URL; headers: Record<string, string> } {
  const target = new URL(url);
  if (token === undefined || auth === 'none') return { url: target, headers };
  if ('query' in auth) {
    target.searchParams.set(auth.query, token);
    return { url: target, headers };
  }
  const { header, scheme } = auth;
  const value = scheme === 'Basic' ? Buffer.from(token).toString('base64') : token;
  return { url: target, headers: { ...headers, [header]: scheme ? `${scheme} ${value}` : value } };
}

/** Returns true if a record of a session shows that the lease is ours. */
export function isOurs(record: unknown, { at, is }: Pick<OwnerTest, 'at' | 'is'>): boolean {
  return valueAt(record, at) === is;
}

/** Other ids can't become a part of a path and of a body in the same way. */
const PLAIN_ID = /^[\w.-]*\w[\w.-]*$/;

/** What identifies the sessions of a lease in the answer to a search. */
type SearchPlace = Omit<SearchTicket, 'search' | 'found'>;

/** The ids in the answer to a search. */
export function idsIn(json: unknown, { list, idField, at, is }: SearchPlace): string[] {
  return [valueAt(json, list)].flat().flatMap((one) => {
    if (at && valueAt(one, at) !== is) return [];
    const id = isRecord(one) ? one[idField] : undefined;
    return typeof id === 'string' && PLAIN_ID.test(id) ? [id] : [];
  });
}

/** The entry with this id in the answer to a search. */
export function entryIn(json: unknown, id: string, { list, ...place }: SearchPlace): unknown {
  return [valueAt(json, list)].flat().find((one) => idsIn(one, { ...place, list: [] }).includes(id));
}
