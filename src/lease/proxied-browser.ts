import { openSocket } from '../connect/connect-session.js';
import type { Protocol } from '../connect/connector.js';
import { relay } from '../connect/relay.js';
import type { Socket } from '../connect/socket.js';
import { INTERNALS } from '../service/pool-internals.js';
import type { BrowserPool } from '../service/browser-pool.js';
import { LinkedAbort, onAbort, raceAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';
import type { ProxyEvent } from './events.js';
import { Lease } from './lease.js';
import type { LeaseSettings } from './options.js';

/** How the browsers of a proxy are leased. */
export interface ProxyPlan {
  readonly pool: BrowserPool<object>;
  readonly settings: LeaseSettings;
  readonly emit: (event: ProxyEvent) => void;
}

/** Which clients use a browser: one; one after the other, with this time in ms between them; or any, until the end. */
export type Use = 'once' | { readonly keep: number };

/**
 * The browser of one client of a proxy, or of the clients of one name, from the first of them to the release. If no client
 * is left before there is a browser, the wait ends.
 */
export class ProxiedBrowser {
  readonly name: string | undefined;
  /** Aborts when no client can use the browser any longer, with an Error that says why. */
  readonly over: AbortSignal;
  /** Resolves when the browser is released. */
  readonly ended: Promise<void>;
  isLeased = false;
  readonly #plan: ProxyPlan;
  readonly #use: Use;
  readonly #over = new LinkedAbort();
  readonly #waiting = new LinkedAbort();
  readonly #began = clock.now();
  readonly #lease: Promise<Lease<{ readonly socket: Socket }>>;
  #leasedAt = 0;
  #clients = 0;
  #keeping: NodeJS.Timeout | undefined;
  #onEnded = () => {};

  constructor(
    plan: ProxyPlan,
    { name, use, protocol }: { name: string | undefined; use: Use; protocol: Protocol },
  ) {
    this.#plan = plan;
    this.name = name;
    this.#use = use;
    this.over = this.#over.signal;
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
    this.#lease = this.#open(protocol);
    this.#lease.catch((error: unknown) => this.end(error));
  }

  /** Number of clients that use the browser, or wait for it. */
  get clients(): number {
    return this.#clients;
  }

  /**
   * Waits for the browser, and calls `use` with a socket to it. The last client releases the browser, now or later.
   *
   * @param use Resolves when the client has disconnected; to true if the browser must not be kept.
   */
  async serve(
    { protocol, signal }: { protocol: Protocol; signal: AbortSignal },
    use: (socket: Socket, sessionId: string) => Promise<boolean>,
  ): Promise<void> {
    this.#clients++;
    clock.clearTimeout(this.#keeping);
    let endsNow = false;
    try {
      const lease = await raceAbort(this.#lease, signal);
      this.over.throwIfAborted();
      const { grant, sessionId } = lease;
      if (this.#use === 'once') return void (await use(lease.handles.socket, sessionId));
      const { trust } = this.#plan.pool[INTERNALS].client;
      // What a client sets in a browser ends with its connection, and must not reach the next client.
      const socket = await openSocket(grant, { protocol, trust, signal });
      endsNow = await use(socket, sessionId).finally(() => socket.cut('closed-by-us'));
    } finally {
      this.#leave(endsNow);
    }
  }

  /** Disconnects the clients and releases the browser, once. Never rejects. */
  end(reason: unknown): Promise<void> {
    if (!this.over.aborted) void this.#end(reason).then(this.#onEnded);
    return this.ended;
  }

  #leave(endsNow: boolean): void {
    this.#clients--;
    if (this.#clients > 0 || this.over.aborted) return;
    const end = () => void this.end(NO_CLIENT);
    if (this.#use === 'once' || endsNow || !this.isLeased) return end();
    this.#keeping = startTimer(this.#use.keep, end);
  }

  async #end(reason: unknown): Promise<void> {
    clock.clearTimeout(this.#keeping);
    this.#over.abort(reason);
    // Afterwards, this signal would make the browser look lost.
    if (!this.isLeased) this.#waiting.abort(reason);
    const lease = await this.#lease.catch(() => undefined);
    if (!lease) return;
    const { aborted, reason: error } = lease.signal;
    const summary = await lease.end(aborted ? { status: 'failed', error } : { status: 'ok' });
    const elapsed = Math.round(clock.now() - this.#leasedAt);
    this.#emit({ type: 'released', sessionId: lease.sessionId, elapsed, summary });
  }

  async #open(protocol: Protocol): Promise<Lease<{ readonly socket: Socket }>> {
    const { pool, settings } = this.#plan;
    const { signal } = this.#waiting;
    // The connection that holds a browser between its clients may break without a loss.
    const reconnect = this.#use === 'once' ? false : 'eager';
    const plan = { pool, connector: relay, settings: { ...settings, protocol, reconnect, signal } as const };
    const lease = await Lease.open(plan);
    this.#waiting.dispose();
    this.isLeased = true;
    const { sessionId, grant } = lease;
    this.#leasedAt = clock.now();
    const waited = Math.round(this.#leasedAt - this.#began);
    const { liveViewUrl } = grant;
    this.#emit({ type: 'leased', sessionId, waited, ...(liveViewUrl !== undefined && { liveViewUrl }) });
    onAbort(lease.signal, () => void this.end(lease.signal.reason));
    return lease;
  }

  #emit(event: ProxyEvent): void {
    this.#plan.emit({ ...event, ...(this.name !== undefined && { name: this.name }) });
  }
}

const NO_CLIENT = new Error('The client has disconnected.');
