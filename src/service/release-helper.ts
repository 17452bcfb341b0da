import type { ChildProcess } from 'node:child_process';
import { clock } from '../shared/clock.js';
import { environment } from '../shared/environment.js';
import type { ServiceClient } from './client.js';
import type { ReleaseTicket } from './release.js';
import type { SearchTicket } from './search.js';

/** What a helper releases: a browser, or what the search for an open acquire request finds. */
export type HelperTicket = ReleaseTicket | SearchTicket;

/**
 * A line of JSON for the release process. Messages identify leases by number, because two leases can have the same
 * session id.
 */
export type ReleaseMessage =
  | { token: string }
  | { hold: HelperTicket; lease: number }
  /** A release for reuse is on its way. */
  | { sent: number }
  | { drop: number }
  /** Release all remaining leases. The end of the input has the same meaning. */
  | { end: true };

// No module of Node is imported here: `getBuiltinModule` keeps the import of the library fast, and works at exit.
const RELEASE_PROCESS = new URL('release-process.js', import.meta.url);
/** Interval in ms at which a guard receives the present token. */
const TOKEN_INTERVAL = 60_000;
const POLL_INTERVAL = 10;

/**
 * Starts the program that releases browsers, in a separate process. Messages pass through a pipe, because every user of
 * the machine can read the arguments of a process.
 */
class ReleaseHelper {
  readonly #process: ChildProcess;

  /** @param output A file descriptor: the helper writes to it when it has finished. */
  constructor(output: number | 'ignore' = 'ignore') {
    const { spawn } = process.getBuiltinModule('node:child_process');
    const { fileURLToPath } = process.getBuiltinModule('node:url');
    const { args, env } = environment.forHelper();
    // Detached: Ctrl-C in the terminal ends this process only.
    this.#process = spawn(process.execPath, [...args, fileURLToPath(RELEASE_PROCESS)], {
      detached: true,
      windowsHide: true,
      stdio: ['pipe', output, 'ignore'],
      env,
    });
    this.#process.unref();
    (this.#process.stdin as unknown as { unref(): void }).unref();
    // A helper that can't start, or ends, must not break this process.
    this.#process.on('error', () => {});
    this.#process.stdin!.on('error', () => {});
  }

  send(message: ReleaseMessage): void {
    this.#process.stdin!.write(`${JSON.stringify(message)}\n`);
  }

  sendToken(token: string | undefined): void {
    if (token !== undefined) this.send({ token });
  }

  end(): void {
    this.#process.stdin!.end();
  }
}

/** A lease that a guard releases if this process is killed. The guard ends with its last lease. */
export interface GuardedLease {
  /** A release for reuse is on its way. */
  markSent(): void;
  remove(): void;
}

/**
 * A small process that outlives this one if it is killed (SIGKILL, out of memory), and then releases its browsers. It
 * runs only while there is a lease to guard.
 */
export class CrashGuard {
  readonly #helper = new ReleaseHelper();
  readonly #leases = new Set<number>();
  #lastLease = 0;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor({ lastToken, refreshToken }: ServiceClient) {
    this.#helper.sendToken(lastToken);
    if (!refreshToken) return;
    const refresh = () => {
      refreshToken().then(
        (token) => this.#helper.sendToken(token),
        () => {},
      );
    };
    this.#timer = clock.setInterval(refresh, TOKEN_INTERVAL).unref();
  }

  add(ticket: HelperTicket): GuardedLease {
    const lease = ++this.#lastLease;
    this.#leases.add(lease);
    this.#helper.send({ hold: ticket, lease });
    return { markSent: () => this.#helper.send({ sent: lease }), remove: () => this.#remove(lease) };
  }

  #remove(lease: number): void {
    if (!this.#leases.delete(lease)) return;
    this.#helper.send({ drop: lease });
    if (!this.isEmpty) return;
    clock.clearInterval(this.#timer);
    this.#helper.end();
  }

  get isEmpty(): boolean {
    return this.#leases.size === 0;
  }
}

/**
 * Releases leases at exit, when nothing asynchronous can run: a helper process sends the requests. This process waits
 * for up to `timeout` ms, because the end of a container ends all its processes. A helper that takes longer continues
 * alone.
 */
export function releaseWhileExiting(
  token: string | undefined,
  leases: readonly { ticket: ReleaseTicket; isSent: boolean }[],
  timeout: number,
): void {
  const { closeSync, fstatSync } = process.getBuiltinModule('node:fs');
  const deadline = clock.now() + timeout;
  const output = openUnnamedFile();
  const helper = new ReleaseHelper(output ?? 'ignore');
  helper.sendToken(token);
  for (const [lease, { ticket, isSent }] of leases.entries()) {
    helper.send({ hold: ticket, lease });
    if (isSent) helper.send({ sent: lease });
  }
  helper.send({ end: true });
  if (output === undefined) return;
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  while (fstatSync(output).size === 0 && clock.now() < deadline) Atomics.wait(sleeper, 0, 0, POLL_INTERVAL);
  closeSync(output);
}

/** Opens a file without a name, in which the helper reports that it has finished. */
function openUnnamedFile(): number | undefined {
  const { openSync, unlinkSync } = process.getBuiltinModule('node:fs');
  const { tmpdir } = process.getBuiltinModule('node:os');
  const path = `${tmpdir()}/pooled-browser-${globalThis.crypto.randomUUID()}`;
  try {
    const file = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    return file;
  } catch {
    return undefined;
  }
}
