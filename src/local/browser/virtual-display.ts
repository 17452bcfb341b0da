import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { raceTimeout } from '../../shared/abort.js';
import { environment } from '../../shared/environment.js';
import { lazy } from '../../shared/lazy.js';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { isExecutable } from './find-browser.js';
import type { CheckedSettings, LocalPoolViewport } from '../settings.js';

/** A screen to open windows on. */
export interface Screen {
  /** Value of the environment variable DISPLAY, such as `:99`. */
  readonly name: string;
  readonly size: LocalPoolViewport;
}

/** Window size of a session without a viewport, as the API defines it. */
const DEFAULT_SIZE = { width: 1920, height: 1080 };

/** Whether browser windows need a virtual screen. */
export function lacksDisplay(): boolean {
  return process.platform === 'linux' && environment.display() === undefined;
}

/** @returns The path of Xvfb, an X server without a physical screen. */
export function findXvfb(): string | undefined {
  const paths = environment.programFolders().map((folder) => join(folder, 'Xvfb'));
  return paths.find(isExecutable);
}

const START_TIMEOUT = 15_000;

const NO_XVFB =
  'A pool with headless: false opens windows. This machine has no screen (DISPLAY and WAYLAND_DISPLAY are not set) ' +
  'and no Xvfb.\n' +
  'Install Xvfb: npx pooled-browser install-browser --headful (as root on Debian: apt-get install xvfb)';

/** The virtual screen of a local pool: an Xvfb process, which starts with the first browser that needs it. */
export class VirtualDisplay {
  readonly #size: LocalPoolViewport;
  #guard: ChildProcess | undefined;
  #exited: Promise<unknown> | undefined;

  /** @param pools The screen is as large as their largest window. */
  constructor(pools: readonly Pick<CheckedSettings, 'headless' | 'viewport'>[]) {
    const sizes = pools.filter(({ headless }) => !headless).map(({ viewport = DEFAULT_SIZE }) => viewport);
    this.#size = {
      width: Math.max(...sizes.map(({ width }) => width)),
      height: Math.max(...sizes.map(({ height }) => height)),
    };
  }

  /** Starts Xvfb at the first call. @throws LocalPoolError when Xvfb is not installed or does not start. */
  readonly start = lazy(async (): Promise<Screen> => {
    const program = findXvfb();
    if (program === undefined) throw new LocalPoolError(NO_XVFB);
    try {
      const { default: pRetry } = await import('p-retry');
      // Retries, because an ending Xvfb with the same number can remove the socket of the new Xvfb.
      return await pRetry(() => this.#start(program), { retries: 2, minTimeout: 0 });
    } catch (error) {
      throw new LocalPoolError(`${program} did not start: ${(error as Error).message}`, error);
    }
  });

  async #start(program: string): Promise<Screen> {
    const guard = (this.#guard = spawnGuarded(program, this.#size));
    this.#exited = once(guard, 'exit').catch(() => {});
    try {
      const name = await raceTimeout(
        START_TIMEOUT,
        () => readName(guard),
        () => new Error(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      );
      return { name, size: this.#size };
    } catch (error) {
      guard.stdin!.end();
      throw error;
    }
  }

  /** Ends Xvfb. Resolves when the process has ended. */
  async close(): Promise<void> {
    this.#guard?.stdin!.end();
    await this.#exited;
  }
}

/**
 * Ends Xvfb when the standard input of this script closes, which also happens when our process is killed. The signal is
 * SIGTERM: after SIGKILL, Xvfb would leave its lock file, and the display number would stay in use.
 */
const GUARD = '"$@" & exec 3>&-; read -r nothing; kill $!; wait $!';

function spawnGuarded(program: string, { width, height }: LocalPoolViewport): ChildProcess {
  const screen = ['-screen', '0', `${width}x${height}x24`];
  // `-displayfd` selects a free number. `-noreset`: a reset after the last client would disconnect the next client.
  const xvfb = [program, '-displayfd', '3', ...screen, '-nolisten', 'tcp', '-noreset'];
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', ...xvfb], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    env: environment.forHelperProgram(),
  });
  guard.on('error', () => {});
  guard.stdin!.on('error', () => {});
  return guard;
}

/** Reads the whole line: Xvfb writes the line break separately, and ends if the pipe is closed before that. */
async function readName(guard: ChildProcess): Promise<string> {
  const lines = createInterface({ input: guard.stdio[3] as Readable });
  const ended = once(lines, 'close').then(() => {
    throw new Error('it ended immediately.');
  });
  ended.catch(() => {});
  const [number] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  guard.stdio[3]!.destroy();
  return `:${number}`;
}
