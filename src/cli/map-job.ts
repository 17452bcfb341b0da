import { once } from 'node:events';
import { mapPooledBrowsers } from '../map/map-pooled-browsers.js';
import type { MapOptions } from '../map/options.js';
import { recordOf, type OutcomeRecord } from '../map/outcome.js';
import { returningData } from '../map/task-value.js';
import { EXIT, ExitStatus } from './errors.js';
import { openInputs, readInputCheck, type CheckInput } from './map-inputs.js';
import { checkOut, checkpointOf, isUsed, writeTable, type OutOptions } from './map-out.js';
import { MapReport } from './map-report.js';
import { loadScript } from './map-script.js';
import { openPool } from './service.js';
import { checkArtifacts, listenersOf, loadConnector, settingsOf } from './task-job.js';
import type { TaskOptions } from './task-options.js';
import { printJson } from './terminal.js';

/** The options of `mapPooledBrowsers` that have a flag of the same name, and those of the command line. */
export interface MapCommandOptions
  extends TaskOptions, OutOptions, Pick<MapOptions, 'retries' | 'stopAfterFailures' | 'ordered'> {
  queue?: string;
  redis?: string;
}

export interface MapCommand extends MapCommandOptions {
  script: string;
  /** Path of a file; stdin by default. */
  inputs: string | undefined;
}

/** Runs the task of a script for each input. Checks the whole command before it leases a browser. */
export async function runMap(poolName: string, command: MapCommand, signal: AbortSignal): Promise<void> {
  const { out, format, retries, stopAfterFailures, ordered } = command;
  const checkpoint = checkpointOf(command);
  await using pool = await openPool(poolName, command);
  await checkOut(command);
  await checkArtifacts(command);
  using inputs = await openInputs(command.inputs, signal, await inputCheckOf(command));
  const { task, options } = await loadScript(command.script);
  using report = new MapReport(out);
  signal.addEventListener('abort', () => report.note(INTERRUPTED), { once: true });
  const outcomes = mapPooledBrowsers(pool, inputs.lines, returningData(task), {
    ...settingsOf(command),
    ...listenersOf(report, command),
    retries,
    stopAfterFailures,
    ordered,
    checkpoint,
    ...options,
    connector: await loadConnector(command.library),
    total: inputs.total,
    signal,
  });
  let isComplete = false;
  try {
    for await (const outcome of outcomes) {
      const record = recordOf(outcome);
      report.add(record, outcome.artifacts);
      if (checkpoint === undefined) await printRecord(record);
    }
    isComplete = true;
  } finally {
    if (format === 'csv' && (isComplete || report.done > 0)) await writeTable(checkpoint!, out!, report);
    report.end(isComplete, command.artifacts);
  }
  if (report.hasFailed) throw new ExitStatus(EXIT.failed);
}

export const INTERRUPTED =
  'Stopping the tasks and releasing the browsers. Press Ctrl-C again to quit immediately.';

async function inputCheckOf(command: MapCommand): Promise<CheckInput> {
  const checkpoint = checkpointOf(command);
  const isChecked = command.resume && !command.force && (await isUsed(checkpoint!));
  return isChecked ? readInputCheck(checkpoint!) : () => {};
}

/** Prints a result on stdout. Resolves when the reader is ready for the next result. */
export async function printRecord(record: OutcomeRecord): Promise<void> {
  if (!printJson(record)) await once(process.stdout, 'drain');
}
