import { checkRetryOptions, type Backoff } from '../acquire/backoff.js';
import type { Connector, ContextChoice } from '../connect/connector.js';
import { PROTOCOLS, type Protocol } from '../connect/protocol.js';
import { InvalidOptionError } from '../errors/index.js';
import { rejectUnknownOptions } from '../errors/invalid-option-error.js';
import { isRecord } from '../internal/is-record.js';
import { checkLeaseName, checkStartUrl, checkTags } from '../service/checks.js';
import type { RunEvent } from './events.js';
import type { LeaseOptions, RunOptions } from './options.js';

/** All options with their defaults, checked. */
export interface Settings {
  name: string | undefined;
  tags: Readonly<Record<string, string>> | undefined;
  startUrl: string | undefined;
  acquireTimeout: number;
  pollTimeout: number | false;
  retry: Backoff;
  connectTimeout: number;
  connectAttempts: number;
  protocol: Protocol;
  context: ContextChoice;
  timeout: number;
  release: NonNullable<LeaseOptions['release']>;
  releaseTimeout: number;
  replays: 'list' | 'off';
  replaysTimeout: number;
  driver: object;
  watch: boolean;
  signal: AbortSignal | undefined;
  onEvent: ((event: RunEvent) => void) | undefined;
}

/** Checks all options before anything is sent. */
export function checkOptions(options: RunOptions, connector: Connector, caller: string): Settings {
  if (typeof options !== 'object') {
    throw new InvalidOptionError('options', 'The options must be an object.');
  }
  const { retry, ...given } = options;
  const settings: Settings = { ...withDefaults(given), retry: checkRetryOptions(retry) };
  rejectUnknownOptions(given, Object.keys(settings), caller);
  checkLeaseName(settings.name);
  checkTags(settings.tags);
  checkStartUrl(settings.startUrl, 'startUrl');
  for (const option of TIMES) checkTime(option, settings[option]);
  if (settings.pollTimeout !== false) checkTime('pollTimeout', settings.pollTimeout);
  if (!Number.isSafeInteger(settings.connectAttempts) || settings.connectAttempts < 1) {
    throw new InvalidOptionError('connectAttempts', 'connectAttempts must be a whole number, 1 or more.');
  }
  checkChoices(settings);
  const refusal = connector.refusal(settings.protocol);
  if (refusal) throw new InvalidOptionError('protocol', refusal);
  return settings;
}

const TIMES = ['acquireTimeout', 'connectTimeout', 'timeout', 'releaseTimeout', 'replaysTimeout'] as const;

function withDefaults({
  name,
  tags,
  startUrl,
  acquireTimeout = 300_000,
  pollTimeout = 25_000,
  connectTimeout = 30_000,
  connectAttempts = 2,
  protocol = 'cdp',
  context = 'default',
  timeout = Number.POSITIVE_INFINITY,
  release = 'auto',
  releaseTimeout = 10_000,
  replays = 'list',
  replaysTimeout = 10_000,
  driver = {},
  watch = false,
  signal,
  onEvent,
}: Omit<RunOptions, 'retry'>): Omit<Settings, 'retry'> {
  return {
    name,
    tags,
    startUrl,
    acquireTimeout,
    pollTimeout,
    connectTimeout,
    connectAttempts,
    protocol,
    context,
    timeout,
    release,
    releaseTimeout,
    replays,
    replaysTimeout,
    driver,
    watch,
    signal,
    onEvent,
  };
}

function checkTime(option: string, milliseconds: unknown): void {
  if (typeof milliseconds === 'number' && milliseconds > 0) return;
  throw new InvalidOptionError(
    option,
    `${option} must be a number of milliseconds above 0, not ${String(milliseconds)}.`,
  );
}

function checkChoices({
  protocol,
  context,
  release,
  replays,
  driver,
  watch,
  signal,
  onEvent,
}: Settings): void {
  checkChoice('protocol', protocol, PROTOCOLS);
  checkChoice('context', context, ['default', 'new']);
  checkChoice('replays', replays, ['list', 'off']);
  if (typeof release !== 'function') checkChoice('release', release, ['auto', 'reuse', 'destroy', 'leave']);
  if (typeof watch !== 'boolean') throw new InvalidOptionError('watch', 'watch must be true or false.');
  if (!isRecord(driver))
    throw new InvalidOptionError('driver', 'driver must be an object of connect options.');
  // Not instanceof: test environments and polyfills bring AbortSignals of their own.
  if (signal !== undefined && !(isRecord(signal) && 'aborted' in signal)) {
    throw new InvalidOptionError('signal', 'signal must be an AbortSignal.');
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw new InvalidOptionError('onEvent', 'onEvent must be a function.');
  }
}

function checkChoice(option: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  const choices = allowed.map((choice) => `'${choice}'`).join(', ');
  throw new InvalidOptionError(option, `${option} must be one of ${choices}, not ${String(value)}.`);
}
