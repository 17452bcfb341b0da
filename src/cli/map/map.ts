import { playwright } from '../../connect/playwright.js';
import { puppeteer } from '../../connect/puppeteer.js';
import type { Connector, Isolation } from '../../connect/connector.js';
import type { Protocol } from '../../connect/protocol.js';
import { mapPooledBrowsers } from '../../map/map-pooled-browsers.js';
import type { MapOptions } from '../../map/options.js';
import { ExitStatus } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';
import { interruptible } from '../interruptible.js';
import { LeaseNotes } from '../lease/lease-notes.js';
import type { LeaseRequestOptions } from '../lease/options.js';
import { openPool } from '../open-pool.js';
import { POLL_TIMEOUT } from '../poll-timeout.js';
import { Display } from './display.js';
import { openInputs } from './inputs.js';
import { loadTask } from './load-task.js';
import { checkOut, printOutcome } from './results.js';
import { Summary } from './summary.js';

/** What the command line says about `map`. */
export interface MapCommandOptions extends LeaseRequestOptions {
  concurrency: number;
  pagesPerLease: number;
  tasksPerLease?: number;
  retries: number;
  /** Milliseconds. */
  taskTimeout?: number;
  isolation: Isolation;
  library: 'playwright' | 'puppeteer';
  protocol: Protocol;
  release: 'auto' | 'reuse' | 'destroy';
  replays: 'list' | 'record' | 'off';
  out?: string;
  resume?: true;
  ordered?: true;
}

interface MapCommand extends MapCommandOptions {
  /** Path of a module. */
  script: string;
  /** Path of a file; stdin without one. */
  inputs: string | undefined;
}

/** Runs a script's task for each input. Whatever can be wrong with the command is found before anything is leased. */
export async function map(poolName: string, command: MapCommand): Promise<void> {
  const summary = new Summary(command.out);
  await interruptible(async (signal) => {
    await using pool = openPool(poolName, command);
    await checkOut(command);
    using inputs = await openInputs(command.inputs, signal);
    using display = await Display.open({ hasResults: command.out === undefined });
    signal.addEventListener('abort', () => display.note(CALLED_OFF), { once: true });
    const outcomes = mapPooledBrowsers(pool, inputs.lines, await loadTask(command.script), {
      ...optionsOf(command),
      ...listeners(command, display, summary),
      connector: await loadConnector(command.library),
      total: inputs.total,
      signal,
    });
    try {
      for await (const outcome of outcomes) if (command.out === undefined) await printOutcome(outcome);
      summary.isWhole = true;
    } finally {
      display.end();
      summary.lines.forEach(display.note);
    }
  });
  if (summary.progress.failed > 0) throw new ExitStatus(EXIT.failed);
}

const CALLED_OFF = 'Ends its tasks and gives the browsers back. A second signal does not wait.';

/** Loaded now: a library that is missing is to be known before anything is leased. */
async function loadConnector(library: MapCommandOptions['library']): Promise<Connector> {
  const connector = library === 'playwright' ? playwright() : puppeteer();
  await connector.load();
  return connector;
}

function optionsOf(command: MapCommand): MapOptions {
  const { script: _script, inputs: _inputs, baseUrl: _baseUrl, library: _library, ...options } = command;
  const { tag: tags, out: checkpoint, resume: _resume, ...same } = options;
  return { ...same, tags, checkpoint, pollTimeout: POLL_TIMEOUT };
}

function listeners(
  { acquireTimeout }: MapCommand,
  display: Display,
  summary: Summary,
): Pick<MapOptions, 'onEvent' | 'onProgress'> {
  const notes = new LeaseNotes(acquireTimeout, display.note);
  return {
    onEvent: (event) => {
      // As long as others work, a pool that is smaller than --concurrency is nothing to tell of.
      if (event.type !== 'waiting' || event.error || summary.progress.leases === 0) notes.add(event);
      if (event.type === 'replays') summary.addReplays(event);
    },
    onProgress: (progress) => {
      summary.progress = progress;
      display.show(progress);
    },
  };
}
