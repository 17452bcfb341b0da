import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import { backoff, clock } from '../shared/clock.js';
import { environment } from '../shared/environment.js';
import { isRecord } from '../shared/json.js';
import type { Route } from '../shared/network.js';
import { isServedHere } from '../shared/process-end.js';
import { helpers } from '../shared/process-state.js';
import { redact } from '../shared/redact.js';
import { RELEASE_PROGRAM } from './release-program.js';
import type { ReleaseTicket, SearchTicket } from './tickets.js';

// Not imported: an import of a module of Node takes as long as one of our own files.
const { closeSync, openSync, readSync, unlinkSync, writeSync } = process.getBuiltinModule('node:fs');

/** What a helper releases: a browser, or what the search for an open acquire request finds. */
export type HelperTicket = ReleaseTicket | SearchTicket;

/**
 * A line of JSON for the release process. Messages identify leases by number, because two leases can have the same
 * session id.
 */
export type ReleaseMessage =
  | { token: string | undefined }
  | { route: Route }
  /** What this process must release under a number; undefined: nothing any more. */
  | { lease: number; held: HelperLease | undefined }
  /** Release all remaining leases. The end of the input has the same meaning. */
  | { end: true };

export interface HelperLease {
  readonly ticket: HelperTicket;
  /** A release for reuse is on its way. */
  readonly isSent: boolean;
}

/** Pauses in ms between the ends of helpers and their replacements. */
const REPLACEMENT = { factor: 2, minTimeout: 100, maxTimeout: 30_000, randomize: false };
const POLL_INTERVAL = 10;
const FINISHED = 'finished\n';
const LARGEST_OUTPUT = 8192;
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

interface Held extends HelperLease {
  /** A guard releases it if this process is killed. */
  readonly isGuarded: boolean;
  isSent: boolean;
}

/**
 * Lets another process release browsers, if this one can't. It runs while there is a lease to guard, outlives this process if
 * that is killed (SIGKILL, out of memory, `worker.terminate()`), and then releases the browsers. If this process exits, it
 * releases all browsers. Without a lease to guard, it starts at the exit.
 */
export class ReleaseHelper {
  readonly #access: () => HelperAccess;
  readonly #held = new Map<number, Held>();
  #last = 0;
  /** The running guard. */
  #guard: HelperProcess | undefined;
  #failures = 0;

  constructor(access: () => HelperAccess) {
    this.#access = access;
  }

  /** @param onCrash Releases the browser also if this process is killed. */
  add(ticket: HelperTicket, { onCrash }: { onCrash: boolean }): HelpedLease {
    const { isMainThread } = process.getBuiltinModule('node:worker_threads');
    const lease = ++this.#last;
    // No signal reaches a worker thread, and nothing runs in a thread that is terminated.
    const held = { ticket, isGuarded: onCrash || !isMainThread, isSent: false };
    const update = () => {
      if (held.isGuarded) this.#update(lease);
    };
    this.#held.set(lease, held);
    update();
    const markSent = () => {
      held.isSent = true;
      update();
    };
    const remove = () => {
      if (this.#held.delete(lease)) update();
    };
    return { markSent, remove };
  }

  /** Passes a new token on. */
  sendToken(token: string): void {
    this.#guard?.send({ token });
  }

  /**
   * Releases all browsers at exit, when nothing asynchronous can run: a helper process sends the requests. This process waits
   * for up to `timeout` ms, because the end of a container ends all its processes. A helper that takes longer continues alone.
   */
  releaseAtExit(timeout: number): void {
    const left = [...this.#held].filter(([, { ticket }]) => !isServedHere(originOf(ticket)));
    const guard = this.#guard;
    this.#held.clear();
    this.#guard = undefined;
    if (left.length === 0) return guard?.end();
    const deadline = clock.now() + timeout;
    if (guard?.isReady) {
      const rest = left.filter(([, { isGuarded }]) => !isGuarded);
      if (guard.finish(rest, deadline)) return;
    }
    // Only one process may release: this guard has died, or lacks messages.
    guard?.kill();
    const helper = new HelperProcess(this.#access());
    if (!helper.finish(left, deadline)) helper.warnAtExit();
  }

  /** Starts, informs or ends the guard. */
  #update(lease: number): void {
    if (!this.#guard) return this.#startGuard();
    this.#guard.send({ lease, held: this.#held.get(lease) });
    if (this.#isGuarding) return;
    this.#guard.end();
    this.#guard = undefined;
  }

  #startGuard(): void {
    const guard = new HelperProcess(this.#access());
    this.#guard = guard;
    for (const [lease, held] of this.#held) if (held.isGuarded) guard.send({ lease, held });
    guard.onEnd(() => {
      if (this.#guard !== guard) return;
      // Until then, all messages only change what the next guard receives.
      const replace = () => (this.#isGuarding ? this.#startGuard() : (this.#guard = undefined));
      clock.setTimeout(replace, backoff(REPLACEMENT, ++this.#failures)).unref();
    });
  }

  get #isGuarding(): boolean {
    return [...this.#held.values()].some(({ isGuarded }) => isGuarded);
  }
}

function originOf(ticket: HelperTicket): string {
  return new URL('search' in ticket ? ticket.search.url : ticket.destroy.url).origin;
}

/**
 * The program that releases browsers, in a separate process. Messages pass through a pipe, because every user of the machine
 * can read the arguments of a process.
 */
class HelperProcess {
  /** Undefined if the process could not start. */
  readonly #process: ChildProcess | undefined;
  /** A file to which the process writes its errors, and that it has finished. */
  #output = openUnnamedFile();
  #isOver = false;
  #onEnd = () => {};

  constructor({ token, route }: HelperAccess) {
    try {
      this.#process = this.#start();
    } catch (error) {
      this.#end((error as Error).message);
    }
    this.send({ route });
    this.send({ token });
  }

  /** Whether the process exists, and has received all messages so far. */
  get isReady(): boolean {
    const input = this.#process?.stdin;
    return !this.#isOver && input?.errored === null && input.writableLength === 0;
  }

  send(message: ReleaseMessage): void {
    if (!this.#isOver) this.#process?.stdin!.write(lineOf(message));
  }

  end(): void {
    this.#process?.stdin?.end();
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  /** Calls a function when the process has ended. */
  onEnd(call: () => void): void {
    this.#onEnd = call;
    if (this.#isOver) call();
  }

  /**
   * Lets the process release all leases, and waits. Runs at exit, when the stream of the pipe writes nothing later. Returns
   * false if the process has ended.
   */
  finish(leases: readonly (readonly [number, Held])[], deadline: number): boolean {
    const messages = [...leases.map(([lease, held]) => ({ lease, held })), { end: true } as const];
    const text = messages.map(lineOf).join('');
    const input = this.#process?.pid === undefined ? null : this.#process.stdin;
    if (!input || !writeNow(input, text, deadline)) return false;
    if (this.#output === undefined) return true;
    const isDone = () => this.#written.endsWith(FINISHED);
    while (!isDone() && clock.now() < deadline) {
      pause();
      // Only a process that still runs can receive it.
      if (!writeNow(input, '\n', deadline)) return isDone();
    }
    return true;
  }

  /** Reports that the process could not release anything. Warnings of Node would come too late. */
  warnAtExit(): void {
    if (helpers.hasWarned) return;
    helpers.hasWarned = true;
    process.stderr.write(`${WARNING}: ${warning(firstError(this.#written))}\n`);
  }

  #start(): ChildProcess {
    const { spawn } = process.getBuiltinModule('node:child_process');
    // It would run the application a second time.
    if (process.getBuiltinModule('node:sea').isSea())
      throw new Error('a single executable application contains no program node');
    const { args, env } = environment.forHelper();
    // The last argument names the process for people.
    const program = ['--input-type=module', '--eval', RELEASE_PROGRAM, 'pooled-browser/release-process'];
    const output = this.#output ?? 'ignore';
    // Detached: Ctrl-C in the terminal ends this process only.
    const options = { detached: true, windowsHide: true, env } as const;
    const child = spawn(process.execPath, [...args, ...program], {
      ...options,
      stdio: ['pipe', output, output],
    });
    child.unref();
    (child.stdin as unknown as { unref(): void }).unref();
    // A helper that can't start, or ends, must not break this process.
    child.stdin!.on('error', () => {});
    child.once('error', ({ message }) => this.#end(message));
    child.once('exit', (code) => this.#end(code ? firstError(this.#written) : undefined));
    return child;
  }

  /** @param failure Why the program did not run. */
  #end(failure?: string): void {
    this.#isOver = true;
    if (failure !== undefined && !helpers.hasWarned) {
      helpers.hasWarned = true;
      process.emitWarning(warning(failure), WARNING);
    }
    if (this.#output !== undefined) closeSync(this.#output);
    this.#output = undefined;
    this.#onEnd();
  }

  get #written(): string {
    if (this.#output === undefined) return '';
    const bytes = Buffer.alloc(LARGEST_OUTPUT);
    return bytes.toString('utf8', 0, readSync(this.#output, bytes, 0, LARGEST_OUTPUT, 0));
  }
}

function lineOf(message: ReleaseMessage): string {
  return `${JSON.stringify(message)}\n`;
}

/** Writes to a pipe at exit. A pipe takes some hundred leases at once. Returns false if nobody reads it. */
function writeNow(pipe: Writable, text: string, deadline: number): boolean {
  const handle: unknown = Reflect.get(pipe, '_handle');
  const fd = isRecord(handle) ? Number(handle['fd']) : -1;
  // Windows has no file descriptor for it.
  if (!(fd >= 0)) {
    pipe.write(text);
    return true;
  }
  let left = Buffer.from(text);
  while (left.length > 0 && clock.now() < deadline) {
    try {
      left = left.subarray(writeSync(fd, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      pause();
    }
  }
  return true;
}

/** Blocks the thread for a moment. */
function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_INTERVAL);
}

function firstError(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  return redact(lines.find((line) => /error|bad option/i.test(line)) ?? lines[0] ?? 'it could not start');
}

function warning(failure: string): string {
  return (
    `The process that releases browsers when this one exits or is killed failed: ${failure}. Browsers that are leased then ` +
    'stay leased until their inactivity timeout. Check that this process may start the program node.'
  );
}

/** Opens a file without a name. Its space is freed with the last process that has it open. */
function openUnnamedFile(): number | undefined {
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
