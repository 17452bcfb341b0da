import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { environment } from '../shared/environment.js';
import { beforeProcessEnds, END_TIMEOUT, isServedHere } from '../shared/process-end.js';
import { releaseWithRetry, type Releaser } from './release.js';

/** A release request that another process can send: see release-process.ts. */
export interface ReleaseTicket {
  url: string;
  token: string;
  body: { session_id: string; reuse: boolean };
}

/** The program that releases leases in a process of its own. */
const RELEASE_PROCESS = fileURLToPath(new URL('release-process.js', import.meta.url));

/** The leases of a pool that this process must release, also when it ends or crashes. */
export class HeldLeases {
  readonly #pool: Releaser;
  /** The default release request; `undefined` if the pool releases by a function of the user. */
  readonly #ticketOf: (sessionId: string) => ReleaseTicket | undefined;
  readonly #held = new Set<{ sessionId: string }>();
  #unregister: (() => void) | undefined;
  #guard: CrashGuard | undefined;

  constructor(pool: Releaser, ticketOf: (sessionId: string) => ReleaseTicket | undefined) {
    this.#pool = pool;
    this.#ticketOf = ticketOf;
  }

  /**
   * Adds a lease. The returned function removes it.
   *
   * @param onCrash Also releases the browser if this process is killed.
   */
  hold(sessionId: string, { onCrash = false } = {}): () => void {
    const lease = { sessionId };
    const unguard = onCrash ? this.#guardLease(sessionId) : undefined;
    this.#held.add(lease);
    this.#unregister ??= beforeProcessEnds({
      atExit: () => this.#releaseAtExit(),
      beforeEnd: () => this.#releaseAll(),
    });
    return () => {
      unguard?.();
      if (!this.#held.delete(lease) || this.#held.size > 0) return;
      this.#unregister?.();
      this.#unregister = undefined;
    };
  }

  #guardLease(sessionId: string): (() => void) | undefined {
    const ticket = this.#ticketOf(sessionId);
    if (!ticket) return undefined;
    const guard = (this.#guard ??= new CrashGuard());
    guard.add(ticket);
    return () => {
      guard.remove(ticket);
      if (guard.isEmpty && this.#guard === guard) this.#guard = undefined;
    };
  }

  /** Releases all leases, and those that begin meanwhile. No cleanup has run, so the browsers are destroyed. */
  async #releaseAll(): Promise<void> {
    const deadline = performance.now() + END_TIMEOUT;
    while (this.#held.size > 0 && performance.now() < deadline) {
      const leases = [...this.#held];
      const options = { reuse: false, timeout: Math.max(1, deadline - performance.now()) };
      await Promise.allSettled(
        leases.map(({ sessionId }) => releaseWithRetry(this.#pool, sessionId, options)),
      );
      for (const lease of leases) this.#held.delete(lease);
    }
  }

  /** At exit nothing asynchronous runs: another process sends the requests while this one waits for it. */
  #releaseAtExit(): void {
    const tickets = [...this.#held].flatMap(({ sessionId }) => this.#ticketOf(sessionId) ?? []);
    this.#reportUnreleased(this.#held.size - tickets.length);
    const reachable = tickets.filter(({ url }) => !isServedHere(new URL(url).origin));
    if (reachable.length === 0) return;
    const { spawnSync } = process.getBuiltinModule('node:child_process');
    // Through a pipe: every user of the machine can read the arguments of a process.
    spawnSync(process.execPath, [RELEASE_PROCESS], {
      input: reachable.map((ticket) => `${JSON.stringify({ hold: ticket })}\n`).join(''),
      env: environment.forChild(),
      timeout: END_TIMEOUT,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
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

/**
 * A small process that outlives this one if it is killed (SIGKILL, out of memory), and then releases its browsers. It
 * runs only while there is a lease to guard.
 */
class CrashGuard {
  readonly #process: ChildProcess;
  #leases = 0;

  constructor() {
    const { spawn } = process.getBuiltinModule('node:child_process');
    // Detached: Ctrl-C in the terminal ends this process only.
    this.#process = spawn(process.execPath, [RELEASE_PROCESS], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      env: environment.forChild(),
    });
    this.#process.unref();
    (this.#process.stdin as unknown as { unref(): void }).unref();
    // A guard that can't start, or ends, must not break this process.
    this.#process.on('error', () => {});
    this.#process.stdin!.on('error', () => {});
  }

  add(ticket: ReleaseTicket): void {
    this.#leases++;
    this.#send({ hold: ticket });
  }

  /** Removes a lease. The guard ends with its last lease. */
  remove({ body }: ReleaseTicket): void {
    this.#send({ drop: body.session_id });
    this.#leases--;
    if (this.isEmpty) this.#process.stdin!.end();
  }

  get isEmpty(): boolean {
    return this.#leases === 0;
  }

  #send(message: object): void {
    this.#process.stdin!.write(`${JSON.stringify(message)}\n`);
  }
}
