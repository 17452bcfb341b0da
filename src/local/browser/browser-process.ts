import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { environment } from '../../shared/environment.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { beforeProcessEnds } from '../../shared/process-end.js';
import { redact } from '../../shared/redact.js';
import { makeProfileFolder } from '../../shared/temporary-folder.js';

/** How a browser starts with its profile. */
interface Command {
  readonly path: string;
  readonly args: readonly string[];
  readonly stdio: ('ignore' | 'pipe')[];
  readonly env?: NodeJS.ProcessEnv;
}

const START_TIMEOUT = 45_000;
/** Characters of the browser's output that are kept, and shown when it does not start. */
const LONGEST_OUTPUT = 4000;
const LONGEST_SHOWN = 2000;
/** While this process exits, a profile is removed within 5 s, or stays. */
const REMOVE_TRIES = 100;
/** Milliseconds between two tries. */
const REMOVE_PAUSE = 50;

/** A browser process with a fresh profile. */
export abstract class BrowserProcess {
  /** Resolves when the process has ended, for any reason. */
  readonly exited: Promise<unknown>;
  protected readonly child: ChildProcess;
  readonly #path: string;
  readonly #profile: string;
  readonly #unguard = beforeProcessEnds({ atExit: () => this.#killNow() });
  /** The end of its output, for the message about a failed start. */
  #output = '';
  #killed: Promise<void> | undefined;

  /** @param commandFor Returns the command for the folder of the profile. Its output of errors must be a pipe. */
  protected constructor(commandFor: (profile: string) => Command) {
    const { path: profile, onStarted } = makeProfileFolder();
    this.#profile = profile;
    const { path, args, stdio, env } = commandFor(profile);
    this.#path = path;
    this.child = spawn(path, args, {
      detached: process.platform !== 'win32',
      stdio,
      env: { ...environment.forHelperProgram(), ...env },
      windowsHide: true,
    });
    if (this.child.pid !== undefined) onStarted(this.child.pid);
    this.exited = this.child.pid === undefined ? Promise.resolve() : once(this.child, 'exit').catch(() => {});
    // Without listeners, a failed start or a broken pipe would end this process. `exited` reports both.
    for (const stream of this.child.stdio) stream?.on('error', () => {});
    this.child.on('error', () => {});
    // This listener stays: a browser would block on a full pipe.
    this.child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#output = (this.#output + chunk).slice(-LONGEST_OUTPUT);
    });
  }

  /** Connects to the browser. Resolves when it answers: an idle browser must be usable immediately. */
  protected abstract answer(): Promise<void>;

  get pid(): number {
    return this.child.pid!;
  }

  /**
   * Resolves when the browser can be used.
   *
   * @param signal Kills the browser when it aborts before that.
   */
  async start(signal: AbortSignal): Promise<this> {
    try {
      await this.#waitUntilReady(signal);
      return this;
    } catch (error) {
      await this.kill();
      signal.throwIfAborted();
      throw new LocalPoolError(`${this.#path} did not start: ${(error as Error).message}`, error);
    }
  }

  async #waitUntilReady(signal: AbortSignal): Promise<void> {
    const failed = new Promise<never>((_resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('exit', (code, by) => {
        // The last output arrives after the exit.
        setTimeout(() => reject(new Error(`it ended with ${by ?? `exit code ${code}`}.`)), 100);
      });
    });
    try {
      await raceTimeout(
        START_TIMEOUT,
        () => raceAbort(Promise.race([this.answer(), failed]), signal),
        () => new Error(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      );
    } catch (error) {
      const output = redact(this.#output).slice(-LONGEST_SHOWN);
      throw new Error(`${(error as Error).message}\n${output}`.trimEnd(), { cause: error });
    }
  }

  /** Kills the process with its children and removes the profile. Resolves when all have ended. */
  kill(): Promise<void> {
    return (this.#killed ??= this.#kill());
  }

  async #kill(): Promise<void> {
    if (this.child.pid !== undefined) killProcessTree(this.child.pid);
    await this.exited;
    // Retries, because the last child processes may still write to the profile.
    const retries = { maxRetries: 20, retryDelay: REMOVE_PAUSE };
    await rm(this.#profile, { recursive: true, force: true, ...retries }).catch(() => {});
    this.#unguard();
  }

  #killNow(): void {
    if (this.child.pid !== undefined) killProcessTree(this.child.pid);
    removeNow(this.#profile);
  }
}

/** Removes a folder to which killed processes may still write: `rmSync` alone would not list its files again. */
function removeNow(folder: string): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let triesLeft = REMOVE_TRIES; ; triesLeft--) {
    try {
      return rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      if (triesLeft === 0) throw error;
      Atomics.wait(sleeper, 0, 0, REMOVE_PAUSE);
    }
  }
}

/** Kills a process with its children. It is synchronous, so that it works while this process exits. */
function killProcessTree(pid: number): void {
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore', windowsHide: true });
    return;
  }
  try {
    // A negative id names the process group: the child leads its own group.
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has ended already.
  }
}
