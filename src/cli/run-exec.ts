import { spawn, type ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';
import { PlaywrightEndpoint } from '../calls/playwright-endpoint/playwright-endpoint.js';
import { serveProxy } from '../calls/serve-proxy.js';
import { openSocket } from '../connect/connect-session.js';
import type { Protocol } from '../connect/connector.js';
import { openSharedEndpoint, type LoopbackEndpoint } from '../connect/loopback-endpoint.js';
import type { MessageRules } from '../connect/message-filter.js';
import { headersTo, trustedUrl } from '../connect/trusted-url.js';
import { verifyGrant } from '../connect/verify-connection.js';
import type { ExposedNetwork } from '../features/exposed-network/exposed-network.js';
import { optionOfEnvironment } from '../features/options.js';
import { coreOf } from '../pool/pool-core.js';
import type { Grant } from '../services/browser-service.js';
import { environment } from '../shared/environment.js';
import type { Trust } from '../shared/network.js';
import { signalChild } from '../shared/runtime.js';
import { CliError, EXIT, exitCodeOf } from './errors.js';
import type { Interruption } from './interruption.js';
import { createLeaseLog, describeExposed, describeReplays, leaseFromCommand } from './lease.js';
import { leaseSettings, type LeaseCommandOptions } from './options.js';
import { openPool } from './service.js';
import { note } from './terminal.js';

export interface ExecOptions extends LeaseCommandOptions {
  localEndpoint?: true;
  lazy?: true;
  playwright?: true;
  passEnv?: string[];
  /** In ms. */
  idleTimeout?: number;
  isReleaseGiven: boolean;
}

/** Runs a command with leased browsers, and returns its exit code. */
export function runExec(
  pool: string,
  command: readonly string[],
  options: ExecOptions,
  interruption: Interruption,
): Promise<number> {
  const run = wayOf(options);
  // A browser that its proxy cleans need not be destroyed.
  const isCleaned = run !== exec && !options.isReleaseGiven;
  return run(pool, command, isCleaned ? { ...options, release: 'auto' } : options, interruption);
}

function wayOf(options: ExecOptions): typeof exec {
  if (options.playwright) return execSuite;
  // With a limit, the address of the service would lead past it.
  return options.lazy || isLimited(options) ? execLazily : exec;
}

function isLimited({ allowHosts = environment.allowedHosts() }: ExecOptions): boolean {
  return allowHosts !== undefined;
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
  const { exposeNetwork = optionOfEnvironment('exposeNetwork'), localEndpoint } = options;
  const lease = await leaseFromCommand(pool, { ...options, signal });
  let exposed: ExposedNetwork | undefined;
  try {
    const { grant } = lease;
    const { trust } = coreOf(pool).client;
    const exposing = exposeNetwork === undefined ? undefined : '--expose-network';
    verifyGrant(poolName, grant, {
      protocol: 'cdp',
      needsCdp: localEndpoint ? '--local-endpoint' : exposing,
    });
    const variables = await variablesOf(grant, trust);
    if (exposeNetwork !== undefined) exposed = await expose(grant, trust, exposeNetwork, signal);
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
  const fault = new PlaywrightEndpoint().fault(true);
  if (fault) throw new CliError(fault.reason);
  await using pool = await openPool(poolName, options);
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
  const { ExposedNetwork } = await import('../features/exposed-network/exposed-network.js');
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
  return openSharedEndpoint((signal) => openSocket(grant, { protocol: 'cdp', trust, signal, rules }));
}
