import type { Screen } from '../display/virtual-display.js';
import type { LocalPoolViewport } from '../options.js';

/** What the flags depend on. */
export interface FlagOptions {
  readonly headless: boolean;
  readonly viewport?: LocalPoolViewport | undefined;
  /** Where windows open, when it is not the screen of this session. */
  readonly screen?: Screen | undefined;
  /** Further flags, last so that they win. */
  readonly args: readonly string[];
}

/** Chromium's command line. Nothing secret may ever stand in it: other users of the machine can read it. */
export function chromiumFlags(profile: string, options: FlagOptions): string[] {
  const { headless, screen, args } = options;
  const viewport = options.viewport ?? (headless ? undefined : screen?.size);
  return [
    '--remote-debugging-port=0',
    ...(hasLifeline ? ['--remote-debugging-pipe'] : []),
    `--user-data-dir=${profile}`,
    ...(headless ? ['--headless', '--disable-gpu', '--mute-audio', '--hide-scrollbars'] : []),
    // No window manager places the windows there, and no graphics card draws them.
    ...(screen && !headless ? ['--window-position=0,0', '--disable-gpu', '--ozone-platform=x11'] : []),
    ...(isRootOnLinux() ? ['--no-sandbox'] : []),
    // Containers give /dev/shm 64 MB, and a renderer that fills it dies.
    ...(process.platform === 'linux' ? ['--disable-dev-shm-usage'] : []),
    ...(viewport ? [`--window-size=${viewport.width},${viewport.height}`] : []),
    ...QUIET,
    ...args,
    'about:blank',
  ];
}

/**
 * With the pipe open beside the port, Chromium ends by itself when this process is killed outright: the pipe breaks.
 * Nothing is ever sent through it.
 */
export const hasLifeline = process.platform !== 'win32';

/** No first-run pages, no traffic of its own, no throttling of tabs in the background. */
const QUIET = [
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-breakpad',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-quic',
  '--disable-renderer-backgrounding',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--hide-crash-restore-bubble',
  '--password-store=basic',
  '--use-mock-keychain',
];

/** Chromium refuses to run as root with its sandbox. */
function isRootOnLinux(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0;
}
