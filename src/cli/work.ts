import type { Command } from 'commander';
import { readQueueName } from '../jobs/queue/options.js';
import type { Interruption } from './interruption.js';
import { MapReport } from './map-report.js';
import { ABOUT_TOKEN, addPoolAndArguments, isScriptFirst, separatePool } from './options.js';
import { openPools } from './service.js';
import {
  ABOUT_REDIS,
  addTaskOptions,
  checkArtifacts,
  loadTask,
  QUEUE_LIBRARIES,
  redisOf,
  workSettingsOf,
  type TaskCommandOptions,
} from './task-command.js';
import { counted } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addPoolAndArguments(addTaskOptions(command, { idleTimeout: '5s', acquireTimeout: '1m' }), [
    '<script>',
    'a module whose default export is the task',
  ])
    .description('Runs the task of a script for the inputs of a queue, until it is stopped.')
    .requiredOption('--queue <name>', 'the queue of "pooled-browser map --queue"')
    .addHelpText('after', HELP)
    .action(async () => {
      const [pool, script] = separatePool(command, 'script', isScriptFirst);
      return work(pool, { ...command.opts(), script }, signal);
    });
}

const HELP = `
Any number of these workers, on any machines, take inputs from the queue that "pooled-browser map
--queue" or the function enqueueInputs fills. "map" (or collectOutcomes) collects the results. The
script is the same as for "map"; see "pooled-browser map --help". The limits of hosts hold for each
worker: ten workers with --host-concurrency 1 run up to ten tasks at once for a host.

--retries and --task-timeout of "map" go with each input in the queue, so they hold in every worker.
All other flags are those of each worker: pass them to "work", too.

A worker leases browsers while the queue has inputs, and waits for the next ones. An input that gets
no browser within --acquire-timeout goes back to the queue, for workers that have one.

Ctrl-C stops the running tasks, returns their inputs to the queue and releases the browsers. If a
worker is killed, other workers run its inputs again after about 40 s, and a guard process releases
its browsers. Running a task twice must do no harm.
${ABOUT_REDIS}
${ABOUT_TOKEN}

Examples:
  $ pooled-browser work scrapers title.mjs --queue titles
  $ pooled-browser work scrapers title.mjs --queue titles --concurrency 8 --pages-per-lease 2
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl --queue titles`;

interface WorkCommand extends TaskCommandOptions {
  queue: string;
}

/** Works for a queue until the signal aborts. Checks the whole command before it takes an input. */
async function work(poolList: string, command: WorkCommand, signal: AbortSignal): Promise<void> {
  const queueName = readQueueName(command.queue);
  const connection = redisOf(command);
  await using pools = await openPools(poolList, command);
  await checkArtifacts(command);
  const { task, options } = await loadTask(command, QUEUE_LIBRARIES);
  using report = new MapReport(`the queue ${queueName}`, {
    signal,
    text: 'Returning the running tasks to the queue',
  });
  report.note(`Working for the queue ${queueName}. Stop with Ctrl-C.`);
  try {
    const { workPooledBrowsers } = await import('../jobs/queue/work.js');
    const { succeeded, failed } = await workPooledBrowsers(queueName, pools, task, {
      ...workSettingsOf(command, report),
      ...options,
      connection,
      signal,
    });
    report.endWith(`Finished ${counted(succeeded + failed, 'input')}, of which ${failed} failed.`);
  } catch (error) {
    report.endWith('The worker has stopped because of an error.');
    throw error;
  }
}
