import { InvalidArgumentError, Option, type Command } from 'commander';
import { SECRET_URLS, SECRET_VARIABLES } from '../shared/environment.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import type { Interruption } from './interruption.js';
import {
  ABOUT_TOKEN,
  addLeaseOptions,
  addPoolAndArguments,
  addReachOptions,
  separatePool,
  time,
} from './options.js';
import type { ExecOptions } from './run-exec.js';

export function define(command: Command, interruption: Interruption): void {
  suggestSeparator(command);
  addPoolAndArguments(
    addReachOptions(addLeaseOptions(command)),
    ['<command>', 'program to run, in any language'],
    ['[args...]', 'arguments of the program'],
  )
    .description('Leases a browser, runs a command with its addresses in the environment, and releases it.')
    .usage('[options] <pool> -- <command> [args...]')
    .option('--local-endpoint', 'open an address on this machine that needs no secret: see below')
    .option('--name <name>', 'name of the lease; not with --playwright')
    .option('--lazy', 'lease the browser when the command connects for the first time: see below')
    .addOption(
      new Option('--playwright', 'a suite of Playwright Test runs on leased browsers: see below').conflicts([
        'lazy',
        'localEndpoint',
        'name',
      ]),
    )
    .option(
      '--idle-timeout <time>',
      'with --lazy: release the browser after this time without a command',
      time,
    )
    .option('--pass-env <name>', 'pass a variable with a secret, too: see below; can be repeated', secretName)
    .addHelpText('after', HELP)
    .action(async () => {
      const [pool, ...whole] = separatePool(command, 'command', isSeparatorFirst);
      const options = command.opts<ExecOptions>();
      if (options.idleTimeout !== undefined && !options.lazy)
        throw new CliError('--idle-timeout needs --lazy.', EXIT.usage);
      const { runExec } = await import('./run-exec.js');
      const code = await runExec(pool, whole, options, interruption);
      if (code !== EXIT.ok) throw new ExitStatus(code);
    });
}

function secretName(name: string, earlier: readonly string[] = []): string[] {
  if (SECRET_VARIABLES.includes(name) || SECRET_URLS.includes(name)) return [...earlier, name];
  throw new InvalidArgumentError(
    `The command gets each variable but ${[...SECRET_VARIABLES, ...SECRET_URLS].join(', ')}.`,
  );
}

/** Whether all arguments stand behind `--`. */
function isSeparatorFirst(args: readonly string[]): boolean {
  const separator = process.argv.indexOf('--');
  return separator >= 0 && process.argv.length - 1 - separator === args.length;
}

/** Without `--`, an option of the program to run looks like one of this command. */
function suggestSeparator(command: Command): void {
  const inherited = command.configureOutput();
  command.configureOutput({
    outputError: (text, write) => {
      const isUnknown = /^error: unknown option \S+\s*$/.test(text);
      const isMissing = isUnknown && !process.argv.includes('--');
      inherited.outputError!(isMissing ? `${text.trim()}\n${SEPARATOR}` : text, write);
    },
  });
}

const SEPARATOR =
  'Put -- before the command, so that its options are not read as options of exec: pooled-browser exec POOL -- COMMAND';

const HELP = `
The command gets these environment variables, which only its user and root can read:
  BROWSER_POOL_CDP_WS_URL        WebSocket URL for Chrome DevTools Protocol, if the browser has it
  BROWSER_POOL_WEBDRIVER_WS_URL  WebSocket URL for WebDriver BiDi, if the service has one
  BROWSER_POOL_SESSION_ID        id of the session
  BROWSER_POOL_LIVE_VIEW_URL     page that shows the browser, if it has a window
  BROWSER_POOL_HANDOFF_URL       asks a person to use the browser: POST {"message": "Log in."}
The WebSocket URLs contain a secret. Do not pass them as arguments, which all users can read. For
programs that take the URL only as an argument, --local-endpoint opens a CDP address on 127.0.0.1
with a random path instead of the secret. It works while the command runs. The command finds it in
BROWSER_POOL_LOCAL_CDP_WS_URL, and in its arguments in place of {endpoint}.

The other variables are passed on, but no secrets of this library and of the services:
${namesInLines()}
Neither are REDIS_URL and BROWSER_POOL_BASE_URL, if they contain a password or a query. A command
that needs one, for example to call pooled-browser itself, gets it with --pass-env NAME.

With --expose-network localhost:3000, the browser reaches that server on this machine while the
command runs. The rules: localhost:3000, <loopback>, *.internal, 10.0.0.1, *, separated by commas.
Every page in the browser can send requests to these hosts, also pages of other sites.

With --allow-hosts example.com,*.example.com, the browser reaches only these hosts. The rules are
the same. The command gets addresses of this machine only, as with --lazy, and none for BiDi.

With --lazy, the command starts without a browser. All addresses lead to this machine, and the
browser is leased when the command connects for the first time; the session id and the live view are
not in the environment. Afterwards the browser is cleaned up and reused, unless --release is set.

With --playwright, the command is a suite of Playwright Test, which needs no change: each worker
leases a browser when it starts, and the browser is cleaned up when the worker ends. The command
gets PW_TEST_CONNECT_WS_ENDPOINT, which other Playwright clients can pass to chromium.connect();
{endpoint} in its arguments is the same address. It needs playwright-core 1.59 or newer in the
current folder. The links of the recordings, and of their list, are printed at the end, and how
many browsers were leased. Projects of Firefox or WebKit are refused there: run those of Chromium
with --project=NAME.
With --playwright, --lazy and --allow-hosts, --record failures is refused: nothing says there which
lease has failed. The fixtures of pooled-browser/playwright-test see it.
${ABOUT_TOKEN}

With --lifetime 10m, the browser is released after this time, also while the command runs: its
connections to the browser end, and the command goes on. A line on stderr says so one minute before.

The first signal is passed on to the command; a second one kills it. The browser is released however
the command ends, and with --release-on-crash also when this program is killed. Nothing cleans up
behind the command, so --release auto destroys the browser, except with --lazy, --playwright and
--allow-hosts. Use --release reuse only for commands that leave nothing behind in the browser.

Examples:
  $ pooled-browser exec scrapers -- python3 scrape.py
  $ pooled-browser exec scrapers --name nightly --release-on-crash -- ./nightly.sh
  $ pooled-browser exec agents -- sh -c \\
      'PLAYWRIGHT_MCP_CDP_ENDPOINT=$BROWSER_POOL_CDP_WS_URL npx @playwright/mcp'
  $ pooled-browser exec tests --playwright -- npx playwright test
  $ pooled-browser exec agents --lazy -- npx @playwright/mcp --cdp-endpoint {endpoint}`;

/** The names of the secret variables, in lines that fit a terminal. */
function namesInLines(): string {
  const lines = [''];
  for (const name of SECRET_VARIABLES) {
    const longer = `${lines.at(-1)}  ${name}`;
    if (longer.length <= 100) lines.splice(-1, 1, longer);
    else lines.push(`  ${name}`);
  }
  return lines.join('\n');
}
