import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BrowserProcess } from './browser-process.js';
import type { LaunchOptions } from './chromium-flags.js';
import { FirefoxSessions } from './firefox-sessions.js';

/**
 * Starts a Firefox with a fresh profile.
 *
 * @param signal Kills the browser when it aborts before the browser is ready.
 * @returns The browser, once it has a WebDriver session.
 */
export async function launchFirefox(options: LaunchOptions, signal: AbortSignal): Promise<Firefox> {
  signal.throwIfAborted();
  return new Firefox(options).start(signal);
}

/** A Firefox process with its profile. It has WebDriver BiDi, and no CDP. */
class Firefox extends BrowserProcess {
  /** Since the start. */
  sessions!: FirefoxSessions;

  constructor(options: LaunchOptions) {
    super((profile) => {
      writeProfile(profile);
      const [path, ...args] = guarded([options.executablePath, ...firefoxFlags(profile, options)]);
      const { screen } = options;
      // Firefox keeps files in the home folder, such as downloads: as part of the profile, they are removed too.
      const env = {
        HOME: profile,
        TMPDIR: profile,
        ...NO_CRASH_REPORTS,
        ...(screen && { DISPLAY: screen.name }),
      };
      return { path: path!, args, stdio: ['pipe', 'ignore', 'pipe'], env };
    });
  }

  protected async answer(): Promise<void> {
    const url = await new Promise<string>((resolve) => {
      let output = '';
      this.child.stderr!.on('data', (chunk: string) => {
        output += chunk;
        const [, found] = /^WebDriver BiDi listening on (ws:\S+)$/m.exec(output) ?? [];
        if (found !== undefined) resolve(`${found}/session`);
      });
    });
    this.sessions = await FirefoxSessions.open(url, () => void this.kill());
  }
}

const NO_CRASH_REPORTS = { MOZ_CRASHREPORTER_DISABLE: '1' };

/** Ends the browser, with its children, when the standard input of this script closes, which also happens when our process is killed. */
const GUARD = 'exec 3<&0; (read -r nothing <&3; kill -KILL 0) & exec "$@" 3<&- </dev/null';

/** Firefox has no pipe to break. */
function guarded(command: readonly string[]): readonly string[] {
  return process.platform === 'win32' ? command : ['/bin/sh', '-c', GUARD, 'sh', ...command];
}

/** Pages have 1280 x 720 pixels in it. */
const HEADLESS_WINDOW = { width: 1280, height: 806 };

/** Firefox's command line. Other users of the machine can read it: it must contain no secret. */
function firefoxFlags(profile: string, { headless, screen, viewport, args }: LaunchOptions): string[] {
  const size = viewport ?? (headless ? HEADLESS_WINDOW : screen?.size);
  return [
    '--no-remote',
    '--remote-debugging-port=0',
    `--profile=${profile}`,
    ...(headless ? ['--headless'] : []),
    ...(size ? [`--width=${size.width}`, `--height=${size.height}`] : []),
    ...args,
    'about:blank',
  ];
}

/**
 * Firefox sets most preferences for automation by itself when it has a debugging port. These keep what user contexts share, such as
 * the colours of visited links, and give a headless Firefox a mouse.
 */
const PREFERENCES = {
  'browser.cache.disk.enable': false,
  'browser.formfill.enable': false,
  'places.history.enabled': false,
  'ui.allPointerCapabilities': 6,
  'ui.primaryPointerCapabilities': 6,
};

/** Without the user contexts that every new profile has. */
const CONTAINERS = { version: 5, lastUserContextId: 5, identities: [] };

function writeProfile(profile: string): void {
  const lines = Object.entries(PREFERENCES).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`,
  );
  writeFileSync(join(profile, 'user.js'), lines.join(''));
  writeFileSync(join(profile, 'containers.json'), JSON.stringify(CONTAINERS));
}
