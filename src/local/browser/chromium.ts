import type { Readable, Writable } from 'node:stream';
import { BrowserPictures } from '../../recorder/pictures.js';
import { sourceOver, type CdpSource } from '../../wire/cdp-source.js';
import { BrowserProcess } from './browser-process.js';
import { CdpPipe } from './cdp-pipe.js';
import { chromiumFlags, type LaunchOptions } from './chromium-flags.js';
import type { Screen } from './virtual-display.js';

/**
 * Starts a Chromium with a fresh profile.
 *
 * @param signal Kills the browser when it aborts before the browser is ready.
 * @returns The browser, once it answers CDP commands.
 */
export async function launchChromium(options: LaunchOptions, signal: AbortSignal): Promise<Chromium> {
  signal.throwIfAborted();
  return new Chromium(options).start(signal);
}

/** A Chromium process with its profile. */
export class Chromium extends BrowserProcess {
  readonly chromium = this;
  readonly pipe: CdpPipe;
  readonly source: CdpSource;
  readonly pictures: BrowserPictures;

  constructor(options: LaunchOptions) {
    super((profile) => ({
      path: options.executablePath,
      args: chromiumFlags(profile, options),
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
      env: chromiumEnvironment(profile, options.screen),
    }));
    this.pipe = new CdpPipe(this.child.stdio[3] as Writable, this.child.stdio[4] as Readable);
    this.source = sourceOver(this.pipe);
    this.pictures = new BrowserPictures(this.source);
  }

  protected async answer(): Promise<void> {
    const connection = await this.source().catch(() => new Promise<never>(() => {}));
    await connection.targets();
    connection.close();
  }
}

/** `<folder>/org.chromium.Chromium.XXXXXX/SingletonSocket` must fit into the 107 characters of a Unix socket path. */
const LONGEST_TMPDIR = 62;

/** A killed Chromium leaves folders in TMPDIR: as part of the profile, they are removed too. */
function chromiumEnvironment(profile: string, screen: Screen | undefined): NodeJS.ProcessEnv {
  const fits = process.platform === 'linux' && profile.length <= LONGEST_TMPDIR;
  return { ...(fits && { TMPDIR: profile }), ...(screen && { DISPLAY: screen.name }) };
}
