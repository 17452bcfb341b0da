import { Option, type Command } from 'commander';
import { time, wholeNumber } from '../arguments.js';
import { addLeaseRequestOptions } from '../lease/options.js';
import { ABOUT_TOKEN } from '../service-option.js';
import type { MapCommandOptions } from './map.js';

export function addMap(program: Command): void {
  const command = program
    .command('map')
    .summary('run a task for each line of a file, on several browsers')
    .description("Runs a script's task for each line of a file, on browsers of a pool.")
    .argument('<pool>', 'id or name of the pool')
    .argument('<script>', 'a module whose default export is the task')
    .argument('[inputs]', 'file of inputs, one a line; without it, or with -, they come from stdin');
  addTaskOptions(addLeaseRequestOptions(command))
    .addHelpText('after', HELP)
    .action(async (pool: string, script: string, inputs: string | undefined, options: MapCommandOptions) =>
      (await import('./map.js')).map(pool, { script, inputs, ...options }),
    );
}

function addTaskOptions(command: Command): Command {
  return command
    .option('--concurrency <n>', 'browsers to lease at once', wholeNumber(1), 4)
    .option('--pages-per-lease <n>', 'tasks at once in one browser', wholeNumber(1), 1)
    .option('--tasks-per-lease <n>', 'tasks after which a browser is replaced by another', wholeNumber(1))
    .option('--retries <n>', 'how often a task that failed is tried again', wholeNumber(0), 0)
    .option('--task-timeout <time>', 'limit of each attempt: 500ms, 30s, 5m', time)
    .addOption(
      new Option('--isolation <kind>', 'what keeps a task apart from the next in its browser')
        .choices(['context', 'storage', 'none'])
        .default('context'),
    )
    .addOption(
      new Option('--library <name>', 'what the task drives its page with')
        .choices(['playwright', 'puppeteer'])
        .default('playwright'),
    )
    .addOption(
      new Option('--protocol <name>', 'what the library speaks to the browser; bidi: Puppeteer only')
        .choices(['cdp', 'bidi'])
        .default('cdp'),
    )
    .addOption(
      new Option('--release <choice>', 'at the end: auto keeps a browser that is healthy and tidied up')
        .choices(['auto', 'reuse', 'destroy'])
        .default('auto'),
    )
    .addOption(
      new Option('--replays <choice>', 'links of the recordings, on stderr; record: make one of each lease')
        .choices(['list', 'record', 'off'])
        .default('list'),
    )
    .option('--out <file>', 'where the results go, instead of stdout')
    .option('--resume', 'go on with the job whose results are in --out')
    .addOption(
      new Option('--ordered', 'results in the order of the inputs; on stdout only').conflicts('out'),
    );
}

const HELP = `
The script's default export is called with { input, index, attempt, page, context, browser, session,
signal }, and returns what is to be kept of the page, or a promise of it:

  export default async ({ input, page }) => {
    await page.goto(input);
    return { title: await page.title() };
  };

Results are lines of JSON: {"status":"fulfilled","index":0,"input":"…","attempts":1,"sessionId":"…",
"value":…}, or {"status":"rejected",…,"reason":{"name":…,"message":…}}. They are written as the
tasks end. What the script prints with console goes to stderr, so that stdout has nothing but
results.

With --out a result is in the file before the next task of its browser begins: however the job
ends, the same command with --resume goes on. Inputs that succeeded are not run again; those that
failed are. Inputs are read as they are needed, so stdin may go on for as long as it likes.

Each result has the sessionId of its browser. With --replays record, it has the links to the
recording, too, as soon as that has begun: "replays":["https://…"]; the films are written when the
browsers are back. At the end, the links to all recordings stand on stderr, by session. A link
lets in whoever has it: keep the results, and the log, as private as the films.

Ctrl-C ends the tasks that run, which then have no result, and gives the browsers back; while a
browser is being asked for, that takes up to 5 s: one that is still granted is given back, too. A
second Ctrl-C does not wait.

With --name, the leases are called <name>-1, <name>-2, …
${ABOUT_TOKEN}

Exit code 1 says that some of the inputs failed, or that the job could not go on.

Examples:
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl
  $ pooled-browser map scrapers title.mjs urls.txt --out titles.jsonl --resume
  $ pooled-browser map scrapers title.mjs urls.txt --concurrency 8 --retries 2 --task-timeout 30s
  $ ./list-urls | pooled-browser map scrapers title.mjs | jq -r .value.title`;
