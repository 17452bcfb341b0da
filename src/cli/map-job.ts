import { once } from 'node:events';
import { access, constants, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Connector } from '../connect/connector.js';
import { playwright } from '../connect/playwright.js';
import { puppeteer } from '../connect/puppeteer.js';
import { prepareFolder } from '../lease/artifact-files.js';
import { mapPooledBrowsers } from '../map/map-pooled-browsers.js';
import type { MapOptions } from '../map/options.js';
import { recordOf, type Outcome } from '../map/outcome.js';
import { returningData } from '../map/task-value.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import { createLeaseLog } from './lease.js';
import { writeCsv } from './map-csv.js';
import { openInputs, readInputCheck, type CheckInput } from './map-inputs.js';
import { MapReport } from './map-report.js';
import { loadScript } from './map-script.js';
import type { LeaseRequestOptions } from './options.js';
import { openPool, POLL_TIMEOUT } from './service.js';
import { printJson } from './terminal.js';

type MapFlag =
  | 'concurrency'
  | 'pagesPerLease'
  | 'tasksPerLease'
  | 'retries'
  | 'stopAfterFailures'
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
  format: 'jsonl' | 'csv';
  resume?: true;
  force?: true;
  /** Folder. */
  artifacts?: string;
  artifactsOn: 'failure' | 'always';
  trace?: true;
}

interface MapCommand extends MapCommandOptions {
  script: string;
  /** Path of a file; stdin by default. */
  inputs: string | undefined;
}

/** Runs the task of a script for each input. Checks the whole command before it leases a browser. */
export async function runMap(poolName: string, command: MapCommand, signal: AbortSignal): Promise<void> {
  const { out, format } = command;
  const checkpoint = checkpointOf(command);
  await using pool = await openPool(poolName, command);
  await checkOut(command);
  await checkArtifacts(command);
  using inputs = await openInputs(command.inputs, signal, await inputCheckOf(command));
  const { task, shouldRetry } = await loadScript(command.script);
  using report = new MapReport(out);
  signal.addEventListener('abort', () => report.note(INTERRUPTED), { once: true });
  const outcomes = mapPooledBrowsers(pool, inputs.lines, returningData(task), {
    ...optionsOf(command),
    ...listenersOf(report, command),
    checkpoint,
    shouldRetry,
    connector: await loadConnector(command.library),
    total: inputs.total,
    signal,
  });
  let isComplete = false;
  try {
    for await (const outcome of outcomes) {
      report.add(outcome);
      if (checkpoint === undefined) await printOutcome(outcome);
    }
    isComplete = true;
  } finally {
    if (format === 'csv' && (isComplete || report.done > 0)) await writeTable(checkpoint!, out!, report);
    report.end(isComplete, command.artifacts);
  }
  if (report.hasFailed) throw new ExitStatus(EXIT.failed);
}

const INTERRUPTED = 'Stopping the tasks and releasing the browsers. Press Ctrl-C again to quit immediately.';

/** The file that stores the results while the job runs. */
function checkpointOf({ out, format }: MapCommand): string | undefined {
  return format === 'csv' && out !== undefined ? `${out}.jsonl` : out;
}

/** Refuses to mix the results of two jobs in one file, and a file that can't be written. */
async function checkOut(command: MapCommand): Promise<void> {
  const { out, format, resume, force } = command;
  if (force && !resume) throw new CliError('--force needs --resume.', EXIT.usage);
  if (out === undefined) {
    if (resume) throw new CliError('--resume needs --out, the file with the earlier results.', EXIT.usage);
    if (format === 'csv') throw new CliError('--format csv needs --out, a file for the results.', EXIT.usage);
    return;
  }
  const checkpoint = checkpointOf(command)!;
  const canResume = resume && (checkpoint === out || (await isUsed(checkpoint)));
  for (const path of new Set([out, checkpoint])) {
    await expectWritable(path);
    if (canResume || !(await isUsed(path))) continue;
    throw new CliError(
      `${path} is not empty. Pass --resume to continue its job, or name another file.`,
      EXIT.usage,
    );
  }
}

async function checkArtifacts({ artifacts, trace, artifactsOn }: MapCommand): Promise<void> {
  if (artifacts !== undefined) return prepareFolder(artifacts, '--artifacts');
  if (trace) throw new CliError('--trace needs --artifacts, a folder for the traces.', EXIT.usage);
  if (artifactsOn === 'always') throw new CliError('--artifacts-on needs --artifacts, a folder.', EXIT.usage);
}

async function isUsed(path: string): Promise<boolean> {
  const file = await stat(path).catch(() => undefined);
  return file?.isFile() === true && file.size > 0;
}

async function expectWritable(path: string): Promise<void> {
  try {
    const exists = await stat(path).catch(() => undefined);
    if (exists) await (await open(path, 'r+')).close();
    else await access(dirname(path), constants.W_OK);
  } catch (cause) {
    throw new CliError(`--out ${path} can't be written: ${(cause as Error).message}.`, EXIT.usage, { cause });
  }
}

async function inputCheckOf(command: MapCommand): Promise<CheckInput> {
  const checkpoint = checkpointOf(command);
  const isChecked = command.resume && !command.force && (await isUsed(checkpoint!));
  return isChecked ? readInputCheck(checkpoint!) : () => {};
}

/** Never rejects: an error that ended the job takes precedence. */
async function writeTable(checkpoint: string, out: string, report: MapReport): Promise<void> {
  await writeCsv(checkpoint, out).catch((error: Error) => {
    report.fail(`${out} can't be written: ${error.message}. The results are in ${checkpoint}.`);
  });
}

function optionsOf(command: MapCommand): MapOptions {
  const { script: _script, inputs: _inputs, baseUrl: _baseUrl, library: _library, ...options } = command;
  const { tag: tags, out: _out, format: _format, resume: _resume, force: _force, ...rest } = options;
  const { artifacts: folder, artifactsOn: on, trace = false, ...same } = rest;
  const artifacts = folder === undefined ? undefined : { folder, on, trace };
  return { ...same, artifacts, tags, pollTimeout: POLL_TIMEOUT };
}

function listenersOf(
  report: MapReport,
  { acquireTimeout }: MapCommand,
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
async function loadConnector(library: MapCommandOptions['library']): Promise<Connector> {
  const connector = library === 'playwright' ? playwright() : puppeteer();
  await connector.load();
  return connector;
}

/** Prints an outcome on stdout. Resolves when the reader is ready for the next outcome. */
async function printOutcome(outcome: Outcome<string, unknown>): Promise<void> {
  if (!printJson(recordOf(outcome))) await once(process.stdout, 'drain');
}
