import type { Command } from 'commander';
import type { Interruption } from './interruption.js';
import {
  ABOUT_TOKEN,
  addLeaseOptions,
  addPoolArgument,
  addReachOptions,
  recordAll,
  timeout,
  wholeNumberArgument,
} from './options.js';
import type { McpCommandOptions } from './run-mcp.js';

export function define(command: Command, { signal }: Interruption): void {
  // Hosts end a call of a tool after 60 s by default. The agent then gets no reason.
  const own = {
    acquireTimeout: '50s',
    lifetime: timeout('--lifetime <time>', ABOUT_LIFETIME, '1h'),
    record: recordAll(),
  };
  addPoolArgument(addReachOptions(addLeaseOptions(command, own)))
    .description('Serves an agent three tools that lease, list and release browsers of a pool: MCP on stdio.')
    .option(
      '--port <port>',
      'TCP port of the browsers; 0 for any free port',
      wholeNumberArgument(0, 65_535),
      0,
    )
    .option('--no-secret', 'addresses without a random path: see below')
    .option('--max <n>', 'browsers that the agent may lease at once', wholeNumberArgument(1))
    .addOption(timeout('--idle-timeout <time>', 'release a browser without a command for this time', '30m'))
    .addHelpText('after', HELP)
    .action(async (pool: string, options: McpCommandOptions) => {
      const { runMcp } = await import('./run-mcp.js');
      await runMcp(pool, options, signal);
    });
}

const ABOUT_LIFETIME =
  'the most time that a lease lasts; the agent can ask for less, and extend it up to twice this time';

const HELP = `
A host, such as Claude Code, starts this command, and its agent gets these tools:
  lease_browser     leases a browser by a name, and returns its CDP address on 127.0.0.1
  lease_status      lists the leased browsers, and extends a lease
  release_browser   releases a browser, and returns the links of its recordings
The tools open no pages. The agent passes the address to a program that does: a script with
Playwright or Puppeteer, agent-browser --cdp, @playwright/mcp --cdp-endpoint, chrome-devtools-mcp
--wsEndpoint.

For a server that gets its address before the agent leases a browser, choose the port, and a name
that the agent then leases. Without a secret, every user of this machine can connect to a leased
browser, and can open your files in a browser that runs here:
  pooled-browser mcp agents --port 9333 --no-secret
  @playwright/mcp --cdp-endpoint http://127.0.0.1:9333/main

At a login or a captcha, the agent asks for a person: it posts {"message": "…"} to the handoffUrl of
lease_browser. The link for the person is printed on stderr and sent to the log of the host.

All browsers are released when the host ends, also if the host or this command is killed. The
command needs the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk
${ABOUT_TOKEN}

Examples:
  $ pooled-browser mcp agents --lifetime 20m --record
  $ claude mcp add browsers -- npx pooled-browser mcp agents --max 2`;
