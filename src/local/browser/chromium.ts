import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { beforeProcessEnds } from '../../shared/process-end.js';
import type { Screen } from '../display/virtual-display.js';
import type { DevToolsAddress } from './cdp-connection.js';
import { chromiumFlags, hasLifeline, type FlagOptions } from './chromium-flags.js';
import { waitForFirstAnswer } from './first-answer.js';
import { killProcessTree } from './process-tree.js';
import { readDevToolsUrl } from './read-devtools-url.js';

/** What a browser is started with. */
export interface LaunchOptions extends FlagOptions {
  readonly executablePath: string;
}

/** Names the profile folders, so that a person can tell whose they are. */
const PROFILE_PREFIX = 'pooled-browser-';

/** Starts a Chromium with a fresh profile. Resolves when it answers; aborting the signal kills it. */
export async function launchChromium(options: LaunchOptions, signal: AbortSignal): Promise<Chromium> {
  signal.throwIfAborted();
  const starting = new StartingChromium(options);
  try {
    const chromium = new Chromium(starting, await readDevToolsUrl(starting.child, signal));
    await waitForFirstAnswer(chromium, signal);
    return chromium;
  } catch (error) {
    await starting.kill();
    signal.throwIfAborted();
    throw new LocalPoolError(`${options.executablePath} did not start: ${(error as Error).message}`, error);
  }
}

/** A process that has no address yet. */
class StartingChromium {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly #profile = mkdtempSync(join(tmpdir(), PROFILE_PREFIX));
  readonly #unguard = beforeProcessEnds({ atExit: () => this.#killNow() });
  #killed: Promise<void> | undefined;

  constructor({ executablePath, ...options }: LaunchOptions) {
    this.child = spawn(executablePath, chromiumFlags(this.#profile, options), {
      detached: process.platform !== 'win32',
      stdio: hasLifeline ? ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] : ['ignore', 'ignore', 'pipe'],
      env: chromiumEnvironment(this.#profile, options.screen),
      windowsHide: true,
    });
    this.exited = this.child.pid === undefined ? Promise.resolve() : once(this.child, 'exit').catch(() => {});
    // A broken lifeline is seen as the exit; unheard, the error would end this process.
    for (const stream of this.child.stdio) stream?.on('error', () => {});
    this.child.on('error', () => {});
  }

  /** Ends the process and all below it, then removes the profile. */
  kill(): Promise<void> {
    return (this.#killed ??= this.#kill());
  }

  async #kill(): Promise<void> {
    if (this.child.pid !== undefined) killProcessTree(this.child.pid);
    await this.exited;
    // The last helper processes may still be writing.
    await rm(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }).catch(() => {});
    this.#unguard();
  }

  #killNow(): void {
    if (this.child.pid !== undefined) killProcessTree(this.child.pid);
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** `<folder>/org.chromium.Chromium.XXXXXX/SingletonSocket` must fit into the 107 characters of a unix socket's path. */
const LONGEST_TMPDIR = 62;

/** A Chromium that is killed leaves folders in the directory for temporary files: that one is removed with the profile. */
function chromiumEnvironment(profile: string, screen: Screen | undefined): NodeJS.ProcessEnv {
  const fits = process.platform === 'linux' && profile.length <= LONGEST_TMPDIR;
  return { ...process.env, ...(fits && { TMPDIR: profile }), ...(screen && { DISPLAY: screen.name }) };
}

/** A running Chromium. */
export class Chromium implements DevToolsAddress {
  readonly pid: number;
  readonly port: number;
  readonly path: string;
  /** Resolves when the process has ended, for whatever reason. */
  readonly exited: Promise<unknown>;
  readonly #process: StartingChromium;

  constructor(process: StartingChromium, url: URL) {
    this.#process = process;
    this.pid = process.child.pid!;
    this.port = Number(url.port);
    this.path = url.pathname;
    this.exited = process.exited;
  }

  /** Ends the process and all below it, and removes its profile. Resolves when both are gone. */
  kill(): Promise<void> {
    return this.#process.kill();
  }
}
