import { clock } from '../shared/clock.js';
import { duration } from '../shared/errors.js';
import { beforeProcessEnds, END_TIMEOUT, isServedHere } from '../shared/process-end.js';
import { PoolConnectionError, ReleaseError } from '../shared/service-errors.js';
import type { ServiceClient } from './client.js';
import { CrashGuard, releaseWhileExiting, type GuardedLease } from './release-helper.js';
import { releaseBrowser, type ReleasePlan, type ReleaseTicket } from './release.js';
import { jsonOf, serviceError } from './response.js';
import type { SearchTicket } from './search.js';
import { isSuccess } from './status.js';

export interface ReleaseRequest {
  /** `true`: the browser returns to the pool, and the same session may immediately belong to another lease. */
  readonly reuse: boolean;
  /** Milliseconds for all attempts. */
  readonly timeout: number;
}

/** A leased browser that this process must release. */
export class HeldSession {
  readonly id: string;
  /** Undefined if the end of the connection releases the browser. */
  readonly ticket: ReleaseTicket | undefined;
  readonly #pool: HeldSessions;
  readonly #guarded: GuardedLease | undefined;
  #isSent = false;
  #released: Promise<'reused' | 'destroyed'> | undefined;

  constructor(
    id: string,
    ticket: ReleaseTicket | undefined,
    parts: { pool: HeldSessions; guarded: GuardedLease | undefined },
  ) {
    this.id = id;
    this.ticket = ticket;
    this.#pool = parts.pool;
    this.#guarded = parts.guarded;
  }

  /** Whether a release for reuse is on its way: the session may soon belong to another lease. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /**
   * Releases the browser, once: a later call waits for the first one.
   *
   * @throws ReleaseError with the id of the session that is, or may be, still leased.
   */
  release(request: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    this.#released ??= this.#release(request).finally(() => this.forget());
    return this.#released;
  }

  /** Removes the session from those that this process must release. */
  forget(): void {
    this.#guarded?.remove();
    this.#pool.remove(this);
  }

  async #release({ reuse, timeout }: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    const { ticket } = this;
    // A service without `owner` leases no session again.
    const reused = reuse && ticket?.owner !== undefined ? 'reused' : 'destroyed';
    if (!ticket) return reuse ? 'reused' : 'destroyed';
    if (reuse) {
      this.#isSent = true;
      this.#guarded?.markSent();
    }
    const began = clock.now();
    let cause: unknown;
    const send = this.#pool.sender((error) => (cause = error), this.id);
    const result = await releaseBrowser(ticket, { reuses: reuse, timeout, send });
    if (result === 'released') return reused;
    if (result === 'gone') return 'destroyed';
    const { idOrName: pool } = this.#pool;
    const facts = { pool, sessionId: this.id, elapsed: clock.now() - began, cause };
    throw releaseError(result, timeout, facts);
  }
}

function releaseError(
  result: 'failed' | 'unknown',
  timeout: number,
  facts: { pool: string; sessionId: string; elapsed: number; cause: unknown },
): ReleaseError {
  const { pool, sessionId } = facts;
  const message =
    result === 'unknown'
      ? `It is unknown whether session ${sessionId} of pool ${pool} was released: the service did not answer. ` +
        'If it was not, it stays leased until its inactivity timeout.'
      : `Session ${sessionId} of pool ${pool} could not be released within ${duration(timeout)}. ` +
        'It stays leased until its inactivity timeout.';
  return new ReleaseError(message, result, facts);
}

/** The leased browsers of a pool that this process must release, also when it ends or crashes. */
export class HeldSessions {
  readonly idOrName: string;
  readonly #client: ServiceClient;
  readonly #held = new Set<HeldSession>();
  #unregister: (() => void) | undefined;
  #guard: CrashGuard | undefined;

  constructor(idOrName: string, client: ServiceClient) {
    this.idOrName = idOrName;
    this.#client = client;
  }

  /** @param onCrash Also releases the browser if this process is killed. */
  hold(id: string, ticket: ReleaseTicket | undefined, { onCrash = false } = {}): HeldSession {
    const guarded = onCrash && ticket ? this.#guardOf().add(ticket) : undefined;
    const session = new HeldSession(id, ticket, { pool: this, guarded });
    this.#held.add(session);
    this.#unregister ??= beforeProcessEnds({
      atExit: () => this.#releaseAtExit(),
      beforeEnd: () => this.#releaseAll(),
    });
    return session;
  }

  /** Lets the guard search for the browser of an open acquire request if this process is killed. */
  search(ticket: SearchTicket | undefined): { forget(): void } | undefined {
    if (!ticket) return undefined;
    const guarded = this.#guardOf().add(ticket);
    return { forget: () => this.#endGuard(() => guarded.remove()) };
  }

  remove(session: HeldSession): void {
    if (!this.#held.delete(session)) return;
    this.#endGuard(() => {});
    if (this.#held.size > 0) return;
    this.#unregister?.();
    this.#unregister = undefined;
  }

  /** Returns the function that sends the requests of a release. @param onError Receives why a request failed. */
  sender(onError: (error: unknown) => void, sessionId: string): ReleasePlan['send'] {
    const facts = { pool: this.idOrName, sessionId };
    return async (request, timeout) => {
      try {
        const response = await this.#client.send(request, { facts, timeout });
        const { status, body } = response;
        if (!isSuccess(status)) onError(serviceError(response, facts));
        const json = jsonOf(body);
        // A record that can't be read does not show whose lease the session is.
        const isUnreadable = request.method === 'GET' && isSuccess(status) && json === undefined;
        return isUnreadable ? { isSent: true } : { status, isSent: true, json };
      } catch (error) {
        onError(error);
        const isSent = error instanceof PoolConnectionError && error.code === 'ERR_POOL_NO_RESPONSE';
        const isFinal = !(error instanceof PoolConnectionError);
        return { isSent, isFinal };
      }
    };
  }

  #guardOf(): CrashGuard {
    return (this.#guard ??= new CrashGuard(this.#client));
  }

  #endGuard(remove: () => void): void {
    remove();
    if (this.#guard?.isEmpty) this.#guard = undefined;
  }

  /** Releases all leases, and those that begin meanwhile. No cleanup has run, so the browsers are destroyed. */
  async #releaseAll(): Promise<void> {
    const deadline = clock.now() + END_TIMEOUT;
    while (this.#held.size > 0 && clock.now() < deadline) {
      const request = { reuse: false, timeout: Math.max(1, deadline - clock.now()) };
      await Promise.allSettled([...this.#held].map((session) => session.release(request)));
    }
  }

  #releaseAtExit(): void {
    const leases = [...this.#held].flatMap(({ ticket, isSent }) => (ticket ? [{ ticket, isSent }] : []));
    const reachable = leases.filter(({ ticket }) => !isServedHere(new URL(ticket.destroy.url).origin));
    if (reachable.length > 0) releaseWhileExiting(this.#client.lastToken, reachable, END_TIMEOUT);
  }
}
