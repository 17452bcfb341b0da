import { Option, type Command } from 'commander';
import { mapPooledBrowsers } from '../jobs/map-pooled-browsers.js';
import { recordOfOutcome } from '../jobs/outcome.js';
import { returningData } from '../jobs/task-value.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import { INPUT_FORMATS } from './input-formats.js';
import type { Interruption } from './interruption.js';
import { ANY_INPUT, openInputs, readInputCheck, withHosts, type InputCheck } from './map-inputs.js';
import { checkpointOf, isUsed, openOut, printRecord, writeTable } from './map-out.js';
import { MapReport } from './map-report.js';
import {
  ABOUT_TOKEN,
  addPoolAndArguments,
  choice,
  isScriptFirst,
  separatePool,
  wholeNumberArgument,
} from './options.js';
import { openPools } from './service.js';
import {
  ABOUT_REDIS,
  addTaskOptions,
  checkArtifacts,
  loadTask,
  QUEUE_WAIT,
  settingsOf,
  type MapCommand,
} from './task-command.js';

export function define(command: Command, { signal }: Interruption): void {
  addPoolAndArguments(
    addTaskOptions(command, { leastConcurrency: 0 }),
    ['<script>', 'a module whose default export is the task'],
    ['[inputs]', 'file of inputs: lines, JSON lines or CSV; stdin by default, or with -'],
  )
    .description('Runs the task of a script for each input of a file, on browsers of a pool.')
    .addOption(
      new Option('--input-format <name>', 'format of the inputs (default: by the name of the file)').choices(
        INPUT_FORMATS,
      ),
    )
    .option('--retries <n>', 'retries of a task that failed', wholeNumberArgument(0), 0)
    .option(
      '--stop-after-failures <n>',
      'number of failed inputs at which the job stops',
      wholeNumberArgument(1),
    )
    .option('--out <file>', 'file for the results, instead of stdout')
    .addOption(choice('--format <name>', 'format of the results; csv needs --out', ['jsonl', 'csv']))
    .option('--resume', 'continue the job whose results are in --out')
    .option('--force', 'with --resume: accept other inputs than those of the earlier job')
    .addOption(new Option('--ordered', 'results in the order of the inputs; only on stdout').conflicts('out'))
    .addOption(
      new Option('--queue <name>', 'a queue in Redis, on which other machines can work too').conflicts([
        'ordered',
        'force',
        'stopAfterFailures',
      ]),
    )
    .addHelpText('after', HELP)
    .action(async () => {
      const [pool, script, inputs] = separatePool(command, 'script', isScriptFirst);
      const given: MapCommand = { ...command.opts(), script, inputs };
      if (given.queue === undefined) return map(pool, given, signal);
      if (command.getOptionValueSource('acquireTimeout') === 'default') given.acquireTimeout = QUEUE_WAIT;
      return (await import('./queue-map.js')).mapByQueue(pool, given, given.queue, signal);
    });
}

const HELP = `
The default export of the script is called with { input, index, attempt, page, context, browser,
session, signal } and returns the value for the result, or a promise of it:

  export default async ({ input, page }) => {
    await page.goto(input);
    return { title: await page.title() };
  };

The script may be in TypeScript, with Node 22.18 or newer, or where tsx is installed. It may export
shouldRetry(error, { input, index, attempt }), which returns whether a failed attempt is retried;
contextOptions: the library's options of the task's context (storage state, locale, viewport, …),
or a function (input, index) that returns them; and hostOf(input), which names the host of an input
that is not a URL.

With --host-concurrency and --host-delay, tasks for other hosts go on while a host is busy. A task
can delay its host: throw Object.assign(new Error('busy'), { retryAfter: 30_000 }), in ms. The
progress names the slowest host. With --queue, the limits hold for each worker.

Results are lines of JSON, written as the tasks end: {"status":"fulfilled","index":0,"input":"…",
"attempts":1,"sessionId":"…","value":…} or {"status":"rejected",…,"reason":{"name":…,"message":…}}.
The console output of the script goes to stderr, so that stdout contains only results.

With --out, a result is in the file before the next task of its browser begins. After any end of the
job, the same command with --resume continues it: inputs that succeeded are skipped, inputs that
failed run again, and the file has one result per input. The inputs must be the same; there may be
more at the end.

Inputs are the lines of a file (each a text), JSON lines (.jsonl, .ndjson: each a JSON value) or CSV
(.csv: each row below the header is an object with the names of the columns; its fields are texts).
--input-format is for other names, and for stdin, whose inputs are lines by default. Blank lines are
skipped, and fields that a row lacks at its end are empty. A CSV field in quotes may have commas,
line breaks and, doubled, quotes. For the limits of hosts, an object needs a url, or hostOf. A file
is read as a whole before a browser is leased: a line that is no input ends the command with exit
code 2, the file and the line. A line of stdin is read when a task needs it, so stdin may be
endless; there, a wrong line ends the job before its task starts. Text is UTF-8, or UTF-16 with a
byte order mark.

With --format csv, the results are in <file>.jsonl while the job runs, for --resume. At its end,
<file> is written: a row for each result in the order of the inputs, and a column for each path in
the results, such as value.title. A text that a spreadsheet would run as a formula (it begins with
=, +, -, @, a tab or a carriage return) gets an apostrophe before it. Numbers stay numbers.

Each result has the sessionId of its browser. With --replays record, it also has the links of its
recording: "replays":["https://…"]; the videos are complete after the release. At the end, the
links of all recordings are printed on stderr. Everybody with a link can watch the recording: keep
the results and the log as private as the videos.

With --artifacts, each failed attempt has a folder in <folder> with console.jsonl (the latest
console messages, page errors and failed requests), screenshot.png and, with --trace, trace.zip for
npx playwright show-trace. The result has the paths: "artifacts":["…"]. Nothing is deleted there.
A trace contains cookies and passwords.

Ctrl-C stops the running tasks, which then have no result, and releases the browsers. It waits up to
5 s for the answer to an acquire request, to release a browser in it. Press Ctrl-C again to quit.

With --queue, the inputs go through a queue of BullMQ, and "pooled-browser work" on any number of
other machines runs the task too. This command adds the inputs, works, and collects the results.
Only a part of the inputs is in Redis and in memory at a time. After Ctrl-C, or if this process was
killed, the same command with --resume continues; meanwhile, the others work. An input whose worker
was killed runs again: a task may run more than once. One command at a time collects from a queue.
--retries and --task-timeout hold in every worker; all other flags are those of this command.
--acquire-timeout is then 1m by default; with --concurrency 0, this command only collects.
${ABOUT_REDIS}

${ABOUT_TOKEN}

With --stop-after-failures, no more tasks start after that many failed inputs, and the running tasks
end as usual. Exit code 1 means that inputs failed, or that the job could not continue.

Examples:
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl --resume
  $ pooled-browser map scrapers title.ts urls.txt --out titles.csv --format csv
  $ pooled-browser map scrapers price.mjs products.csv --out prices.jsonl
  $ pooled-browser map scrapers title.mjs urls.txt --concurrency 8 --retries 2 --task-timeout 30s
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl --queue titles
  $ ./list-urls | pooled-browser map scrapers title.mjs | jq -r .value.title`;

/** Runs the task of a script for each input. Checks the whole command before it leases a browser. */
async function map(poolList: string, command: MapCommand, signal: AbortSignal): Promise<void> {
  const { out, format, retries, stopAfterFailures, ordered } = command;
  if (command.concurrency === 0)
    throw new CliError('--concurrency 0 needs --queue: other processes run the tasks.', EXIT.usage);
  const checkpoint = checkpointOf(command);
  await using pools = await openPools(poolList, command);
  await using results = await openOut(command);
  await checkArtifacts(command);
  const { task, options } = await loadTask(command);
  const check = withHosts(await inputCheckOf(command), { ...command, ...options });
  using inputs = await openInputs(command, signal, check);
  using report = new MapReport(out, { signal, text: 'Stopping the tasks' });
  const outcomes = mapPooledBrowsers(pools, inputs.values, returningData(task), {
    ...settingsOf(command, report),
    retries,
    stopAfterFailures,
    ordered,
    checkpoint,
    ...options,
    total: inputs.total,
    signal,
  });
  try {
    for await (const outcome of outcomes) {
      const record = recordOfOutcome(outcome);
      report.add(record, outcome.artifacts);
      if (checkpoint === undefined) await printRecord(record);
    }
    results.isComplete = true;
  } finally {
    const { isComplete } = results;
    if (format === 'csv' && (isComplete || report.finished > 0)) await writeTable(checkpoint!, out!, report);
    report.end(isComplete, command.artifacts);
  }
  if (report.hasFailed) throw new ExitStatus(EXIT.failed);
}

async function inputCheckOf(command: MapCommand): Promise<InputCheck> {
  const checkpoint = checkpointOf(command);
  const isChecked = command.resume && !command.force && (await isUsed(checkpoint!));
  return isChecked ? readInputCheck(checkpoint!) : ANY_INPUT;
}
