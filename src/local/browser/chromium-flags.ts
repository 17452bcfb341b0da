import type { Screen } from './virtual-display.js';
import type { LocalPoolViewport } from '../settings.js';

export interface LaunchOptions {
  readonly executablePath: string;
  readonly headless: boolean;
  readonly viewport?: LocalPoolViewport | undefined;
  /** The virtual screen to open windows on, where the machine has no screen. */
  readonly screen?: Screen | undefined;
  /** Additional flags. They come last, so that they override ours. */
  readonly args: readonly string[];
}

/** Chromium's command line. Other users of the machine can read it: it must contain no secret. */
export function chromiumFlags(profile: string, options: Omit<LaunchOptions, 'executablePath'>): string[] {
  const { headless, screen, args } = options;
  const viewport = options.viewport ?? (headless ? HEADLESS_WINDOW : screen?.size);
  const isLinux = process.platform === 'linux';
  return [
    // No port, which other users of the machine could open. Chromium ends when the pipe breaks, also when this process is
    // killed.
    '--remote-debugging-pipe',
    `--user-data-dir=${profile}`,
    ...(headless ? ['--headless', '--disable-gpu', '--mute-audio', '--hide-scrollbars', MOUSE] : []),
    // Xvfb has no window manager to place windows, and no GPU.
    ...(screen && !headless ? ['--window-position=0,0', '--disable-gpu', '--ozone-platform=x11'] : []),
    // Chromium refuses to run as root with its sandbox.
    ...(isLinux && process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    // Containers limit /dev/shm to 64 MB, and a renderer that fills it crashes.
    ...(isLinux ? ['--disable-dev-shm-usage'] : []),
    ...(viewport ? [`--window-size=${viewport.width},${viewport.height}`] : []),
    ...QUIET,
    ...args,
    'about:blank',
  ];
}

/** Pages have 1280 x 720 pixels in it: a headless Chromium subtracts the height of a toolbar. */
const HEADLESS_WINDOW = { width: 1280, height: 807 };

/** A headless Chromium has no pointing device, and pages would show their layout for touch screens. */
const MOUSE =
  '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4';

/**
 * The features that Playwright or Puppeteer switch off because they break automation: upgrades to https, storage and
 * processes that Chromium shares differently from run to run, dialogs, and Chromium's own requests. The two
 * features of the address bar load two pages of Chromium in each window: a new context, which is a window, takes three
 * times as long with them. The spare process saves no time here, and each new context discards it: a task in a context of
 * its own takes a quarter more processor time with it.
 */
const DISABLED_FEATURES = [
  'AcceptCHFrame',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'IsolateSandboxedIframes',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ProcessPerSiteUpToMainFrameThreshold',
  'SpareRendererForSitePerProcess',
  'Translate',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxPopup',
];

/**
 * Flags with which Playwright and Puppeteer launch Chromium: no first-run pages, dialogs or blocked popups, no network
 * traffic of Chromium's own, no throttling, equal colours everywhere. From the back-forward cache a page would return
 * without the events for which `page.goBack()` waits. Not taken: `--enable-automation` and `--disable-extensions`, which
 * change what pages and users see.
 */
const QUIET = [
  '--allow-pre-commit-input',
  '--disable-back-forward-cache',
  '--disable-background-networking',
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-breakpad',
  '--disable-client-side-phishing-detection',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  '--disable-default-apps',
  `--disable-features=${DISABLED_FEATURES.join(',')}`,
  '--disable-field-trial-config',
  '--disable-hang-monitor',
  '--disable-infobars',
  '--disable-ipc-flooding-protection',
  '--disable-popup-blocking',
  '--disable-prompt-on-repost',
  '--disable-quic',
  '--disable-renderer-backgrounding',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--force-color-profile=srgb',
  '--hide-crash-restore-bubble',
  '--metrics-recording-only',
  '--no-default-browser-check',
  '--no-first-run',
  '--password-store=basic',
  '--use-mock-keychain',
];

/** Chromium sends no UDP packets for WebRTC: the first flag is that of a whole Chromium, the second that of the headless shell. */
export const NO_UDP = ['', 'force-'].map(
  (prefix) => `--${prefix}webrtc-ip-handling-policy=disable_non_proxied_udp`,
);
