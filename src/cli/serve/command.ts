import { InvalidArgumentError, type Command } from 'commander';
import { numberAboveZero, wholeNumber } from '../arguments.js';
import type { NamedPool, ServeOptions } from './serve.js';

export function addServe(program: Command): void {
  program
    .command('serve')
    .summary('serve pools of browsers of this machine')
    .description("Serves the pool service's interface on 127.0.0.1, over Chromium on this machine.")
    .option('--port <port>', 'TCP port; 0 for any free one', wholeNumber(0, 65_535), 0)
    .option('--pool <name[=size]>', 'a pool; can be given several times (default: "default")', addPool)
    .option('--size <browsers>', 'browsers in each pool that names no size', wholeNumber(1), 2)
    .option('--headful', 'show the windows of the browsers')
    .option('--timeout-seconds <n>', 'seconds without a connection that end a lease', numberAboveZero, 60)
    .option('--start-url <url>', 'what each new browser opens')
    .option('--executable-path <path>', 'the Chrome or Chromium to run')
    .option('--json', 'print JSON, one line an event')
    .addHelpText('after', HELP)
    .action(async (options: ServeOptions) => (await import('./serve.js')).serve(options));
}

const HELP = `
The access token is a random one, printed once at the start, unless the environment variable
BROWSER_POOL_ACCESS_TOKEN holds one: then that one is required, and not printed.
Ctrl-C ends it: browsers, profiles and sockets are gone afterwards. A second Ctrl-C does not wait.

Examples:
  $ pooled-browser serve
  $ pooled-browser serve --pool tests=4 --pool scrapers=2 --port 4400
  $ pooled-browser serve --size 1 --headful --start-url https://example.com
  $ pooled-browser serve --json | jq -r .type`;

function addPool(text: string, pools: NamedPool[] = []): NamedPool[] {
  const [, name, size] = /^([a-zA-Z0-9._-]{1,255})(?:=(.*))?$/.exec(text) ?? [];
  if (name === undefined) {
    throw new InvalidArgumentError(
      'A name has 1 to 255 of letters, digits, ".", "_", "-"; =size may follow.',
    );
  }
  return [...pools, { name, ...(size !== undefined && { size: wholeNumber(1)(size) }) }];
}
