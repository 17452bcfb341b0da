import type { LocalBrowserKind } from '../../pool/pool-options.js';
import type { BrowserProcess } from './browser-process.js';
import { launchChromium, type Chromium } from './chromium.js';
import type { LaunchOptions } from './chromium-flags.js';
import { launchFirefox } from './firefox.js';
import type { FirefoxSessions } from './firefox-sessions.js';

/** A browser process, by what its kind can do. */
export interface LocalBrowser extends Pick<BrowserProcess, 'pid' | 'exited' | 'kill'> {
  /** With CDP: its clients, pictures of its pages, and BiDi by chromium-bidi. */
  readonly chromium?: Chromium;
  /** With BiDi of its own. */
  readonly sessions?: FirefoxSessions;
}

interface BrowserKind {
  /** The name of the browser in messages. */
  readonly name: string;
  readonly launch: (options: LaunchOptions, signal: AbortSignal) => Promise<LocalBrowser>;
  /** Recordings, live view and dashboard need it. */
  readonly hasCdp: boolean;
}

/** The kinds of browsers of a local pool. `find-browser.ts` has their paths. */
export const KINDS: Readonly<Record<LocalBrowserKind, BrowserKind>> = {
  chromium: { name: 'Chromium', launch: launchChromium, hasCdp: true },
  firefox: { name: 'Firefox', launch: launchFirefox, hasCdp: false },
};
