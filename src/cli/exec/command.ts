import type { Command } from 'commander';
import { addLeaseOptions } from '../lease/options.js';
import { ABOUT_TOKEN } from '../service-option.js';
import type { ExecOptions } from './exec.js';

export function addExec(program: Command): void {
  const command = program
    .command('exec')
    .summary('run a command with a browser')
    .description('Leases a browser, runs a command that finds it in its environment, and gives it back.')
    .usage('[options] <pool> -- <command> [args...]')
    .argument('<pool>', 'id or name of the pool')
    .argument('<command>', 'the program to run, in any language')
    .argument('[args...]', 'its arguments');
  addLeaseOptions(command)
    .option('--local-endpoint', 'serve the browser on this machine, without its secret: see below')
    .addHelpText('after', HELP)
    .action(async (pool: string, program: string, args: string[], options: ExecOptions) =>
      (await import('./exec.js')).exec(pool, [program, ...args], options),
    );
}

const HELP = `
The command finds in its environment, which no other user of the machine but root can read:
  BROWSER_POOL_CDP_WS_URL        websocket for the Chrome DevTools Protocol
  BROWSER_POOL_WEBDRIVER_WS_URL  websocket for WebDriver BiDi
  BROWSER_POOL_SESSION_ID        the session
  BROWSER_POOL_LIVE_VIEW_URL     where to watch it, if it has a window
The websockets carry a secret. Do not put them into arguments, which all users can read. For
programs that take an address only there, --local-endpoint opens one for CDP on 127.0.0.1 that
leads to this browser as long as the command runs, with a random path instead of the secret:
BROWSER_POOL_LOCAL_CDP_WS_URL, and {endpoint} in the arguments.
${ABOUT_TOKEN}

Signals are passed on to the command; a second one kills it. However it ends, the browser is given
back; with --watch even when this program is killed. Nobody tidies up behind the command, so the
browser is destroyed: --release reuse is for commands that leave no trace in it.

Examples:
  $ pooled-browser exec scrapers -- python3 scrape.py
  $ pooled-browser exec scrapers --name nightly --watch -- ./nightly.sh
  $ pooled-browser exec agents -- sh -c \\
      'PLAYWRIGHT_MCP_CDP_ENDPOINT=$BROWSER_POOL_CDP_WS_URL npx @playwright/mcp'
  $ pooled-browser exec agents --local-endpoint -- npx @playwright/mcp --cdp-endpoint {endpoint}`;
