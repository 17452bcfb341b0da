import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { CdpConnection } from '../../net/cdp-connection.js';
import { BrowserPictures } from '../../recorder/pictures.js';
import { raceAbort, raceTimeout } from '../../shared/abort.js';
import { environment } from '../../shared/environment.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { beforeProcessEnds } from '../../shared/process-end.js';
import { redact } from '../../shared/redact.js';
import type { Screen } from './virtual-display.js';
import { CdpPipe } from './cdp-pipe.js';
import { chromiumFlags, type LaunchOptions } from './chromium-flags.js';

/**
 * Starts a Chromium with a fresh profile.
 *
 * @param signal Kills the browser when it aborts before the browser is ready.
 * @returns The browser, once it answers CDP commands.
 */
export async function launchChromium(options: LaunchOptions, signal: AbortSignal): Promise<Chromium> {
  signal.throwIfAborted();
  const chromium = new Chromium(options);
  try {
    await chromium.waitUntilReady(signal);
    return chromium;
  } catch (error) {
    await chromium.kill();
    signal.throwIfAborted();
    throw new LocalPoolError(`${options.executablePath} did not start: ${(error as Error).message}`, error);
  }
}

/** The prefix shows which program created the profile folder. */
const PROFILE_PREFIX = 'pooled-browser-';
const START_TIMEOUT = 45_000;
/** Characters of Chromium's output that are kept, and shown when it does not start. */
const LONGEST_OUTPUT = 4000;
const LONGEST_SHOWN = 2000;
/** While this process exits, a profile is removed within 5 s, or stays. */
const REMOVE_TRIES = 100;
/** Milliseconds between two tries. */
const REMOVE_PAUSE = 50;

/** A Chromium process with its profile. */
export class Chromium {
  /** Resolves when the process has ended, for any reason. */
  readonly exited: Promise<unknown>;
  readonly pipe: CdpPipe;
  readonly pictures: BrowserPictures;
  readonly #child: ChildProcess;
  readonly #profile = mkdtempSync(join(tmpdir(), PROFILE_PREFIX));
  readonly #unguard = beforeProcessEnds({ atExit: () => this.#killNow() });
  /** The end of its output, for the message about a failed start. */
  #output = '';
  #killed: Promise<void> | undefined;

  constructor(options: LaunchOptions) {
    this.#child = spawn(options.executablePath, chromiumFlags(this.#profile, options), {
      detached: process.platform !== 'win32',
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
      env: chromiumEnvironment(this.#profile, options.screen),
      windowsHide: true,
    });
    this.exited =
      this.#child.pid === undefined ? Promise.resolve() : once(this.#child, 'exit').catch(() => {});
    // Without listeners, a failed start or a broken pipe would end this process. `exited` reports both.
    for (const stream of this.#child.stdio) stream?.on('error', () => {});
    this.#child.on('error', () => {});
    // This listener stays: Chromium would block on a full pipe.
    this.#child.stderr!.setEncoding('utf8').on('data', (chunk: string) => {
      this.#output = (this.#output + chunk).slice(-LONGEST_OUTPUT);
    });
    this.pipe = new CdpPipe(this.#child.stdio[3] as Writable, this.#child.stdio[4] as Readable);
    this.pictures = new BrowserPictures(this.pipe);
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Resolves when the browser answers commands, because an idle browser must be usable immediately. */
  async waitUntilReady(signal: AbortSignal): Promise<void> {
    const failed = new Promise<never>((_resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code, by) => {
        // The last output arrives after the exit.
        setTimeout(() => reject(new Error(`it ended with ${by ?? `exit code ${code}`}.`)), 100);
      });
    });
    try {
      await raceTimeout(
        START_TIMEOUT,
        () => raceAbort(Promise.race([this.#answer(), failed]), signal),
        () => new Error(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      );
    } catch (error) {
      const output = redact(this.#output).slice(-LONGEST_SHOWN);
      throw new Error(`${(error as Error).message}\n${output}`.trimEnd(), { cause: error });
    }
  }

  async #answer(): Promise<void> {
    const connection = await CdpConnection.open(this.pipe).catch(() => new Promise<never>(() => {}));
    await connection.ask('Target.getTargets');
    connection.close();
  }

  /** Kills the process with its children and removes the profile. Resolves when all are gone. */
  kill(): Promise<void> {
    return (this.#killed ??= this.#kill());
  }

  async #kill(): Promise<void> {
    if (this.#child.pid !== undefined) killProcessTree(this.#child.pid);
    await this.exited;
    // Retries, because the last child processes may still write to the profile.
    const retries = { maxRetries: 20, retryDelay: REMOVE_PAUSE };
    await rm(this.#profile, { recursive: true, force: true, ...retries }).catch(() => {});
    this.#unguard();
  }

  #killNow(): void {
    if (this.#child.pid !== undefined) killProcessTree(this.#child.pid);
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

/** `<folder>/org.chromium.Chromium.XXXXXX/SingletonSocket` must fit into the 107 characters of a Unix socket path. */
const LONGEST_TMPDIR = 62;

/** A killed Chromium leaves folders in TMPDIR: as part of the profile, they are removed too. */
function chromiumEnvironment(profile: string, screen: Screen | undefined): NodeJS.ProcessEnv {
  const fits = process.platform === 'linux' && profile.length <= LONGEST_TMPDIR;
  return {
    ...environment.forHelperProgram(),
    ...(fits && { TMPDIR: profile }),
    ...(screen && { DISPLAY: screen.name }),
  };
}

/** Kills a process with its children. Synchronous, so that it works while this process exits. */
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
