import type { ChildProcess } from 'node:child_process';
import { backoff, clock } from '../shared/clock.js';
import type { Route } from '../shared/network.js';
import { isServedHere } from '../shared/process-end.js';
import { helpers } from '../shared/process-state.js';
import { redact } from '../shared/redact.js';
import { helperCommand, unrefStreams, type HelperCommand } from '../shared/runtime.js';
import { RELEASE_PROGRAM } from './release-program.js';
import type { ReleaseTicket, SearchTicket } from './tickets.js';

/** What a helper releases: a browser, or what the search for an open acquire request finds. */
type HelperTicket = ReleaseTicket | SearchTicket;

/**
 * A line of JSON for the release process, which releases the remaining leases at the end of its input. Messages identify leases
 * by number, because two leases can have the same session id.
 */
export type ReleaseMessage =
  | { token: string | undefined }
  | { route: Route }
  /** What this process must release under a number; undefined: nothing any more. */
  | { lease: number; held: HelperLease | undefined }
  /** This process waits for so many ms. What takes longer passes to a further process, which starts in the same way. */
  | { isAwaited: number; further: { command: string; args: readonly string[] } };

export interface HelperLease {
  readonly ticket: HelperTicket;
  /** A release for reuse is on its way. */
  readonly isReuseSent: boolean;
  /** Of a search: milliseconds from the message on, until which the service can lease the browser. */
  readonly within?: number | undefined;
}

/** Pauses in ms between the ends of helpers and their replacements. */
const REPLACEMENT = { factor: 2, minTimeout: 100, maxTimeout: 30_000, randomize: false };
/** Milliseconds after which a program that does not even start is abandoned. */
const LONGEST_START = 30_000;
const WARNING = 'PooledBrowserWarning';

/** The present token, and the way to the service. */
interface HelperAccess {
  readonly token: string | undefined;
  readonly route: Route;
}

/** What a helper must release, unless this process does so. */
export interface HelpedLease {
  /** A release for reuse is on its way. */
  markSent(): void;
  remove(): void;
}

interface HeldTicket {
  readonly ticket: HelperTicket;
  /** A guard releases it if this process is killed. */
  readonly isGuarded: boolean;
  /** When `within` is over, by the clock of this process. */
  readonly until: number | undefined;
  isReuseSent: boolean;
}

export interface HelpRequest {
  /** Releases the browser also if this process is killed. */
  readonly onCrash: boolean;
  /** See `HelperLease`. */
  readonly within?: number | undefined;
}

/**
 * Lets another process release browsers, if this one can't:
 * - a guard runs while there is a lease to guard. It outlives this process if that is killed (SIGKILL, out of memory,
 *   `worker.terminate()`), and then releases the browsers;
 * - if this process exits, another one releases all browsers while this one waits.
 */
export class ReleaseHelper {
  readonly #access: () => HelperAccess;
  readonly #held = new Map<number, HeldTicket>();
  #last = 0;
  #guard: Guard | undefined;
  #failures = 0;

  constructor(access: () => HelperAccess) {
    this.#access = access;
  }

  add(ticket: HelperTicket, { onCrash, within }: HelpRequest): HelpedLease {
    const { isMainThread } = process.getBuiltinModule('node:worker_threads');
    const lease = ++this.#last;
    // No signal reaches a worker thread, and nothing runs in a thread that is terminated.
    const isGuarded = onCrash || !isMainThread;
    const held = { ticket, isGuarded, until: within && clock.now() + within, isReuseSent: false };
    const update = () => {
      if (held.isGuarded) this.#update(lease);
    };
    this.#held.set(lease, held);
    update();
    const markSent = () => {
      held.isReuseSent = true;
      update();
    };
    const remove = () => {
      if (this.#held.delete(lease)) update();
    };
    return { markSent, remove };
  }

  sendToken(token: string): void {
    this.#guard?.send([{ token }]);
  }

  /**
   * Releases all browsers at exit, when nothing asynchronous can run: another process sends the requests. This process waits
   * for up to `timeout` ms, because the end of a container ends all its processes.
   */
  releaseAtExit(timeout: number): void {
    for (const [lease, { ticket }] of this.#held)
      if (isServedHere(originOf(ticket))) this.#held.delete(lease);
    // Only one process may release.
    this.#guard?.kill();
    this.#guard = undefined;
    if (this.#held.size === 0) return;
    const messages = this.#messages(() => true);
    this.#held.clear();
    const failure = runNow(messages, timeout);
    if (failure === undefined || helpers.hasWarned) return;
    helpers.hasWarned = true;
    // Warnings of Node would come too late.
    process.stderr.write(`${WARNING}: ${warning(failure)}\n`);
  }

  /** Starts, informs or ends the guard. */
  #update(lease: number): void {
    if (!this.#guard) return this.#startGuard();
    this.#guard.send([messageOf(lease, this.#held.get(lease))]);
    if (this.#isGuarding) return;
    this.#guard.end();
    this.#guard = undefined;
  }

  #startGuard(): void {
    const guard = new Guard((failure) => {
      if (failure !== undefined && !helpers.hasWarned) {
        helpers.hasWarned = true;
        process.emitWarning(warning(failure), WARNING);
      }
      if (this.#guard !== guard) return;
      // Until then, all messages only change what the next guard receives. It may have been started meanwhile, for a new lease.
      const replace = () => {
        if (this.#guard !== guard) return;
        if (this.#isGuarding) this.#startGuard();
        else this.#guard = undefined;
      };
      clock.setTimeout(replace, backoff(REPLACEMENT, ++this.#failures)).unref();
    });
    this.#guard = guard;
    guard.start(this.#messages(({ isGuarded }) => isGuarded));
  }

  /** All that a new process needs. */
  #messages(isMeant: (held: HeldTicket) => boolean): ReleaseMessage[] {
    const leases = [...this.#held].filter(([, held]) => isMeant(held));
    const { route, token } = this.#access();
    return [{ route }, { token }, ...leases.map(([lease, held]) => messageOf(lease, held))];
  }

  get #isGuarding(): boolean {
    return [...this.#held.values()].some(({ isGuarded }) => isGuarded);
  }
}

function originOf(ticket: HelperTicket): string {
  return new URL('search' in ticket ? ticket.search.url : ticket.destroy.url).origin;
}

function messageOf(lease: number, held: HeldTicket | undefined): ReleaseMessage {
  if (!held) return { lease, held };
  const { ticket, isReuseSent, until } = held;
  return { lease, held: { ticket, isReuseSent, within: until && Math.max(0, until - clock.now()) } };
}

/** Messages pass through a pipe, because every user of the machine can read the arguments of a process. */
function linesOf(messages: readonly ReleaseMessage[]): string {
  return messages.map((message) => `${JSON.stringify(message)}\n`).join('');
}

/** The process that releases browsers after this one. */
class Guard {
  readonly #onEnd: (failure?: string) => void;
  /** The process; undefined before its start, and if it could not start. */
  #process: ChildProcess | undefined;

  /** @param onEnd Receives the reason if the program did not run. */
  constructor(onEnd: (failure?: string) => void) {
    this.#onEnd = onEnd;
  }

  start(messages: readonly ReleaseMessage[]): void {
    try {
      const { spawn } = process.getBuiltinModule('node:child_process');
      const { command, args, env } = releaseCommand();
      const child = spawn(command, args, { ...DETACHED, env, stdio: ['pipe', 'ignore', 'pipe'] });
      this.#process = child;
      let output = '';
      child.stderr
        .setEncoding('utf8')
        .on('data', (text: string) => (output = (output + text).slice(0, LONGEST_OUTPUT)));
      child.unref();
      unrefStreams(child.stdin, child.stderr);
      // A process that can't start, or ends, must not break this process.
      child.stdin.on('error', () => {});
      child.once('error', ({ message }) => this.#onEnd(message));
      child.once('close', (code) => {
        // After an error, the code is negative.
        if (child.pid !== undefined) this.#onEnd(code ? firstError(output) : undefined);
      });
    } catch (error) {
      this.#onEnd((error as Error).message);
    }
    this.send(messages);
  }

  send(messages: readonly ReleaseMessage[]): void {
    this.#process?.stdin?.write(linesOf(messages));
  }

  /** Ends the process, which must release nothing any more. */
  end(): void {
    this.#process?.stdin?.end();
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }
}

/** Runs the program while this process waits, for up to `timeout` ms. Returns why it did not run. */
function runNow(messages: readonly ReleaseMessage[], timeout: number): string | undefined {
  try {
    const { spawnSync } = process.getBuiltinModule('node:child_process');
    const { command, args, env } = releaseCommand();
    const { error, status, stderr } = spawnSync(command, args, {
      ...DETACHED,
      env,
      input: linesOf([{ isAwaited: timeout, further: { command, args } }, ...messages]),
      stdio: ['pipe', 'ignore', 'pipe'],
      timeout: LONGEST_START,
    });
    if (error) return error.message;
    return status === 0 ? undefined : firstError(String(stderr));
  } catch (error) {
    return (error as Error).message;
  }
}

/** The program that releases browsers. The last argument names the process for people. */
function releaseCommand(): HelperCommand {
  return helperCommand({ text: RELEASE_PROGRAM }, 'pooled-browser/release-process');
}

/** Ctrl-C in the terminal ends this process only. */
const DETACHED = { detached: true, windowsHide: true } as const;

const LONGEST_OUTPUT = 8192;

function firstError(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  return redact(lines.find((line) => /error|bad option/i.test(line)) ?? lines[0] ?? 'it could not start');
}

function warning(failure: string): string {
  return (
    `The process that releases browsers when this one exits or is killed failed: ${failure}. Browsers that are leased then ` +
    `stay leased until their inactivity timeout. Check that this process may start the program ${process.execPath}.`
  );
}
