import { Option, type Command } from 'commander';
import type { Connector } from '../drivers/connector.js';
import { playwright } from '../drivers/playwright.js';
import { puppeteer } from '../drivers/puppeteer.js';
import { prepareFolder } from '../features/files.js';
import type { MapOptions } from '../jobs/options.js';
import { faultOfAddress } from '../jobs/queue/redis.js';
import { environment } from '../shared/environment.js';
import { MissingLibraryError } from '../shared/errors.js';
import { CliError, EXIT } from './errors.js';
import { createLeaseLog } from './lease.js';
import type { InputOptions } from './map-inputs.js';
import type { OutOptions } from './map-out.js';
import type { MapReport } from './map-report.js';
import { loadScript } from './map-script.js';
import { isInstalled } from './service.js';
import {
  addLeaseOptions,
  addReachOptions,
  choice,
  leaseSettings,
  time,
  wholeNumberArgument,
  type LeaseCommandOptions,
} from './options.js';

/** The options of the library with a flag of the same name. */
const TASK_OPTIONS = [
  'concurrency',
  'pagesPerLease',
  'tasksPerLease',
  'idleTimeout',
  'taskTimeout',
  'hostConcurrency',
  'hostDelay',
  'isolation',
  'protocol',
] as const;

type TaskOptions = Pick<MapOptions, (typeof TASK_OPTIONS)[number]>;

/** Options of each command that runs the task of a script. */
export interface TaskCommandOptions extends LeaseCommandOptions, TaskOptions {
  script: string;
  library?: 'playwright' | 'puppeteer';
  /** Folder. */
  artifacts?: string;
  artifactsOn: 'failure' | 'always';
  trace?: true;
  redis?: string;
  workerName?: string;
}

interface Defaults {
  readonly idleTimeout?: string;
  readonly acquireTimeout?: string;
  /** Smallest value of `--concurrency`. */
  readonly leastConcurrency?: 0 | 1;
}

/** @param defaults Those of a queue differ, because other machines may need the browsers, or have some. */
export function addTaskOptions(
  command: Command,
  { idleTimeout, acquireTimeout, leastConcurrency = 1 }: Defaults = {},
): Command {
  const idle = new Option(
    '--idle-timeout <time>',
    'time without inputs after which a browser is released',
  ).argParser(time);
  return addReachOptions(addLeaseOptions(command, acquireTimeout === undefined ? {} : { acquireTimeout }))
    .option('--name <name>', 'the leases are called <name>-1, <name>-2, …')
    .option('--concurrency <n>', 'browsers to lease at once', wholeNumberArgument(leastConcurrency), 4)
    .option('--pages-per-lease <n>', 'tasks at once in one browser', wholeNumberArgument(1), 1)
    .option('--tasks-per-lease <n>', 'tasks after which another browser is leased', wholeNumberArgument(1))
    .addOption(idleTimeout === undefined ? idle : idle.default(time(idleTimeout), idleTimeout))
    .option('--host-concurrency <n>', 'tasks at once for one host', wholeNumberArgument(1))
    .option('--host-delay <time>', 'time between the starts of two tasks for one host: 500ms, 2s', time)
    .option('--task-timeout <time>', 'timeout of each attempt: 500ms, 30s, 5m', time)
    .addOption(
      choice('--isolation <kind>', 'isolation between the tasks in one browser', [
        'context',
        'storage',
        'none',
      ]),
    )
    .addOption(
      new Option(
        '--library <name>',
        'library of the page that the task gets (default: playwright if it is installed)',
      ).choices(['playwright', 'puppeteer']),
    )
    .addOption(choice('--protocol <name>', 'protocol of the library; bidi: Puppeteer only', ['cdp', 'bidi']))
    .option('--artifacts <folder>', 'folder for a screenshot and the console log of each failed attempt')
    .addOption(choice('--artifacts-on <when>', 'with --artifacts: of which attempts', ['failure', 'always']))
    .option('--trace', 'with --artifacts: also a trace of Playwright')
    .option('--redis <url>', 'address of Redis, if it needs no password (default: REDIS_URL)')
    .option('--worker-name <name>', 'with a queue: name of this process in the progress (default: host:pid)');
}

/** The arguments and options of `map`. */
export interface MapCommand
  extends
    TaskCommandOptions,
    OutOptions,
    InputOptions,
    Pick<MapOptions, 'retries' | 'stopAfterFailures' | 'ordered'> {
  queue?: string;
}

export const ABOUT_REDIS = `
The address of Redis is in the environment variable REDIS_URL: redis://user:password@host:6379, or
rediss:// with TLS. For one without a password, --redis is enough: every user of a machine can read
the arguments of its processes.`;

/** The options of the library for a command that runs tasks. Events and progress go to the report. */
export function settingsOf(
  command: TaskCommandOptions,
  report: MapReport,
): Omit<MapOptions, 'retries' | 'checkpoint'> {
  const { artifacts: folder, artifactsOn: on, trace = false } = command;
  const log = createLeaseLog(command.acquireTimeout, report.note);
  return {
    ...leaseSettings(command),
    ...(Object.fromEntries(TASK_OPTIONS.map((name) => [name, command[name]])) as TaskOptions),
    artifacts: folder === undefined ? undefined : { folder, on, trace },
    onEvent: (event) => {
      // No message while other leases work: the pool may be smaller than --concurrency.
      if (event.type !== 'waiting' || event.error || report.leases === 0) log(event);
      if (event.type === 'replays') report.addReplays(event);
    },
    onProgress: (progress) => report.show(progress),
  };
}

/** How long an input of a queue waits here for a browser by default, in ms: another worker may have one. */
export const QUEUE_WAIT = 60_000;

/** The same for a worker of a queue. Its browsers are released even if it is killed. */
export function workSettingsOf(command: TaskCommandOptions, report: MapReport) {
  const { workerName } = command;
  return { ...settingsOf(command, report), workerName, releaseOnCrash: true };
}

export async function checkArtifacts({ artifacts, trace, artifactsOn }: TaskCommandOptions): Promise<void> {
  if (artifacts !== undefined) return prepareFolder(artifacts, '--artifacts');
  if (trace) throw new CliError('--trace needs --artifacts, a folder for the traces.', EXIT.usage);
  if (artifactsOn === 'always') throw new CliError('--artifacts-on needs --artifacts, a folder.', EXIT.usage);
}

/**
 * Loads the script and the library, which must not be missing when a browser is leased.
 *
 * @param others Further packages that the command needs: one error names all that are missing.
 */
export async function loadTask(
  { script, protocol, library }: TaskCommandOptions,
  others: readonly string[] = [],
) {
  const { task, options } = await loadScript(script);
  const isPuppeteer =
    protocol === 'bidi' || (!isInstalled('playwright-core') && isInstalled('puppeteer-core'));
  const chosen = library ?? (isPuppeteer ? 'puppeteer' : 'playwright');
  const connector: Connector = chosen === 'puppeteer' ? puppeteer() : playwright();
  await connector.load().catch((error: unknown) => {
    if (!(error instanceof MissingLibraryError) || error.installed !== undefined) throw error;
    throw new MissingLibraryError(error.library, {
      cause: error,
      others: others.filter((name) => !isInstalled(name)),
    });
  });
  return { task, options: { ...options, connector } };
}

/** The packages of a queue. */
export const QUEUE_LIBRARIES = ['bullmq', 'ioredis'];

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
