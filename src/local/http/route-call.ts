import type { IncomingMessage } from 'node:http';
import type { PoolSet } from '../pool/pool-set.js';

/** What a route gets. */
export interface RouteCall {
  readonly request: IncomingMessage;
  /** The id in the path. */
  readonly id: string;
  /** The second id in the path, where there is one. */
  readonly replayId: string;
  readonly pools: PoolSet;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
}
