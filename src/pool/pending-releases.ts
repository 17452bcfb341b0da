import { clock, delay } from '../shared/clock.js';
import { duration, sentence, type ErrorFacts } from '../shared/errors.js';
import { jsonOf } from '../shared/json.js';
import { beforeProcessEnds, END_TIMEOUT } from '../shared/process-end.js';
import { PoolConnectionError, ReleaseError } from '../shared/service-errors.js';
import type { ServiceClient } from './client.js';
import type { PoolEvent } from './events.js';
import { ReleaseHelper, type HelpedLease, type HelpRequest } from './release-helper.js';
import { isLeaseOver, releaseBrowser, replyOf, type SendRelease } from './release.js';
import { serviceError } from '../net/response.js';
import { isSuccess, isTransientError } from '../net/status.js';
import type { ReleaseTicket, SearchTicket } from './tickets.js';
import { isError } from '../shared/globals.js';

interface ReleaseRequest {
  /** `true`: the browser returns to the pool, and the same session may immediately belong to another lease. */
  readonly reuse: boolean;
  /** Milliseconds for all attempts. */
  readonly timeout: number;
}

interface HoldRequest {
  /** Also releases the browser if this process is killed. */
  readonly onCrash?: boolean;
  /** Reports how the browser was released. */
  readonly emit?: ((event: PoolEvent) => void) | undefined;
}

/** A leased browser that this process must release. */
export class PendingRelease {
  readonly #all: PendingReleases;
  readonly #id: string;
  /** Undefined if the end of the connection releases the browser. */
  readonly #ticket: ReleaseTicket | undefined;
  readonly #helped: HelpedLease | undefined;
  readonly #emit: HoldRequest['emit'];
  #released: Promise<'reused' | 'destroyed'> | undefined;

  constructor(
    all: PendingReleases,
    id: string,
    ticket: ReleaseTicket | undefined,
    { helped, emit }: Pick<HoldRequest, 'emit'> & { readonly helped: HelpedLease | undefined },
  ) {
    this.#all = all;
    this.#id = id;
    this.#ticket = ticket;
    this.#helped = helped;
    this.#emit = emit;
  }

  /**
   * Releases the browser, once: a later call waits for the first one.
   *
   * @throws ReleaseError with the id of the session that is, or may be, still leased.
   */
  release(request: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    return (this.#released ??= this.#release(request));
  }

  async #release({ reuse, timeout }: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    const facts = { pool: this.#all.idOrName, sessionId: this.#id };
    const ticket = this.#ticket;
    if (reuse) this.#helped?.markSent();
    const began = clock.now();
    let cause: unknown;
    const send = this.#all.sender(facts, (why) => (cause = why));
    const result = ticket ? await releaseBrowser(ticket, { reuses: reuse, timeout, send }) : 'released';
    this.forget();
    if (result === 'failed' || result === 'unknown') {
      const error = releaseError(result, timeout, { ...facts, elapsed: clock.now() - began, cause });
      this.#emit?.({ type: 'release-failed', ...facts, error });
      throw error;
    }
    // A service without `owner` leases no session again.
    const isReused = reuse && result === 'released' && ticket?.owner !== undefined;
    const released = isReused || (reuse && !ticket) ? 'reused' : 'destroyed';
    this.#emit?.({ type: 'released', ...facts, released });
    return released;
  }

  /** Whether somebody else has released the browser, which may belong to another lease now. Never rejects. */
  async isOver(): Promise<boolean> {
    const send = this.#all.sender({ pool: this.#all.idOrName, sessionId: this.#id });
    return this.#ticket !== undefined && isLeaseOver(this.#ticket, send);
  }

  /** Removes the session from those that this process must release. */
  forget(): void {
    this.#helped?.remove();
    this.#all.remove(this);
  }
}

function releaseError(
  released: 'failed' | 'unknown',
  timeout: number,
  facts: ErrorFacts & { sessionId: string },
): ReleaseError {
  const { pool, sessionId, cause } = facts;
  // A refusal is not repeated.
  const isRepeated = cause instanceof PoolConnectionError || isTransientError(cause);
  const limit = isRepeated ? ` within ${duration(timeout)}` : '';
  const reason = isError(cause) ? `: ${sentence(cause.message)}` : '.';
  const message =
    released === 'unknown'
      ? `It is unknown whether session ${sessionId} of pool ${pool} was released${reason} ` +
        'If it was not, it stays leased until its inactivity timeout.'
      : `Session ${sessionId} of pool ${pool} could not be released${limit}${reason} ` +
        'It stays leased until its inactivity timeout.';
  return new ReleaseError(message, released, facts);
}

/** An acquire request whose response has not been read. */
interface OpenAcquire extends HelpRequest {
  /** How to find the browser that it leases, if the service can be searched. */
  readonly search: SearchTicket | undefined;
  /** Called if the process exits before the response: closes the connection, so that the service leases nothing later. */
  readonly onLost: () => void;
}

/** The leased browsers of a pool that this process must release, also when it ends or crashes. */
export class PendingReleases {
  readonly idOrName: string;
  readonly #client: ServiceClient;
  readonly #held = new Set<PendingRelease>();
  readonly #open = new Set<OpenAcquire>();
  /** Searches for the browsers of lost responses. */
  readonly #searches = new Set<HelpedLease>();
  readonly #helper: ReleaseHelper;
  #unregister: (() => void) | undefined;
  #renewal: NodeJS.Timeout | undefined;

  constructor(idOrName: string, client: ServiceClient) {
    this.idOrName = idOrName;
    this.#client = client;
    this.#helper = new ReleaseHelper(() => ({ token: client.lastToken, route: client.host.route }));
    client.onToken = (token) => {
      this.#helper.sendToken(token);
      this.#renewToken();
    };
  }

  hold(
    id: string,
    ticket: ReleaseTicket | undefined,
    { onCrash = false, emit }: HoldRequest = {},
  ): PendingRelease {
    const helped = ticket && this.#helper.add(ticket, { onCrash });
    const pending = new PendingRelease(this, id, ticket, { helped, emit });
    this.#held.add(pending);
    this.#watchEnd();
    return pending;
  }

  /** Adds an acquire request that is sent. The returned function ends it. */
  acquiring(request: OpenAcquire): () => void {
    const { search, onCrash, within } = request;
    return this.#track(this.#open, request, search && this.#helper.add(search, { onCrash, within }));
  }

  /**
   * Adds the search for the browser of a lost response, which another process continues if this one ends. The returned function
   * ends it. Undefined if there are too many: they would burden a service that has an outage.
   */
  searching(search: SearchTicket, request: HelpRequest): (() => void) | undefined {
    if (this.#searches.size >= MOST_SEARCHES) return undefined;
    const helped = this.#helper.add(search, request);
    return this.#track(this.#searches, helped, helped);
  }

  /** Returns the function that sends the requests of a release, and never rejects. */
  sender(facts: ErrorFacts, onFailure: (cause: unknown) => void = () => {}): SendRelease {
    return async (request, timeout) => {
      try {
        const response = await this.#client.send(request, { facts, timeout });
        if (!isSuccess(response.status)) onFailure(serviceError(response, facts));
        return replyOf(response);
      } catch (error) {
        onFailure(error);
        if (!(error instanceof PoolConnectionError)) return { isSent: false, isFinal: true };
        return { isSent: error.code === 'ERR_POOL_NO_RESPONSE' };
      }
    };
  }

  remove(pending: PendingRelease): void {
    this.#held.delete(pending);
    this.#unwatchIfIdle();
  }

  /** The returned function ends it. */
  #track<Tracked>(all: Set<Tracked>, one: Tracked, helped: HelpedLease | undefined): () => void {
    all.add(one);
    this.#watchEnd();
    return () => {
      helped?.remove();
      all.delete(one);
      this.#unwatchIfIdle();
    };
  }

  /** From now on, the end of the process releases what is left. */
  #watchEnd(): void {
    if (this.#unregister) return;
    this.#unregister = beforeProcessEnds({
      atExit: () => this.#releaseAtExit(),
      beforeEnd: () => this.#releaseAll(),
    });
    this.#renewToken();
  }

  #unwatchIfIdle(): void {
    if (this.#held.size + this.#open.size + this.#searches.size > 0) return;
    clock.clearTimeout(this.#renewal);
    this.#unregister?.();
    this.#unregister = undefined;
  }

  /** Fetches a new token in time while there is something to release: at exit, nothing can wait for a token. */
  #renewToken(hasFailed = false): void {
    const { refreshToken, lastToken } = this.#client;
    clock.clearTimeout(this.#renewal);
    if (!refreshToken || !this.#unregister) return;
    // A new token starts the next timer.
    const renew = () => void refreshToken().catch(() => this.#renewToken(true));
    const least = hasFailed ? SHORTEST_TOKEN_INTERVAL : 0;
    const delay = Math.max(least, renewalDelay(lastToken, Date.now()));
    this.#renewal = clock.setTimeout(renew, delay).unref();
  }

  /**
   * Waits for the responses to open acquire requests, and releases all leases. No cleanup has run, so the browsers are
   * destroyed.
   */
  async #releaseAll(): Promise<void> {
    const deadline = clock.now() + END_TIMEOUT;
    while (this.#held.size + this.#open.size > 0 && clock.now() < deadline) {
      const request = { reuse: false, timeout: Math.max(1, deadline - clock.now()) };
      await Promise.allSettled([...this.#held].map((pending) => pending.release(request)));
      // A browser of a response that has just been read is held in the next macrotask.
      await delay(POLL_INTERVAL);
    }
  }

  #releaseAtExit(): void {
    for (const { onLost } of this.#open) onLost();
    this.#helper.releaseAtExit(END_TIMEOUT);
  }
}

/** Most searches at the same time. */
const MOST_SEARCHES = 10;
const POLL_INTERVAL = 10;
/** Milliseconds after which a token of unknown lifetime is renewed. */
const TOKEN_INTERVAL = 60_000;
const SHORTEST_TOKEN_INTERVAL = 1000;

/** Milliseconds until a token should be renewed: half of the rest of its life, if it is a JWT. */
export function renewalDelay(token: string | undefined, now: number): number {
  if (token === undefined) return 0;
  const claims = jsonOf(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const { exp, iat } = (claims ?? {}) as { exp?: unknown; iat?: unknown };
  const life = (Number(exp) - Number(iat)) * 1000;
  const left = Number(exp) * 1000 - now;
  // The clocks may differ: a token can't live longer than it does from its beginning, and is valid when it arrives.
  const rest = left <= 0 || left > life ? life : left;
  if (!(rest > 0)) return TOKEN_INTERVAL;
  return Math.max(SHORTEST_TOKEN_INTERVAL, Math.min(TOKEN_INTERVAL, rest / 2));
}
