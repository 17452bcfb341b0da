import { closestMatch } from 'leven';
import type { BrowserContextOptions } from 'playwright-core';
import { InvalidOptionError } from '../shared/errors.js';

/** What is known about the options of a library's contexts. */
interface KnownOptions {
  readonly library: string;
  /** The names of its options. A newer version, or a variant of the library, may have more. */
  readonly names: readonly string[];
  /** Options that the library does not have, and what to do instead. */
  readonly missing: Readonly<Record<string, string>>;
}

export const PLAYWRIGHT_OPTIONS = Object.keys({
  acceptDownloads: 0,
  baseURL: 0,
  bypassCSP: 0,
  clientCertificates: 0,
  colorScheme: 0,
  contrast: 0,
  deviceScaleFactor: 0,
  extraHTTPHeaders: 0,
  forcedColors: 0,
  geolocation: 0,
  hasTouch: 0,
  httpCredentials: 0,
  ignoreHTTPSErrors: 0,
  isMobile: 0,
  javaScriptEnabled: 0,
  locale: 0,
  logger: 0,
  offline: 0,
  permissions: 0,
  proxy: 0,
  recordHar: 0,
  recordVideo: 0,
  reducedMotion: 0,
  screen: 0,
  serviceWorkers: 0,
  storageState: 0,
  strictSelectors: 0,
  timezoneId: 0,
  userAgent: 0,
  viewport: 0,
} satisfies Record<keyof BrowserContextOptions, 0>);

/** Those that only Puppeteer has. */
export const PUPPETEER_OPTIONS = [
  'cookies',
  'credentials',
  'downloadBehavior',
  'proxyBypassList',
  'proxyServer',
];

/** Options of a browser, not of a context. */
export const OF_BROWSER = 'The pool starts its browsers: configure them there.';

/** Most letters by which a misspelled name differs. */
const MOST_TYPOS = 2;

/**
 * Refuses options that the library would ignore: those of another library, and misspelled ones.
 *
 * @throws InvalidOptionError
 */
export function refuseUnknown(given: object, { library, names, missing }: KnownOptions): void {
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const lower = names.find((one) => one.toLowerCase() === name.toLowerCase());
    const similar = lower ?? closestMatch(name, names, { maxDistance: MOST_TYPOS });
    const advice = Object.hasOwn(missing, name) ? missing[name] : similar && `Did you mean ${similar}?`;
    if (advice === undefined) continue;
    throw new InvalidOptionError(
      `contextOptions.${name}`,
      `A context of ${library} has no option ${name}. ${advice}`,
    );
  }
}

/** The context that the given options imply. */
export function impliedContext({ context, contextOptions }: { context?: unknown; contextOptions?: unknown }) {
  if (contextOptions === undefined) return {};
  if (context === 'default') throw new InvalidOptionError(...OWN_CONTEXT);
  return { context: 'new' } as const;
}

/** The arguments of the error for options of the browser's own context. */
export const OWN_CONTEXT = [
  'contextOptions',
  "contextOptions are those of a new context, and context: 'default' is the browser's own one: remove one of them.",
] as const;
