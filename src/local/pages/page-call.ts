import type { IncomingMessage } from 'node:http';
import type { PoolSet } from '../pool/pool-set.js';
import { HttpFault } from '../http/http-fault.js';

/** What a page's route gets. Its right to be answered stands in the query: a person can't send a bearer token. */
export interface PageCall {
  readonly pools: PoolSet;
  readonly request: IncomingMessage;
  /** The part of the path that names something; empty where none does. */
  readonly id: string;
  readonly query: URLSearchParams;
}

export function jwtOf(query: URLSearchParams): string {
  return query.get('jwt') ?? '';
}

/** 401; it does not tell what is wrong with the jwt. */
export function badLink(): HttpFault {
  return new HttpFault(401, 'unauthorized', 'The jwt of this link is missing, wrong or no longer good.');
}
