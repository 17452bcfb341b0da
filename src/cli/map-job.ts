import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import type { Connector } from '../connect/connector.js';
import { playwright } from '../connect/playwright.js';
import { puppeteer } from '../connect/puppeteer.js';
import { mapPooledBrowsers } from '../map/map-pooled-browsers.js';
import type { MapOptions } from '../map/options.js';
import { recordOf } from '../map/outcome.js';
import type { Outcome } from '../map/outcome.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import { createLeaseLog } from './lease.js';
import { loadTask, openInputs } from './map-inputs.js';
import { MapReport } from './map-report.js';
import type { LeaseRequestOptions } from './options.js';
import { openPool, POLL_TIMEOUT } from './service.js';
import { printJson } from './terminal.js';

type MapFlag =
  | 'concurrency'
  | 'pagesPerLease'
  | 'tasksPerLease'
  | 'retries'
  | 'taskTimeout'
  | 'isolation'
  | 'protocol'
  | 'release'
  | 'replays'
  | 'ordered';

/** The options of `mapPooledBrowsers` that have a flag of the same name, and those of the command line. */
export interface MapCommandOptions extends LeaseRequestOptions, Pick<MapOptions, MapFlag> {
  library: 'playwright' | 'puppeteer';
  out?: string;
  resume?: true;
}

interface MapCommand extends MapCommandOptions {
  script: string;
  /** Path of a file; stdin by default. */
  inputs: string | undefined;
}

/** Runs the task of a script for each input. Checks the whole command before it leases a browser. */
export async function runMap(poolName: string, command: MapCommand, signal: AbortSignal): Promise<void> {
  const { out } = command;
  await using pool = await openPool(poolName, command);
  await checkOut(command);
  using inputs = await openInputs(command.inputs, signal);
  using report = await MapReport.open(out);
  signal.addEventListener('abort', () => report.note(INTERRUPTED), { once: true });
  const outcomes = mapPooledBrowsers(pool, inputs.lines, await loadTask(command.script), {
    ...optionsOf(command),
    ...listenersOf(report, command),
    connector: await loadConnector(command.library),
    total: inputs.total,
    signal,
  });
  let isComplete = false;
  try {
    for await (const outcome of outcomes) if (out === undefined) await printOutcome(outcome);
    isComplete = true;
  } finally {
    report.end(isComplete);
  }
  if (report.failed > 0) throw new ExitStatus(EXIT.failed);
}

const INTERRUPTED = 'Stopping the tasks and releasing the browsers. A second signal does not wait.';

/** Refuses to mix the results of two jobs in one file. */
async function checkOut({ out, resume }: MapCommand): Promise<void> {
  if (out === undefined) {
    if (resume) throw new CliError('--resume needs --out, the file with the earlier results.', EXIT.usage);
    return;
  }
  const file = await stat(out).catch(() => undefined);
  if (resume || !file?.isFile() || file.size === 0) return;
  throw new CliError(
    `${out} is not empty. Pass --resume to continue its job, or name another file.`,
    EXIT.usage,
  );
}

function optionsOf(command: MapCommand): MapOptions {
  const { script: _script, inputs: _inputs, baseUrl: _baseUrl, library: _library, ...options } = command;
  const { tag: tags, out: checkpoint, resume: _resume, ...same } = options;
  return { ...same, tags, checkpoint, pollTimeout: POLL_TIMEOUT };
}

function listenersOf(
  report: MapReport,
  { acquireTimeout }: MapCommand,
): Pick<MapOptions, 'onEvent' | 'onProgress'> {
  const log = createLeaseLog(acquireTimeout, report.note);
  return {
    onEvent: (event) => {
      // A pool smaller than --concurrency is worth no message while other leases work.
      if (event.type !== 'waiting' || event.error || report.leases === 0) log(event);
      if (event.type === 'replays') report.addReplays(event);
    },
    onProgress: (progress) => report.show(progress),
  };
}

/** Loads the library now: a missing library must fail before a browser is leased. */
async function loadConnector(library: MapCommandOptions['library']): Promise<Connector> {
  const connector = library === 'playwright' ? playwright() : puppeteer();
  await connector.load();
  return connector;
}

/** Prints an outcome on stdout. Resolves when the reader is ready for the next outcome. */
async function printOutcome(outcome: Outcome<string, unknown>): Promise<void> {
  let isReady: boolean;
  try {
    isReady = printJson(recordOf(outcome));
  } catch (cause) {
    throw new CliError(`The result for ${outcome.input} can't be written as JSON.`, EXIT.failed, { cause });
  }
  if (!isReady) await once(process.stdout, 'drain');
}
