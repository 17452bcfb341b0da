import { Option, type Command } from 'commander';
import type { MapOptions } from '../map/options.js';
import {
  addLeaseRequestOptions,
  choice,
  exposeOption,
  time,
  wholeNumber,
  type ExposeOptions,
  type LeaseRequestOptions,
} from './options.js';

type TaskFlag =
  | 'concurrency'
  | 'pagesPerLease'
  | 'tasksPerLease'
  | 'taskTimeout'
  | 'hostConcurrency'
  | 'hostDelay'
  | 'isolation'
  | 'protocol'
  | 'release'
  | 'replays';

/** Options of each command that runs the task of a script: those of the library with a flag of the same name, and others. */
export interface TaskOptions extends LeaseRequestOptions, ExposeOptions, Pick<MapOptions, TaskFlag> {
  library: 'playwright' | 'puppeteer';
  /** Folder. */
  artifacts?: string;
  artifactsOn: 'failure' | 'always';
  trace?: true;
}

export function addTaskOptions(command: Command): Command {
  return addLeaseRequestOptions(command)
    .option('--concurrency <n>', 'browsers to lease at once', wholeNumber(1), 4)
    .option('--pages-per-lease <n>', 'tasks at once in one browser', wholeNumber(1), 1)
    .option('--tasks-per-lease <n>', 'tasks after which another browser is leased', wholeNumber(1))
    .option('--host-concurrency <n>', 'tasks at once for one host', wholeNumber(1))
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
      choice('--library <name>', 'library of the page that the task gets', ['playwright', 'puppeteer']),
    )
    .addOption(choice('--protocol <name>', 'protocol of the library; bidi: Puppeteer only', ['cdp', 'bidi']))
    .addOption(
      choice('--release <choice>', 'at the end; auto: reuse a browser that is healthy and cleaned up', [
        'auto',
        'reuse',
        'destroy',
      ]),
    )
    .addOption(
      choice('--replays <choice>', 'links of the recordings, on stderr; record: record each lease', [
        'list',
        'record',
        'off',
      ]),
    )
    .addOption(exposeOption())
    .option('--artifacts <folder>', 'folder for a screenshot and the console log of each failed attempt')
    .addOption(choice('--artifacts-on <when>', 'with --artifacts: of which attempts', ['failure', 'always']))
    .option('--trace', 'with --artifacts: also a trace of Playwright');
}

/** The address of Redis, without a password. */
export function redisOption(): Option {
  return new Option('--redis <url>', 'address of Redis, if it needs no password (default: REDIS_URL)');
}

export const ABOUT_REDIS = `
The address of Redis is in the environment variable REDIS_URL: redis://user:password@host:6379, or
rediss:// with TLS. For one without a password, --redis is enough: every user of a machine can read
the arguments of its processes.`;
