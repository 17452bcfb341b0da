import type { Log } from './events.js';
import type { PageRoute } from './http/page.js';
import type { ServedPool } from './pool/served-pool.js';
import type { PoolSet } from './pool/pool-set.js';
import type { ServedLease } from './pool/served-lease.js';
import type { LeaseRecordings } from './replays/lease-recordings.js';
import type { Quirks } from './settings.js';
import type { Upgrade } from '../net/accept-websocket.js';

/** What a feature receives at its start. */
export interface FeatureContext {
  /** `127.0.0.1:<port>` of the server. */
  readonly host: string;
  /** @internal */
  readonly pools: PoolSet;
  /** @internal */
  readonly recordings: LeaseRecordings;
  readonly quirks: Quirks;
  /** @internal The links to a live view of this lease, if there is one. */
  readonly liveLinks: (pool: ServedPool, lease: ServedLease) => LiveLinks | undefined;
  readonly log: Log;
}

/** URLs of pages that show a browser. */
export interface LiveLinks {
  readonly control: string;
  readonly watch: string;
}

/**
 * A feature of the local pool, started in `features.ts`. No other part imports it, and features do not import each
 * other.
 */
export interface LocalFeature {
  /** @internal By method and path: `GET /live`. */
  readonly pages?: Readonly<Record<string, PageRoute>>;
  /** Style sheets, by the name of their page. */
  readonly styles?: Readonly<Record<string, string>>;
  /** @internal WebSockets, by path. The function authorizes the request. */
  readonly sockets?: Readonly<Record<string, (upgrade: Upgrade, url: URL) => void | Promise<void>>>;
  /** Called after each event of the pool. */
  onEvent?(): void;
  /** @internal */
  liveLinks?(pool: ServedPool, lease: ServedLease): LiveLinks | undefined;
}
