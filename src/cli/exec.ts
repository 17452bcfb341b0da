import { spawn, type ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { optionOfEnvironment } from '../features/options.js';
import type { Protocol } from '../connect/connector.js';
import type { MessageRules } from '../connect/message-filter.js';
import type { ExposedNetwork } from '../features/exposed-network/exposed-network.js';
import type { LoopbackEndpoint } from '../connect/loopback-endpoint.js';
import type { Grant } from '../services/browser-service.js';
import { environment, SECRET_URLS, SECRET_VARIABLES } from '../shared/environment.js';
import { signalChild } from '../shared/runtime.js';
import type { Trust } from '../shared/network.js';
import { CliError, EXIT, exitCodeOf, ExitStatus } from './errors.js';
import type { Interruption } from './interruption.js';
import {
  ABOUT_TOKEN,
  addLeaseOptions,
  addPoolAndArguments,
  allowOption,
  exposeOption,
  leaseSettings,
  separatePool,
  time,
  type LeaseCommandOptions,
} from './options.js';
import { openPool } from './service.js';
import { note } from './terminal.js';

export function define(command: Command, interruption: Interruption): void {
  suggestSeparator(command);
  addPoolAndArguments(
    addLeaseOptions(command),
    ['<command>', 'program to run, in any language'],
    ['[args...]', 'arguments of the program'],
  )
    .description('Leases a browser, runs a command with its addresses in the environment, and releases it.')
    .usage('[options] <pool> -- <command> [args...]')
    .option('--local-endpoint', 'open an address on this machine that needs no secret: see below')
    .addOption(exposeOption())
    .addOption(allowOption())
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
      const run = wayOf(options);
      // A browser that its proxy cleans need not be destroyed.
      const isCleaned = run !== exec && command.getOptionValueSource('release') === 'default';
      const settings = isCleaned ? { ...options, release: 'auto' as const } : options;
      const code = await run(pool, whole, settings, interruption);
      if (code !== EXIT.ok) throw new ExitStatus(code);
    });
}

function secretName(name: string, earlier: readonly string[] = []): string[] {
  if (SECRET_VARIABLES.includes(name) || SECRET_URLS.includes(name)) return [...earlier, name];
  throw new InvalidArgumentError(
    `The command gets each variable but ${[...SECRET_VARIABLES, ...SECRET_URLS].join(', ')}.`,
  );
}

function wayOf(options: ExecOptions): typeof exec {
  if (options.playwright) return execSuite;
  // With a limit, the address of the service would lead past it.
  return options.lazy || isLimited(options) ? execLazily : exec;
}

function isLimited({ allowHosts = environment.allowedHosts() }: ExecOptions): boolean {
  return allowHosts !== undefined;
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
current folder. The links of the recordings are printed at the end. Projects of Firefox or WebKit
are refused there: run those of Chromium with --project=NAME.
${ABOUT_TOKEN}

The first signal is passed on to the command; a second one kills it. The browser is released however
the command ends, and with --release-on-crash also when this program is killed. Nothing cleans up
behind the command, so the browser is destroyed by default. Use --release reuse only for commands
that leave nothing behind in the browser.

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

interface ExecOptions extends LeaseCommandOptions {
  localEndpoint?: true;
  lazy?: true;
  playwright?: true;
  passEnv?: string[];
  /** In ms. */
  idleTimeout?: number;
}

/** Runs a command with a leased browser, and returns the exit code of the command. */
async function exec(
  poolName: string,
  command: readonly string[],
  options: ExecOptions,
  interruption: Interruption,
): Promise<number> {
  const { signal } = interruption;
  await using pool = await openPool(poolName, options);
  const { describeReplays, leaseFromCommand } = await import('./lease.js');
  const { exposeNetwork = optionOfEnvironment('exposeNetwork'), localEndpoint } = options;
  const lease = await leaseFromCommand(pool, { ...options, signal });
  let exposed: ExposedNetwork | undefined;
  try {
    const { grant } = lease;
    const { coreOf } = await import('../pool/pool-core.js');
    const { trust } = coreOf(pool).client;
    const { verifyGrant } = await import('../connect/verify-connection.js');
    const exposing = exposeNetwork === undefined ? undefined : '--expose-network';
    verifyGrant(poolName, grant, {
      protocol: 'cdp',
      needsCdp: localEndpoint ? '--local-endpoint' : exposing,
    });
    const variables = await variablesOf(grant, trust);
    if (exposeNetwork !== undefined) exposed = await expose(grant, trust, exposeNetwork, signal);
    const { headersTo } = await import('../connect/trusted-url.js');
    // The command can't send them.
    const needsHeaders =
      grant.cdpUrl !== undefined && hasEntries(headersTo(new URL(grant.cdpUrl), grant, trust));
    const isLocal = localEndpoint || needsHeaders;
    await using endpoint = isLocal ? await openLocalEndpoint(grant, trust, exposed?.rules) : undefined;
    signal.throwIfAborted();
    const all = {
      ...variables,
      ...(needsHeaders && { BROWSER_POOL_CDP_WS_URL: endpoint?.url }),
      BROWSER_POOL_LOCAL_CDP_WS_URL: endpoint?.url,
    };
    return await runCommand(command, all, options, interruption);
  } finally {
    await exposed?.stop();
    describeReplays(await lease.end()).forEach(note);
  }
}

function hasEntries(record: object): boolean {
  return Object.keys(record).length > 0;
}

/** Runs a command with addresses of this machine, which lease a browser when the command connects. */
async function execLazily(
  poolName: string,
  command: readonly string[],
  options: ExecOptions,
  interruption: Interruption,
): Promise<number> {
  const { idleTimeout, exposeNetwork, allowHosts: allowedHosts } = options;
  await using pool = await openPool(poolName, options);
  const { createLeaseLog, describeReplays } = await import('./lease.js');
  const { serveProxy } = await import('../calls/serve-proxy.js');
  await using proxy = await serveProxy(pool, {
    ...leaseSettings(options),
    idleTimeout,
    exposeNetwork,
    allowedHosts,
    share: true,
    onEvent: createLeaseLog(options.acquireTimeout),
    onClient: (event) => {
      if (event.type === 'released') describeReplays(event.summary).forEach(note);
      if (event.type === 'refused')
        note(`A connection was refused with status ${event.status}: ${event.reason}`);
    },
  });
  const cdp = proxy.url.replace('http', 'ws');
  const variables = {
    ...NO_BROWSER,
    BROWSER_POOL_CDP_WS_URL: cdp,
    BROWSER_POOL_WEBDRIVER_WS_URL: isLimited(options) ? undefined : `${cdp}/session`,
    BROWSER_POOL_LOCAL_CDP_WS_URL: cdp,
  };
  interruption.signal.throwIfAborted();
  return await runCommand(command, variables, options, interruption);
}

/** Runs a command whose Playwright clients lease a browser each, when they connect. */
async function execSuite(
  poolName: string,
  command: readonly string[],
  options: ExecOptions,
  interruption: Interruption,
): Promise<number> {
  const { exposeNetwork, allowHosts: allowedHosts } = options;
  const { PlaywrightEndpoint } = await import('../calls/playwright-endpoint/playwright-endpoint.js');
  const fault = new PlaywrightEndpoint().fault(true);
  if (fault) throw new CliError(fault.reason);
  await using pool = await openPool(poolName, options);
  const { createLeaseLog, describeReplays } = await import('./lease.js');
  const { serveProxy } = await import('../calls/serve-proxy.js');
  const replays: string[] = [];
  const proxy = await serveProxy(pool, {
    ...leaseSettings(options),
    exposeNetwork,
    allowedHosts,
    onEvent: createLeaseLog(options.acquireTimeout),
    onClient: (event) => {
      if (event.type === 'released') replays.push(...describeReplays(event.summary));
    },
  });
  try {
    interruption.signal.throwIfAborted();
    const { playwrightUrl } = proxy;
    const variables = { ...NO_BROWSER, PW_TEST_CONNECT_WS_ENDPOINT: playwrightUrl };
    return await runCommand(command, variables, { ...options, endpoint: playwrightUrl }, interruption);
  } finally {
    await proxy.close();
    // Between the lines of the tests, nobody would see them.
    replays.forEach(note);
  }
}

/** The variables of an outer exec, which are not those of this one. */
const NO_BROWSER = {
  BROWSER_POOL_SESSION_ID: undefined,
  BROWSER_POOL_CDP_WS_URL: undefined,
  BROWSER_POOL_WEBDRIVER_WS_URL: undefined,
  BROWSER_POOL_LIVE_VIEW_URL: undefined,
  BROWSER_POOL_LOCAL_CDP_WS_URL: undefined,
};

/**
 * Returns the variables for the command. Those that this browser lacks are unset: an outer exec may have set them.
 *
 * @throws when a URL would send its secret over a network without encryption.
 */
async function variablesOf(grant: Grant, trust: Trust): Promise<NodeJS.ProcessEnv> {
  const { trustedUrl } = await import('../connect/trusted-url.js');
  const urlFor = async (protocol: Protocol, given: string | undefined) =>
    given === undefined ? undefined : (await trustedUrl(grant, protocol, trust)).href;
  return {
    BROWSER_POOL_SESSION_ID: grant.id,
    BROWSER_POOL_CDP_WS_URL: await urlFor('cdp', grant.cdpUrl),
    BROWSER_POOL_WEBDRIVER_WS_URL: await urlFor('bidi', grant.bidiUrl),
    BROWSER_POOL_LIVE_VIEW_URL: webPage(grant.liveViewUrl),
  };
}

/** The command may open it: a file or a program of this machine is no live view. */
function webPage(address = ''): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url.href : undefined;
}

/**
 * Runs a command on our terminal, passes signals on to it, and returns the exit code that a shell would return.
 *
 * @param options `endpoint`: what replaces {endpoint} in its arguments.
 */
async function runCommand(
  words: readonly string[],
  variables: NodeJS.ProcessEnv,
  {
    passEnv,
    endpoint = variables['BROWSER_POOL_LOCAL_CDP_WS_URL'],
  }: ExecOptions & { endpoint?: string | undefined },
  interruption: Interruption,
): Promise<number> {
  const [command, ...args] = words.map((word) => (endpoint ? word.replaceAll('{endpoint}', endpoint) : word));
  const child = spawn(command!, args, {
    stdio: 'inherit',
    env: { ...environment.forProgram(passEnv), ...variables },
  });
  let signals = 0;
  const passOn = (signal: NodeJS.Signals) => {
    signals++;
    if (signals > 1) signalChild(child, 'SIGKILL');
    // A terminal sends Ctrl-C to all its programs: the command has received it already.
    else if (signal !== 'SIGINT' || ![0, 1, 2].some((descriptor) => isatty(descriptor)))
      signalChild(child, signal);
  };
  return interruption.divert(passOn, () => waitForExit(child, command!));
}

function waitForExit(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? exitCodeOf(signal) : code!));
    child.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      // With a pid, only a signal could not be sent: the exit is still to come.
      if (child.pid !== undefined) return;
      const isMissing = code === 'ENOENT';
      note(
        isMissing ? `${command}: no such command.` : `${command}: the command can't be started (${message}).`,
      );
      resolve(isMissing ? EXIT.notFound : EXIT.notStarted);
    });
  });
}

/** Answers the requests of the browser to some hosts, over a connection beside that of the command. */
async function expose(
  grant: Grant,
  trust: Trust,
  hosts: string,
  signal: AbortSignal,
): Promise<ExposedNetwork> {
  const { openSocket } = await import('../connect/connect-session.js');
  const { ExposedNetwork } = await import('../features/exposed-network/exposed-network.js');
  const { describeExposed } = await import('./lease.js');
  const seen = new Set<string>();
  const exposed = new ExposedNetwork({
    hosts,
    acceptsInsecureCerts: false,
    open: (during) => openSocket(grant, { protocol: 'cdp', trust, signal: during }),
    onRequest: (host) => {
      if (!seen.has(host)) note(describeExposed(host));
      seen.add(host);
    },
    onLost: () => note(LOST),
  });
  try {
    await exposed.open(signal);
  } catch (error) {
    exposed.cut();
    throw error;
  }
  return exposed;
}

const LOST =
  'The connection that exposes hosts of this machine was lost: requests of the browser to them fail.';

/** Opens an address on loopback that connects each client to the browser with a new WebSocket. */
async function openLocalEndpoint(
  grant: Grant,
  trust: Trust,
  rules: readonly MessageRules[] = [],
): Promise<LoopbackEndpoint> {
  const { openSocket } = await import('../connect/connect-session.js');
  const { openSharedEndpoint } = await import('../connect/loopback-endpoint.js');
  return openSharedEndpoint((signal) => openSocket(grant, { protocol: 'cdp', trust, signal, rules }));
}
