import { checkRetryOptions, type Backoff } from './backoff.js';
import type { Connector, ContextChoice } from '../connect/connector.js';
import { PROTOCOLS, type Protocol } from '../connect/protocol.js';
import { InvalidOptionError, rejectUnknownOptions } from '../shared/errors.js';
import { isRecord, showValue } from '../shared/json.js';
import { checkRecordingOptions, type RecordingOptions } from './recording-options.js';
import { checkLeaseName, checkStartUrl, checkTags } from '../service/checks.js';
import type { RunEvent } from './events.js';
import type { HeldLeaseOptions, LeaseOptions, RunOptions } from './options.js';

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
  awaitRelease: boolean;
  replays: 'list' | 'record' | 'off';
  replaysTimeout: number;
  recording: RecordingOptions | undefined;
  driver: object;
  watch: boolean;
  reconnect: boolean;
  keepAlive: boolean;
  signal: AbortSignal | undefined;
  onEvent: ((event: RunEvent) => void) | undefined;
}

type AllOptions = RunOptions & HeldLeaseOptions;

const OF_A_RUN: readonly (keyof RunOptions)[] = ['timeout', 'awaitRelease'];

/** Options that a function does not take, though others do. */
const FOREIGN: Record<string, readonly (keyof AllOptions)[]> = {
  withPooledBrowser: ['reconnect', 'keepAlive'],
  leaseBrowser: OF_A_RUN,
  attachBrowser: [
    ...OF_A_RUN,
    'name',
    'tags',
    'startUrl',
    'acquireTimeout',
    'pollTimeout',
    'connectAttempts',
  ],
};

/** Checks all options before anything is sent. */
export function checkOptions(options: AllOptions, connector: Connector, caller: string): Settings {
  const { retry, ...given } = options;
  const settings: Settings = { ...withDefaults(given), retry: checkRetryOptions(retry) };
  const foreign: readonly string[] = FOREIGN[caller] ?? [];
  const known = Object.keys(settings).filter((option) => !foreign.includes(option));
  rejectUnknownOptions(given, known, caller);
  checkLeaseName(settings.name);
  checkTags(settings.tags);
  checkStartUrl(settings.startUrl, 'startUrl');
  for (const option of TIMES) checkTime(option, settings[option]);
  if (settings.pollTimeout !== false) checkTime('pollTimeout', settings.pollTimeout);
  if (!Number.isSafeInteger(settings.connectAttempts) || settings.connectAttempts < 1) {
    throw new InvalidOptionError('connectAttempts', 'connectAttempts must be a whole number, 1 or more.');
  }
  checkChoices(settings);
  checkRecording(settings);
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
  awaitRelease = true,
  replays = 'list',
  replaysTimeout = 10_000,
  recording,
  driver = {},
  watch = false,
  reconnect = false,
  keepAlive = true,
  signal,
  onEvent,
}: Omit<AllOptions, 'retry'>): Omit<Settings, 'retry'> {
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
    awaitRelease,
    replays,
    replaysTimeout,
    recording,
    driver,
    watch,
    reconnect,
    keepAlive,
    signal,
    onEvent,
  };
}

function checkTime(option: string, milliseconds: unknown): void {
  if (typeof milliseconds === 'number' && milliseconds > 0) return;
  throw new InvalidOptionError(
    option,
    `${option} must be a number of milliseconds above 0, not ${showValue(milliseconds)}.`,
  );
}

function checkChoices({
  protocol,
  context,
  release,
  replays,
  driver,
  watch,
  reconnect,
  keepAlive,
  awaitRelease,
  signal,
  onEvent,
}: Settings): void {
  checkChoice('protocol', protocol, PROTOCOLS);
  checkChoice('context', context, ['default', 'new']);
  checkChoice('replays', replays, ['list', 'record', 'off']);
  if (typeof release !== 'function') checkChoice('release', release, ['auto', 'reuse', 'destroy', 'leave']);
  for (const [option, value] of Object.entries({ watch, reconnect, keepAlive, awaitRelease })) {
    if (typeof value === 'boolean') continue;
    throw new InvalidOptionError(option, `${option} must be true or false.`);
  }
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

function checkRecording({ replays, recording }: Settings): void {
  if (recording === undefined) return;
  if (replays !== 'record') {
    throw new InvalidOptionError('recording', `recording needs replays: 'record', not '${replays}'.`);
  }
  checkRecordingOptions(recording);
}

function checkChoice(option: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  const choices = allowed.map((choice) => `'${choice}'`).join(', ');
  throw new InvalidOptionError(option, `${option} must be one of ${choices}, not ${showValue(value)}.`);
}
