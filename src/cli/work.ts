import type { Command } from 'commander';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, timeout } from './options.js';
import { ABOUT_REDIS, addTaskOptions, redisOption } from './task-options.js';
import type { WorkCommandOptions } from './work-job.js';

export function define(command: Command, { signal }: Interruption): void {
  addTaskOptions(command)
    .description('Runs the task of a script for the inputs of a queue, until it is stopped.')
    .argument('<pool>', 'id or name of the pool')
    .argument('<script>', 'a module whose default export is the task')
    .requiredOption('--queue <name>', 'the queue of "pooled-browser map --queue"')
    .addOption(redisOption())
    .addOption(
      timeout('--idle-timeout <time>', 'time without inputs after which a browser is released', '5s'),
    )
    .addHelpText('after', HELP)
    .action(async (pool: string, script: string, options: WorkCommandOptions) =>
      (await import('./work-job.js')).runWork(pool, { script, ...options }, signal),
    );
}

const HELP = `
Any number of these workers, on any machines, take inputs from the queue that "pooled-browser map
--queue" or the function enqueueInputs fills. "map" (or collectOutcomes) collects the results. The
script is the same as for "map"; see "pooled-browser map --help". The limits of hosts hold for each
worker: ten workers with --host-concurrency 1 run up to ten tasks at once for a host.

A worker leases browsers while the queue has inputs, and waits for the next ones. If the pool has no
browser for a minute, an input goes back to the queue, for workers that have one.

Ctrl-C stops the running tasks, returns their inputs to the queue and releases the browsers. If a
worker is killed, other workers run its inputs again after about 40 s, and a guard process releases
its browsers. Running a task twice must do no harm.
${ABOUT_REDIS}
${ABOUT_TOKEN}

Examples:
  $ pooled-browser work scrapers title.mjs --queue titles
  $ pooled-browser work scrapers title.mjs --queue titles --concurrency 8 --pages-per-lease 2
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl --queue titles`;
