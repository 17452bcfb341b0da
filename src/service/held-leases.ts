import { beforeProcessEnds, END_TIMEOUT, isServedHere } from '../shared/process-end.js';
import type { MarkedLease } from './ownership.js';
import { CrashGuard, releaseWhileExiting, type GuardedLease, type ReleaseTicket } from './release-helper.js';
import { releaseWithRetry, type Releaser, type ReleaseRequest } from './release.js';

interface LeaseParts {
  send: (request: ReleaseRequest) => Promise<'reused' | 'destroyed'>;
  guarded: GuardedLease | undefined;
  onEnd: (lease: HeldLease) => void;
}

/** A lease that this process must release. */
export class HeldLease {
  readonly facts: MarkedLease;
  readonly #parts: LeaseParts;
  #isSent = false;
  #released: Promise<'reused' | 'destroyed'> | undefined;

  constructor(facts: MarkedLease, parts: LeaseParts) {
    this.facts = facts;
    this.#parts = parts;
  }

  /** Whether a release for reuse is on its way: the session may soon belong to another lease. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Releases the browser, once: a later call waits for the first one. */
  release(request: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    this.#released ??= this.#release(request).finally(() => this.forget());
    return this.#released;
  }

  /** Removes the lease from those that this process must release. */
  forget(): void {
    this.#parts.guarded?.remove();
    this.#parts.onEnd(this);
  }

  #release(request: ReleaseRequest): Promise<'reused' | 'destroyed'> {
    if (request.reuse) {
      this.#isSent = true;
      this.#parts.guarded?.markSent();
    }
    return this.#parts.send(request);
  }
}

/** The leases of a pool that this process must release, also when it ends or crashes. */
export class HeldLeases {
  readonly #pool: Releaser;
  /** The default release request; `undefined` if the pool releases by a function of the user. */
  readonly #ticketOf: (lease: MarkedLease) => ReleaseTicket | undefined;
  readonly #held = new Set<HeldLease>();
  #unregister: (() => void) | undefined;
  #guard: CrashGuard | undefined;

  constructor(pool: Releaser, ticketOf: (lease: MarkedLease) => ReleaseTicket | undefined) {
    this.#pool = pool;
    this.#ticketOf = ticketOf;
  }

  /** @param onCrash Also releases the browser if this process is killed. */
  hold(facts: MarkedLease, { onCrash = false } = {}): HeldLease {
    const ticket = onCrash ? this.#ticketOf(facts) : undefined;
    if (ticket) this.#guard ??= new CrashGuard(this.#pool.client);
    const lease = new HeldLease(facts, {
      send: (request) => releaseWithRetry(this.#pool, facts, request),
      guarded: ticket && this.#guard?.add(ticket),
      onEnd: (ended) => this.#forget(ended),
    });
    this.#held.add(lease);
    this.#unregister ??= beforeProcessEnds({
      atExit: () => this.#releaseAtExit(),
      beforeEnd: () => this.#releaseAll(),
    });
    return lease;
  }

  #forget(lease: HeldLease): void {
    if (!this.#held.delete(lease)) return;
    if (this.#guard?.isEmpty) this.#guard = undefined;
    if (this.#held.size > 0) return;
    this.#unregister?.();
    this.#unregister = undefined;
  }

  /** Releases all leases, and those that begin meanwhile. No cleanup has run, so the browsers are destroyed. */
  async #releaseAll(): Promise<void> {
    const deadline = performance.now() + END_TIMEOUT;
    while (this.#held.size > 0 && performance.now() < deadline) {
      const request = { reuse: false, timeout: Math.max(1, deadline - performance.now()) };
      await Promise.allSettled([...this.#held].map((lease) => lease.release(request)));
    }
  }

  #releaseAtExit(): void {
    const leases = [...this.#held].flatMap(({ facts, isSent }) => {
      const ticket = this.#ticketOf(facts);
      return ticket ? [{ ticket, isSent }] : [];
    });
    this.#reportUnreleased(this.#held.size - leases.length);
    const reachable = leases.filter(({ ticket }) => !isServedHere(new URL(ticket.releaseUrl).origin));
    const { lastToken } = this.#pool.client;
    if (reachable.length > 0) releaseWhileExiting(lastToken, reachable, END_TIMEOUT);
  }

  #reportUnreleased(count: number): void {
    if (count === 0) return;
    // Node prints no warning of `process.emitWarning` at exit.
    process.stderr.write(
      `pooled-browser: ${count} leased browser(s) of pool ${this.#pool.idOrName} were not released: the process exits, ` +
        'and endpoints.release needs a running event loop. They stay leased until their inactivity timeout.\n',
    );
  }
}
