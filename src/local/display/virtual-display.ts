import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { LocalPoolError } from '../../shared/lease-errors.js';
import { environment } from '../../shared/environment.js';
import { raceTimeout } from '../../shared/abort.js';
import { findXvfb } from './find-xvfb.js';

/** In pixels. */
export interface ScreenSize {
  readonly width: number;
  readonly height: number;
}

/** A screen to open windows on. */
export interface Screen {
  /** What `DISPLAY` is to be, such as `:99`. */
  readonly name: string;
  readonly size: ScreenSize;
}

const START_TIMEOUT = 15_000;
const MOST_ATTEMPTS = 3;

const NO_XVFB =
  'A pool with headless: false opens windows, and this machine has no screen (DISPLAY and WAYLAND_DISPLAY are not ' +
  'set) and no Xvfb to make one.\n' +
  'Install it: npx pooled-browser install-browser --headful (as root on Debian: apt-get install xvfb)';

/** A screen that nobody sees, for browsers with windows on a machine that has none: one Xvfb process. */
export class VirtualDisplay implements Screen {
  readonly name: string;
  readonly size: ScreenSize;
  readonly #guard: ChildProcess;
  #closed: Promise<void> | undefined;

  private constructor(guard: ChildProcess, { name, size }: Screen) {
    this.name = name;
    this.size = size;
    this.#guard = guard;
  }

  /** @throws LocalPoolError when there is no Xvfb, or it does not start. */
  static async start(size: ScreenSize): Promise<VirtualDisplay> {
    const program = findXvfb();
    if (program === undefined) throw new LocalPoolError(NO_XVFB);
    for (let attempt = 1; ; attempt++) {
      try {
        return await VirtualDisplay.#start(program, size);
      } catch (error) {
        // One that is just ending can take the socket of its successor along: they may have had the same number.
        if (attempt < MOST_ATTEMPTS) continue;
        throw new LocalPoolError(`${program} did not start: ${(error as Error).message}`, error);
      }
    }
  }

  static async #start(program: string, size: ScreenSize): Promise<VirtualDisplay> {
    const guard = spawnGuarded(program, size);
    try {
      const name = await raceTimeout(
        START_TIMEOUT,
        () => readName(guard),
        () => new Error(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      );
      return new VirtualDisplay(guard, { name, size });
    } catch (error) {
      guard.stdin!.end();
      throw error;
    }
  }

  /** Ends the process. Resolves when it is gone. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const { exitCode, signalCode } = this.#guard;
    const exited = exitCode === null && signalCode === null ? once(this.#guard, 'exit') : undefined;
    this.#guard.stdin!.end();
    await exited;
  }
}

/**
 * Ends the program that it is given when its standard input ends: however this process ends, the pipe breaks. Not by
 * SIGKILL, with which Xvfb would leave its lock file behind, and the display's number with it.
 */
const GUARD = '"$@" & exec 3>&-; read -r nothing; kill $!; wait $!';

function spawnGuarded(program: string, { width, height }: ScreenSize): ChildProcess {
  const screen = ['-screen', '0', `${width}x${height}x24`];
  // Chosen by itself, the number of the display is free. A reset after its last client would cut off the next one.
  const xvfb = [program, '-displayfd', '3', ...screen, '-nolisten', 'tcp', '-noreset'];
  const guard = spawn('/bin/sh', ['-c', GUARD, 'sh', ...xvfb], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    env: environment.forChild(),
  });
  guard.on('error', () => {});
  guard.stdin!.on('error', () => {});
  return guard;
}

/** The whole line: Xvfb writes the line break by itself, and ends when there is nobody to read it. */
async function readName(guard: ChildProcess): Promise<string> {
  const lines = createInterface({ input: guard.stdio[3] as Readable });
  const ended = once(lines, 'close').then(() => {
    throw new Error('it ended at once.');
  });
  ended.catch(() => {});
  const [number] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  guard.stdio[3]!.destroy();
  return `:${number}`;
}
