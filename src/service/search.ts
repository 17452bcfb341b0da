import { isRecord } from '../shared/json.js';
import { valueAt } from './browser-service.js';
import type { CompleteRequest } from './complete-request.js';
import type { ReleaseTicket } from './release.js';

/** The search for the session of an acquire request, as JSON: another process can execute it. */
export interface SearchTicket {
  readonly search: CompleteRequest;
  readonly list: readonly string[];
  readonly idField: string;
  /** An entry is ours if the value at this place is `is`. */
  readonly at?: readonly string[];
  readonly is: string;
  /** The release of what it finds, with `ANY_ID` instead of the id. */
  readonly found: ReleaseTicket;
}

export const ANY_ID = 'pooled-browser-found-session';

/** Other ids can't become a part of a path and of a body in the same way. */
const PLAIN_ID = /^[\w.-]*\w[\w.-]*$/;

/** The ids in the answer to a search. */
export function idsIn(
  json: unknown,
  { list, idField, at, is }: Omit<SearchTicket, 'search' | 'found'>,
): string[] {
  return [valueAt(json, list)].flat().flatMap((one) => {
    if (at && valueAt(one, at) !== is) return [];
    const id = isRecord(one) ? one[idField] : undefined;
    return typeof id === 'string' && PLAIN_ID.test(id) ? [id] : [];
  });
}
