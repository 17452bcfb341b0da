import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Checks } from '../shared/options.js';
import type { ServedPoolEvent } from './events.js';
import type { Answer } from './http/answer.js';
import type { PageRoute } from './http/page.js';
import type { RequestName } from './http/request.js';
import type { ServedPool } from './pool/served-pool.js';
import type { PoolSet } from './pool/pool-set.js';
import type { ServedLease } from './pool/served-lease.js';
import type { LeaseRecordings } from './replays/lease-recordings.js';
import type { Quirks } from './settings.js';
import type { Upgrade } from './sockets/websocket.js';

/**
 * A feature of the local pool, registered in `features.ts`. No other part imports it, and features do not import each
 * other.
 */
export interface LocalFeature<Options extends object = object, Added extends object = object, Event = never> {
  /** The checks of its options of `startLocalPool`. */
  readonly checks?: Checks;
  /** Checks what depends on several values. Nothing runs yet. @throws InvalidOptionError */
  prepare(options: Options): (context: FeatureContext<Event>) => RunningFeature<Added>;
}

export interface FeatureContext<Event = never> {
  /** `127.0.0.1:<port>` of the server. */
  readonly host: string;
  /** @internal */
  readonly pools: PoolSet;
  /** @internal */
  readonly recordings: LeaseRecordings;
  readonly quirks: Quirks;
  /** @internal The links to a live view of this lease, if there is one. */
  readonly liveLinks: (pool: ServedPool, lease: ServedLease) => LiveLinks | undefined;
  log(event: ServedPoolEvent | Event): void;
}

/** URLs of pages that show a browser. */
export interface LiveLinks {
  readonly control: string;
  readonly watch: string;
}

/** What a feature does while the pool runs. */
export interface RunningFeature<Added extends object = object> {
  /** Properties of the `LocalPool`. They are not enumerable. */
  readonly added?: Added;
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
  /** @internal Answers a request of the API. @returns undefined when there is no answer. */
  answer?(
    name: RequestName,
    response: ServerResponse,
    answer: () => Promise<Answer | undefined>,
  ): Promise<Answer | undefined>;
  /**
   * @internal Lets an upgrade request of a client pass.
   *
   * @returns A function for the open WebSocket. Undefined when the request stays without an answer.
   */
  upgrade?(socket: Socket): ((lease: ServedLease, disconnect: () => void) => void) | undefined;
  /** @internal */
  onLeased?(lease: ServedLease): void;
}
