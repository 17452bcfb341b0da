import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { LocalPoolError } from '../../errors/local-pool-error.js';
import { environment } from '../../internal/environment.js';
import { beforeProcessEnds } from '../../internal/process-end.js';
import { raceTimeout } from '../../internal/race.js';
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
  readonly #xvfb: ChildProcess;
  readonly #lifeline: Socket;
  readonly #unguard: () => void;
  #closed: Promise<void> | undefined;

  private constructor(xvfb: ChildProcess, unguard: () => void, lifeline: Socket, screen: Screen) {
    this.name = screen.name;
    this.size = screen.size;
    this.#xvfb = xvfb;
    this.#unguard = unguard;
    this.#lifeline = lifeline;
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
    const xvfb = spawnXvfb(program, size);
    const unguard = beforeProcessEnds({ atExit: () => xvfb.kill() });
    try {
      const name = await raceTimeout(
        START_TIMEOUT,
        () => readName(xvfb),
        () => new Error(`it took longer than ${START_TIMEOUT / 1000} seconds.`),
      );
      return new VirtualDisplay(xvfb, unguard, await openLifeline(name), { name, size });
    } catch (error) {
      xvfb.kill();
      unguard();
      throw error;
    }
  }

  /** Ends the process. Resolves when it is gone. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const { exitCode, signalCode } = this.#xvfb;
    const exited = exitCode === null && signalCode === null ? once(this.#xvfb, 'exit') : undefined;
    this.#lifeline.destroy();
    // Not SIGKILL: it would leave its lock file behind, and the display's number with it.
    this.#xvfb.kill();
    await exited;
    this.#unguard();
  }
}

function spawnXvfb(program: string, { width, height }: ScreenSize): ChildProcess {
  const screen = ['-screen', '0', `${width}x${height}x24`];
  // Chosen by itself, the number of the display is free. It ends with its last client: see the lifeline.
  const xvfb = spawn(program, ['-displayfd', '3', ...screen, '-nolisten', 'tcp', '-terminate'], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    env: environment.forChild(),
  });
  xvfb.on('error', () => {});
  return xvfb;
}

async function readName(xvfb: ChildProcess): Promise<string> {
  const numbers = xvfb.stdio[3] as Readable;
  const ended = once(xvfb, 'exit').then(([code]) => {
    throw new Error(`it ended with ${String(code)}.`);
  });
  const [number] = (await Promise.race([once(numbers, 'data'), ended])) as [Buffer];
  numbers.destroy();
  ended.catch(() => {});
  return `:${number.toString().trim()}`;
}

/** The greeting of an X11 client: byte order, version 11.0, no authorization. */
const GREETING = Buffer.from([0x6c, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/**
 * A client of the display that does nothing. While this process lives, the display has a client, though every browser
 * be gone; when this process is killed outright, its browsers end, and the display with the last of them.
 */
async function openLifeline(name: string): Promise<Socket> {
  const socket = connect(`/tmp/.X11-unix/X${name.slice(1)}`);
  await once(socket, 'connect');
  socket.on('error', () => {});
  socket.write(GREETING);
  await once(socket, 'data');
  return socket.resume();
}
