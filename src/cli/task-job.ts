import type { Connector } from '../connect/connector.js';
import { playwright } from '../connect/playwright.js';
import { puppeteer } from '../connect/puppeteer.js';
import { prepareFolder } from '../lease/artifact-files.js';
import type { MapOptions } from '../map/options.js';
import { faultOfAddress } from '../map/queue/redis.js';
import { environment } from '../shared/environment.js';
import { createLeaseLog } from './lease.js';
import type { MapReport } from './map-report.js';
import { CliError, EXIT } from './errors.js';
import { POLL_TIMEOUT } from './service.js';
import type { TaskOptions } from './task-options.js';

/** The options of the library among those of a command that runs tasks. */
export function settingsOf(command: TaskOptions): Omit<MapOptions, 'retries' | 'checkpoint'> {
  const { concurrency, pagesPerLease, tasksPerLease, taskTimeout, isolation, protocol } = command;
  const { hostConcurrency, hostDelay } = command;
  const { name, tag: tags, startUrl, acquireTimeout, unreachableTimeout, releaseOnCrash } = command;
  const { exposeNetwork } = command;
  const { release, replays, artifacts: folder, artifactsOn: on, trace = false } = command;
  return {
    concurrency,
    pagesPerLease,
    tasksPerLease,
    taskTimeout,
    hostConcurrency,
    hostDelay,
    isolation,
    protocol,
    name,
    tags,
    startUrl,
    acquireTimeout,
    unreachableTimeout,
    releaseOnCrash,
    release,
    replays,
    exposeNetwork,
    artifacts: folder === undefined ? undefined : { folder, on, trace },
    pollTimeout: POLL_TIMEOUT,
  };
}

export async function checkArtifacts({ artifacts, trace, artifactsOn }: TaskOptions): Promise<void> {
  if (artifacts !== undefined) return prepareFolder(artifacts, '--artifacts');
  if (trace) throw new CliError('--trace needs --artifacts, a folder for the traces.', EXIT.usage);
  if (artifactsOn === 'always') throw new CliError('--artifacts-on needs --artifacts, a folder.', EXIT.usage);
}

export function listenersOf(
  report: MapReport,
  { acquireTimeout }: Pick<TaskOptions, 'acquireTimeout'>,
): Pick<MapOptions, 'onEvent' | 'onProgress'> {
  const log = createLeaseLog(acquireTimeout, report.note);
  return {
    onEvent: (event) => {
      // No message while other leases work: the pool may be smaller than --concurrency.
      if (event.type !== 'waiting' || event.error || report.leases === 0) log(event);
      if (event.type === 'replays') report.addReplays(event);
    },
    onProgress: (progress) => report.show(progress),
  };
}

/** Loads the library now: a missing library must fail before a browser is leased. */
export async function loadConnector(library: TaskOptions['library']): Promise<Connector> {
  const connector = library === 'playwright' ? playwright() : puppeteer();
  await connector.load();
  return connector;
}

/** How long an input of a queue waits here for a browser, in ms, at most: another worker may have one. */
const LONGEST_WAIT = 60_000;

/** The options of a worker among those of a command. Its browsers are released even if it is killed. */
export function workSettingsOf(command: TaskOptions): ReturnType<typeof settingsOf> {
  const acquireTimeout = Math.min(command.acquireTimeout, LONGEST_WAIT);
  return { ...settingsOf(command), acquireTimeout, releaseOnCrash: true };
}

/** The address of Redis. A password is accepted only from the environment. */
export function redisOf({ redis }: { readonly redis?: string }): string {
  const address = redis ?? environment.redisUrl();
  if (address === undefined) throw new CliError(NO_REDIS, EXIT.usage);
  const fault = faultOfAddress(address);
  const source = redis === undefined ? 'REDIS_URL' : '--redis';
  if (fault !== undefined) throw new CliError(`${source} ${fault}.`, EXIT.usage);
  if (redis !== undefined && new URL(redis).password !== '') throw new CliError(PASSWORD, EXIT.usage);
  return address;
}

const NO_REDIS =
  'The address of Redis is missing: set REDIS_URL, such as redis://127.0.0.1:6379, or pass --redis. Debian has Redis in ' +
  'the package redis-server.';

const PASSWORD =
  '--redis must not contain a password, because every user of a machine can read the arguments of its processes. Set ' +
  'the environment variable REDIS_URL instead.';
