import { startTimer } from '../../shared/abort.js';
import type { AcquireRequest } from '../../service/wire.js';
import type { PooledChromium } from './pooled-chromium.js';

/** What a lease was asked for. All of it belongs to this lease only (interface: acquire). */
export type LeaseRequest = Pick<AcquireRequest, 'name' | 'tags' | 'start_url'>;

let lastNumber = 0;

/** A browser in somebody's hands. It knows their connections, and ends when there have been none for too long. */
export class Lease {
  /** Tells this lease from earlier ones of the same session: a websocket URL is good for one lease. */
  readonly number = ++lastNumber;
  readonly browser: PooledChromium;
  readonly request: LeaseRequest;
  /** By `performance.now()`. */
  readonly since = performance.now();
  readonly #timeout: number;
  readonly #onInactive: () => void;
  readonly #connections = new Set<() => void>();
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  /** @param timeout Milliseconds without any connection, counted from the grant and from each last disconnect. */
  constructor(
    browser: PooledChromium,
    request: LeaseRequest,
    timeout: number,
    onInactive: (lease: Lease) => void,
  ) {
    this.browser = browser;
    this.request = request;
    this.#timeout = timeout;
    this.#onInactive = () => onInactive(this);
    this.#countDown();
  }

  get ended(): boolean {
    return this.signal.aborted;
  }

  /** Aborts when the lease ends. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** How many connections there are: clients, and people who watch. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Counts a connection as activity. `cut` is called when the lease ends; call the returned function when it closes. */
  connect(cut: () => void): () => void {
    if (this.ended) throw new Error('The lease has ended.');
    this.#connections.add(cut);
    clearTimeout(this.#timer);
    return () => {
      if (this.#connections.delete(cut) && this.#connections.size === 0 && !this.ended) this.#countDown();
    };
  }

  /** Cuts every connection: a former holder must not go on driving the browser. */
  end(): void {
    if (this.ended) return;
    this.#ending.abort();
    clearTimeout(this.#timer);
    const connections = [...this.#connections];
    this.#connections.clear();
    for (const cut of connections) cut();
  }

  #countDown(): void {
    this.#timer = startTimer(this.#timeout, this.#onInactive);
  }
}
