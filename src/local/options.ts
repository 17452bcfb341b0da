import { randomBytes } from 'node:crypto';
import { InvalidOptionError } from '../shared/errors.js';
import { showValue } from '../shared/json.js';
import {
  callback,
  checked,
  checksOf,
  group,
  oneOf,
  optional,
  readOptions,
  text,
  wholeNumber,
} from '../shared/options.js';
import type { LocalPoolEvent } from './events.js';
import { browserFlags, type LocalBrowserKind } from '../pool/pool-options.js';
import { KINDS } from './browser/local-browser.js';
import {
  quirkChecks,
  readPools,
  recordingChecks,
  type LocalPoolQuirks,
  type LocalPoolRecording,
  type LocalPoolSettings,
} from './settings.js';

/** Options of `startLocalPool`. */
export interface LocalPoolOptions {
  /** The pools. Default: one pool named `default`. */
  pools?: readonly LocalPoolSettings[] | undefined;
  /**
   * TCP port on 127.0.0.1. 0: any free port.
   * @default 0
   */
  port?: number | undefined;
  /** Access token that clients must send: at least 8 visible ASCII characters. Default: a random token. */
  token?: string | undefined;
  /**
   * `'firefox'`: browsers with WebDriver BiDi only. They have no recordings, no live view and no pictures on the dashboard.
   * @default 'chromium'
   */
  browser?: LocalBrowserKind | undefined;
  /** Path of the browser. Default: the result of `findBrowser`. */
  executablePath?: string | undefined;
  /**
   * Additional flags of the browser. The pool sets the folder of the profile and the remote debugging flags.
   * @default []
   */
  args?: readonly string[] | undefined;
  /** Behaviour on which services differ, to test a client against each. */
  quirks?: LocalPoolQuirks | undefined;
  /** Limits of recordings, and their folder. */
  recording?: LocalPoolRecording | undefined;
  /** Receives each event. Events contain no token. An error that this function throws is ignored. */
  onLog?: ((event: LocalPoolEvent) => void) | undefined;
}

/** Checks the options of `startLocalPool` and adds the defaults. @throws InvalidOptionError */
export function readLocalPoolOptions(given: LocalPoolOptions) {
  const { token = randomBytes(32).toString('base64url'), ...options } = readOptions(
    localPoolChecks,
    given,
    'startLocalPool',
  );
  const { maxBytes, maxTotalBytes } = options.recording;
  if (maxTotalBytes < maxBytes) {
    const message = `recording.maxTotalBytes (${maxTotalBytes}) must be at least recording.maxBytes (${maxBytes}).`;
    throw new InvalidOptionError('recording.maxTotalBytes', message);
  }
  const pools = readPools(options.pools);
  const { name, hasCdp } = KINDS[options.browser];
  if (!hasCdp && pools.some(({ recordAll }) => recordAll))
    throw new InvalidOptionError(
      'recordAll',
      `${name} can't be recorded: remove recordAll, or use chromium.`,
    );
  return { ...options, token, pools };
}

/** The options of `startLocalPool` with their defaults. */
export type CheckedOptions = ReturnType<typeof readLocalPoolOptions>;

const TOKEN = /^[\x21-\x7e]{8,}$/;

function faultInPools(pools: unknown): string | undefined {
  if (!Array.isArray(pools)) return `must be an array of pools, not ${showValue(pools)}`;
  return pools.length === 0 ? 'must contain at least one pool' : undefined;
}

/** The message does not show the token. */
function faultInToken(token: unknown): string | undefined {
  return typeof token === 'string' && TOKEN.test(token)
    ? undefined
    : 'must be a string of at least 8 visible ASCII characters';
}

const localPoolChecks = checksOf<LocalPoolOptions>()({
  pools: optional(checked<readonly LocalPoolSettings[]>(faultInPools), [{}]),
  port: optional(wholeNumber(0, 65_535), 0),
  token: optional(checked<string>(faultInToken)),
  browser: optional(oneOf('chromium', 'firefox'), 'chromium'),
  executablePath: optional(text()),
  args: optional(browserFlags(), []),
  quirks: optional(group(quirkChecks), {}),
  recording: optional(group(recordingChecks), {}),
  onLog: optional(callback<(event: LocalPoolEvent) => void>()),
});
