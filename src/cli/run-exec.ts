import { spawn, type ChildProcess } from 'node:child_process';
import { isatty } from 'node:tty';
import { PlaywrightEndpoint, type LaunchOptions } from '../calls/playwright-endpoint/playwright-endpoint.js';
import { askPerson } from '../calls/handoff.js';
import { startProxy } from '../calls/serve-proxy.js';
import { openSocket } from '../drivers/open-browser.js';
import type { BrowserProtocol } from '../drivers/connector.js';
import { openSharedEndpoint } from '../drivers/loopback-endpoint.js';
import { relay } from '../drivers/relay.js';
import type { OpenClient } from '../drivers/socket.js';
import { headersTo, trustedUrl } from '../drivers/trusted-url.js';
import { verifyGrant } from '../lease/verify-connection.js';
import { featureChecks, optionsOfEnvironment } from '../features/options.js';
import type { ProxyOptions } from '../calls/options.js';
import { listOf, type Pools } from '../pool/browser-pool.js';
import type { Grant, Replay } from '../services/browser-service.js';
import { onAbort } from '../shared/abort.js';
import { environment } from '../shared/environment.js';
import type { Trust } from '../shared/network.js';
import { isLeaseExpiredError } from '../shared/lease-errors.js';
import type { OpenCdp } from '../wire/forms.js';
import { signalChild } from '../shared/runtime.js';
import { excerpt, printable } from '../shared/redact.js';
import { webPage } from '../shared/urls.js';
import { CliError, EXIT, exitCodeOf } from './errors.js';
import { openHandoffAddress } from './handoff-server.js';
import type { Interruption } from './interruption.js';
import { createLeaseLog, describeReplays, leaseFromCommand } from './lease.js';
import { leaseSettings, NO_FAILURES, type LeaseCommandOptions } from './options.js';
import { openPools } from './service.js';
import { counted, note } from './terminal.js';

export interface ExecOptions extends LeaseCommandOptions {
  localEndpoint?: true;
  lazy?: true;
  playwright?: true;
  passEnv?: string[];
  /** In ms. */
  idleTimeout?: number;
}

/** Runs a command with leased browsers, and returns its exit code. */
export async function runExec(
  poolList: string,
  command: readonly string[],
  options: ExecOptions,
  interruption: Interruption,
): Promise<number> {
  const { signal } = interruption;
  await using pools = await openPools(poolList, options);
  const run: Run = async (addresses) => {
    signal.throwIfAborted();
    return runCommand(command, addresses, options.passEnv, interruption);
  };
  // With a limit, the address of the service would lead past it.
  const isProxied = options.playwright || options.lazy || isLimited(options);
  return isProxied
    ? await withProxy(pools, options, run)
    : await withLease(pools, { ...options, signal }, run, titleOf(command));
}

function isLimited({ allowHosts = environment.allowedHosts() }: ExecOptions): boolean {
  return allowHosts !== undefined;
}

/** What the command gets. */
interface Addresses {
  readonly session?: string;
  readonly cdp?: string | undefined;
  readonly bidi?: string | undefined;
  readonly liveView?: string | undefined;
  /** Where the command asks for a person. */
  readonly handoff?: string | undefined;
  /** On this machine, over CDP. */
  readonly local?: string | undefined;
  /** On this machine, over Playwright's own protocol. */
  readonly playwright?: string | undefined;
}

/** Runs the command. */
type Run = (addresses: Addresses) => Promise<number>;

/** Leases a browser, and gives the command the addresses of the service. */
async function withLease(
  pools: Pools,
  options: ExecOptions & { signal: AbortSignal },
  run: Run,
  command: string,
): Promise<number> {
  const { exposeNetwork = optionsOfEnvironment(featureChecks.proxy).exposeNetwork, localEndpoint } = options;
  const leased = await leaseFromCommand(pools, { ...options, exposeNetwork }, EXPOSING);
  try {
    const { lease, grant } = leased;
    const { pool } = lease.context;
    const { trust } = pool.client;
    const exposing = 'handles' in lease ? lease : undefined;
    if (exposing && exposeNetwork !== undefined)
      onAbort(exposing.context.signal, () => {
        if (!isLeaseExpiredError(exposing.context.signal.reason)) note(LOST);
      });
    const needsCdp = localEndpoint ? '--local-endpoint' : undefined;
    verifyGrant(pool.idOrName, grant, { protocol: 'cdp', needsCdp });
    const addresses = await addressesOf(grant, trust);
    const { cdpUrl, endsWithConnection } = grant;
    // The command can't send them.
    const needsHeaders =
      cdpUrl !== undefined && Object.keys(headersTo(new URL(cdpUrl), grant, trust)).length > 0;
    // A WebSocket of the command would be another lease, of a browser to which nothing is exposed.
    const isOtherBrowser = exposing !== undefined && endsWithConnection === true;
    // The timeline of this process shows the commands that pass here, and a client here learns why its browser has ended.
    const isWatched = lease.features.replays?.isByClient === true || options.lifetime !== undefined;
    if (options.name === undefined) lease.features.replays?.title(command);
    const isReplaced = needsHeaders || isOtherBrowser || (isWatched && cdpUrl !== undefined);
    const openClient: OpenClient = (signal) =>
      exposing ? exposing.handles.openClient(signal) : openSocket(grant, { protocol: 'cdp', trust, signal });
    await using endpoint =
      localEndpoint || isReplaced ? await openSharedEndpoint(openClient, lease.context.signal) : undefined;
    const local = endpoint?.url;
    // A further WebSocket of this process would be another lease.
    const isSeen = !exposing && !endsWithConnection && cdpUrl !== undefined;
    const openCdp: OpenCdp = (signal) => openSocket(grant, { protocol: 'cdp', trust, signal, kind: 'own' });
    const how = isSeen ? { openCdp } : {};
    await using handoff = await openHandoffAddress((request, signal) =>
      askPerson(lease, request, { ...how, signal }),
    );
    const own = { local, handoff: handoff.url };
    const code = await run({ ...addresses, ...own, ...(isReplaced && { cdp: local }) });
    if (code !== 0) lease.features.replays?.fail(new Error(`The command exited with ${code}.`));
    return code;
  } finally {
    const end = await leased.end();
    describeReplays(end).forEach(note);
    noteLeases(pools, options, { leased: 1, kept: end.released === 'failed' ? 1 : 0 });
  }
}

/** The words of a command up to its first option or address, which can contain a secret. */
function titleOf(command: readonly string[]): string {
  const end = command.findIndex((word) => word.startsWith('-') || word.includes(':'));
  return excerpt(command.slice(0, end < 0 ? undefined : end).join(' '), LONGEST_TITLE);
}

const LONGEST_TITLE = 60;

const EXPOSING = { ...relay(false), refusal: () => '--expose-network needs cdp. Remove the option.' };

const LOST =
  'The connection that exposes hosts of this machine was lost: requests of the browser to them fail.';

/**
 * Gives the command an address of this machine, at which browsers are leased when it connects: one for all its connections, or
 * one for each worker of a suite.
 */
async function withProxy(pools: Pools, options: ExecOptions, run: Run): Promise<number> {
  const { playwright: isSuite, idleTimeout } = options;
  const endpoint = isSuite ? new PlaywrightEndpoint(noteLaunchOptions(options)) : undefined;
  const fault = endpoint?.fault(true);
  if (fault) throw new CliError(fault.reason);
  if (options.record === 'failures') throw new CliError(NO_FAILURES, EXIT.usage);
  // Between the lines of the tests, nobody would see them.
  const replays: Replay[] = [];
  const counts = { leased: 0, kept: 0 };
  try {
    const settings: ProxyOptions = {
      ...leaseSettings(options),
      // Without the option, a command that thinks for long keeps its browser.
      idleTimeout: idleTimeout ?? 0,
      share: !isSuite,
      onEvent: createLeaseLog(options.acquireTimeout),
      onClient: (event) => {
        if (event.type === 'leased') counts.leased++;
        if (event.type === 'released') {
          if (event.summary.released === 'failed') counts.kept++;
          if (isSuite) replays.push(...event.summary.replays);
          else describeReplays(event.summary).forEach(note);
        }
        // A client of Playwright shows the reason.
        if (event.type === 'refused' && !isSuite)
          note(`A connection was refused with status ${event.status}: ${event.reason}`);
      },
    };
    await using proxy = await startProxy(pools, settings, { endpoint });
    if (isSuite) return await run({ playwright: proxy.playwrightUrl });
    const cdp = proxy.url.replace('http', 'ws');
    const bidi = isLimited(options) ? undefined : `${cdp}/session`;
    // All clients share the browser, so any name is its name.
    return await run({ cdp, bidi, local: cdp, handoff: `${proxy.url}/exec/handoff` });
  } finally {
    noteReplays(replays);
    noteLeases(pools, options, counts);
  }
}

/** Prints what became of the leases: of a suite, which sees nothing of them, or to a person. */
function noteLeases(
  pools: Pools,
  { record, replays, playwright: isSuite }: ExecOptions,
  { leased, kept }: { leased: number; kept: number },
): void {
  if (!isSuite && !process.stderr.isTTY) return;
  const names = listOf(pools).map((pool) => (typeof pool === 'string' ? pool : pool.idOrName));
  const from = names.map(printable).join(', ');
  if (leased === 0) return note(`No browser was leased from ${from}.`);
  const end = kept === 0 ? 'all were released' : `the release of ${kept} failed`;
  const advice = record !== undefined || replays === 'record' ? '' : ' --record records them.';
  note(`${counted(leased, 'browser')} leased from ${from}, ${end}.${advice}`);
}

/** Prints the links of a suite in the order of time, and the page that lists them. */
function noteReplays(replays: readonly Replay[]): void {
  const startOf = ({ started_at: start = '' }: Replay) => Date.parse(start) || 0;
  const sorted = replays.toSorted((one, other) => startOf(one) - startOf(other));
  describeReplays({ replays: sorted }).forEach(note);
  const own = sorted.find(({ recorded_by: by }) => by === 'client')?.replay_view_url;
  if (own !== undefined) note(`All replays: ${new URL('../replays.html', own).href}`);
}

/** Prints once what a suite asks of the browsers that it would launch, and that has no effect on those of the pool. */
function noteLaunchOptions({ headful }: ExecOptions): (asked: LaunchOptions) => void {
  const noted = new Set<string>();
  const noteOnce = (text: string) => {
    if (!noted.has(text)) note(text);
    noted.add(text);
  };
  return ({ headless, channel }) => {
    if (headless === false && !headful && !environment.isLocalHeadful()) noteOnce(NO_WINDOW);
    if (typeof channel === 'string') noteOnce(noChannel(excerpt(channel, 50)));
  };
}

const NO_WINDOW =
  'The suite asks for windows (--headed, or headless: false), which the browsers of the pool do not show. To see browsers of ' +
  'this machine: pooled-browser exec local --headful --playwright -- COMMAND. Those of a service are at its live view.';

const noChannel = (channel: string) =>
  `The suite asks for the channel ${channel}, which has no effect: the pool has launched the browsers. To run that browser on ` +
  'this machine, set CHROME_PATH to its path, and name the pool local.';

/** @throws when a URL would send its secret over a network without encryption. */
async function addressesOf(grant: Grant, trust: Trust): Promise<Addresses> {
  const urlFor = async (protocol: BrowserProtocol, given: string | undefined) =>
    given === undefined ? undefined : (await trustedUrl(grant, protocol, trust)).href;
  return {
    session: grant.id,
    cdp: await urlFor('cdp', grant.cdpUrl),
    bidi: await urlFor('bidi', grant.bidiUrl),
    liveView: webPage(grant.liveViewUrl, trust),
  };
}

/** Runs a command on our terminal, passes signals on to it, and returns the exit code that a shell would return. */
async function runCommand(
  words: readonly string[],
  { session, cdp, bidi, liveView, local, playwright, handoff }: Addresses,
  passEnv: readonly string[] | undefined,
  interruption: Interruption,
): Promise<number> {
  const endpoint = playwright ?? local;
  const [command, ...args] = words.map((word) => (endpoint ? word.replaceAll('{endpoint}', endpoint) : word));
  const child = spawn(command!, args, {
    stdio: 'inherit',
    // What this browser lacks is unset: an outer exec may have set it.
    env: {
      ...environment.forProgram(passEnv),
      BROWSER_POOL_SESSION_ID: session,
      BROWSER_POOL_CDP_WS_URL: cdp,
      BROWSER_POOL_WEBDRIVER_WS_URL: bidi,
      BROWSER_POOL_LIVE_VIEW_URL: liveView,
      BROWSER_POOL_LOCAL_CDP_WS_URL: local,
      BROWSER_POOL_HANDOFF_URL: handoff,
      ...(playwright !== undefined && { PW_TEST_CONNECT_WS_ENDPOINT: playwright }),
    },
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
