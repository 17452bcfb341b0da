import { clock, startTimer } from '../../shared/clock.js';
import type { AcquireRequest } from '../../services/kernel-api.js';
import type { LocalBrowser } from '../browser/local-browser.js';
import type { DestroyReason } from '../events.js';
import { newId } from '../../shared/ids.js';
import { createAbort } from '../../shared/globals.js';

/** The fields of an acquire request that belong to the lease. */
export interface LeaseFields extends Pick<AcquireRequest, 'name' | 'tags' | 'start_url'> {
  /** WebRTC of the browser must send no UDP packets. */
  readonly no_udp: boolean;
}

/** A browser of a pool and its session. The pool holds idle browsers in a list, and leased browsers in leases. */
export class ServedBrowser {
  readonly process: LocalBrowser;
  /** Its WebRTC sends no UDP packets. */
  readonly noUdp: boolean;
  /** Since when the browser is idle, by `performance.now()`. */
  idleSince = performance.now();
  /** Number of its leases. */
  leases = 0;
  /** The session can have several leases, one after another. */
  sessionId = newId();
  /** Start of the session, in ISO 8601. */
  createdAt = new Date().toISOString();

  constructor(process: LocalBrowser, noUdp: boolean) {
    this.process = process;
    this.noUdp = noUdp;
  }

  /** Implements the quirk of a new session for each lease. */
  renewSession(): void {
    this.sessionId = newId();
    this.createdAt = new Date().toISOString();
  }
}

/** A lease, on the side of the service. The lease expires when it has no connection for too long. */
export class ServedLease {
  /** A WebSocket URL is valid for one lease, and the session id is the same for all leases of a session. */
  readonly id = newId();
  readonly browser: ServedBrowser;
  readonly sessionId: string;
  readonly request: LeaseFields;
  /** Start of the lease, by `performance.now()`. */
  readonly since = performance.now();
  readonly #timeout: number;
  readonly #onInactive: () => void;
  readonly #connections = new Set<() => void>();
  readonly #ending = createAbort();
  #timer: NodeJS.Timeout | undefined;

  /** @param timeout Milliseconds without a connection, from the start and from each last disconnect. */
  constructor(browser: ServedBrowser, request: LeaseFields, timeout: number, onInactive: () => void) {
    this.browser = browser;
    this.sessionId = browser.sessionId;
    this.request = request;
    this.#timeout = timeout;
    this.#onInactive = onInactive;
    this.#countDown();
  }

  get ended(): boolean {
    return this.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Number of connections, live views included. */
  get connections(): number {
    return this.#connections.size;
  }

  /**
   * Adds a connection.
   *
   * @param cut Closes the connection when the lease ends.
   * @returns A function that removes the connection.
   */
  connect(cut: () => void): () => void {
    if (this.ended) throw new Error('The lease has ended.');
    this.#connections.add(cut);
    clock.clearTimeout(this.#timer);
    return () => {
      if (this.#connections.delete(cut) && this.#connections.size === 0) this.#countDown();
    };
  }

  /** Closes all connections: a former lease holder must not control the browser. */
  end(): void {
    if (this.ended) return;
    this.#ending.abort();
    clock.clearTimeout(this.#timer);
    const connections = [...this.#connections];
    this.#connections.clear();
    for (const cut of connections) cut();
  }

  #countDown(): void {
    this.#timer = startTimer(this.#timeout, this.#onInactive);
  }
}

/** How a lease ended: the pool kept its browser (`reused`), or destroyed the browser for this reason. */
export type ServedLeaseEnd = 'reused' | DestroyReason;

export interface EndedLease {
  readonly id: string;
  readonly sessionId: string;
  readonly pool: string;
  readonly request: LeaseFields;
  readonly outcome: ServedLeaseEnd;
  readonly endedAt: Date;
  /** In milliseconds. */
  readonly duration: number;
}

/** Number of ended leases to keep. The oldest are dropped. */
const MAX_ENDED = 100;

/** The leases that ended last. */
export class LeaseHistory {
  readonly #ended: EndedLease[] = [];

  /** The last lease first. */
  get list(): readonly EndedLease[] {
    return this.#ended;
  }

  add(pool: string, { id, sessionId, request, since }: ServedLease, outcome: ServedLeaseEnd): void {
    const duration = Math.round(performance.now() - since);
    this.#ended.unshift({ id, sessionId, pool, request, outcome, endedAt: new Date(), duration });
    this.#ended.splice(MAX_ENDED);
  }
}

export function nameField({ name }: Pick<LeaseFields, 'name'>): { name?: string } {
  return name === undefined ? {} : { name };
}

export interface Waiter {
  readonly request: LeaseFields;
  /** Start of the wait, by `performance.now()`. */
  readonly since: number;
  readonly grant: (lease: ServedLease) => void;
  readonly refuse: (error: Error) => void;
}

/**
 * Adds an acquire request to a queue. The request leaves the queue with the outcome.
 *
 * @param timeout Milliseconds to wait.
 * @returns A lease, or undefined after the timeout. Rejects when the request is refused or aborted.
 */
export function waitInQueue(
  queue: Set<Waiter>,
  request: LeaseFields,
  timeout: number,
  signal: AbortSignal,
): Promise<ServedLease | undefined> {
  return new Promise((resolve, reject) => {
    const leave = (settle: () => void) => {
      if (!queue.delete(waiter)) return;
      clock.clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      settle();
    };
    const waiter: Waiter = {
      request,
      since: performance.now(),
      grant: (lease) => leave(() => resolve(lease)),
      refuse: (error) => leave(() => reject(error)),
    };
    const onAbort = () => waiter.refuse(signal.reason as Error);
    const timer = startTimer(timeout, () => leave(() => resolve(undefined)));
    queue.add(waiter);
    signal.addEventListener('abort', onAbort);
  });
}
