import * as playwright from '../calls/playwright.js';
import * as puppeteer from '../calls/puppeteer.js';
import { findBrowser } from '../local/browser/find-browser.js';
import { nameOf } from '../net/connection.js';
import { findFfmpeg } from '../recorder/ffmpeg-encoder.js';
import { sendOnce } from '../net/http.js';
import { expectSuccess } from '../net/response.js';
import { coreOf } from '../pool/pool-core.js';
import { InvalidOptionError } from '../shared/errors.js';
import { ConnectError } from '../shared/lease-errors.js';
import { versionOf } from '../shared/library-version.js';
import { PoolServiceError } from '../shared/service-errors.js';
import type { RunOptions } from '../calls/options.js';
import type { Run } from '../calls/run.js';
import { routeTo } from '../shared/network.js';
import { runtime } from '../shared/runtime.js';
import { checkBaseUrl } from '../shared/urls.js';
import type { BrowserPool } from '../pool/browser-pool.js';
import { unreachable } from '../net/reachability.js';
import { leaseFromCommand } from './lease.js';
import { BIDI_LIBRARY, isInstalled, openPool, serviceOf, withService } from './service.js';
import { CliError, NO_ADDRESS } from './errors.js';
import { POLL_TIMEOUT, type ServiceOptions } from './options.js';
import { isError } from '../shared/globals.js';

/** The service and the pool to check. */
export interface Case extends ServiceOptions {
  /** Id or name of the pool; without a pool, nothing is leased. */
  pool: string | undefined;
  /** Leases one browser, once. */
  lease?: true;
  /** In ms. */
  acquireTimeout: number;
  signal: AbortSignal;
}

/** The result of a check. A `note` is information, not a fault. A `skipped` check could not run. */
export interface Result {
  status: 'ok' | 'note' | 'failed' | 'skipped';
  detail: string;
  /** What to do about a fault. */
  advice?: string;
}

export interface DoctorCheck {
  name: string;
  /** The checks after this one need its success. */
  isRequired?: boolean;
  run: (on: Case) => Result | Promise<Result>;
}

/** Leases a browser, calculates the sum in a page, and releases the browser. */
type Calculate = (
  pool: BrowserPool,
  options: Omit<RunOptions, 'protocol' | 'connectOptions'>,
) => Promise<Run<unknown>>;

const SUM = '1 + 1';

const withPlaywright: Calculate = (pool, options) =>
  playwright.withPooledBrowser(pool, ({ page }) => page.evaluate(SUM), options);

const withPuppeteer =
  (protocol: 'cdp' | 'bidi'): Calculate =>
  (pool, options) =>
    puppeteer.withPooledBrowser(pool, ({ page }) => page.evaluate(SUM), { ...options, protocol });

interface Connection {
  name: string;
  library: string;
  calculate: Calculate;
}

const CONNECTIONS: readonly Connection[] = [
  { name: 'playwright cdp', library: 'playwright-core', calculate: withPlaywright },
  { name: 'puppeteer cdp', library: 'puppeteer-core', calculate: withPuppeteer('cdp') },
  { name: 'puppeteer bidi', library: 'puppeteer-core', calculate: withPuppeteer('bidi') },
];

/** All checks; each relies on the earlier ones. */
export const CHECKS: readonly DoctorCheck[] = [
  { name: runtime.name.toLowerCase(), run: checkRuntime },
  { name: 'libraries', run: checkLibraries },
  { name: 'address', run: checkAddress, isRequired: true },
  { name: 'reachable', run: checkReachable, isRequired: true },
  { name: 'token', run: checkToken, isRequired: true },
  { name: 'pool', run: checkPool, isRequired: true },
  { name: 'lease', run: checkLease, isRequired: true },
  ...CONNECTIONS.map((connection) => ({
    name: connection.name,
    run: (on: Case) => checkConnection(connection, on),
  })),
];

function ok(detail: string): Result {
  return { status: 'ok', detail };
}

function skipped(reason: string): Result {
  return { status: 'skipped', detail: `skipped: ${reason}` };
}

/** Compares with `engines` of package.json. */
function checkRuntime(): Result {
  const { name, version } = runtime;
  const detail = `${name} ${version}`;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const ranges = SUPPORTED[name];
  const isSupported = ranges.some(([at, from]) => major === at && minor >= from) || major > ranges.at(-1)![0];
  if (isSupported) return ok(detail);
  const versions = ranges.map((range) => range.join('.')).join(', ');
  return { status: 'failed', detail, advice: `Install ${name} ${versions} or newer.` };
}

/** What writes the videos of recordings by this library. */
async function videoWriter(): Promise<string> {
  const path = (await findBrowser().catch(() => undefined)) ?? findFfmpeg();
  return (
    path ?? 'the leased browser, before its release, because this machine has neither Chromium nor ffmpeg'
  );
}

/** The oldest minor version of each major version, up to the last of these majors. */
const SUPPORTED = {
  Node: [
    [20, 19],
    [22, 12],
  ],
  Bun: [[1, 4]],
  Deno: [[2, 9]],
} as const;

const LIBRARIES = ['playwright-core', 'puppeteer-core'] as const;

async function checkLibraries(on: Case): Promise<Result> {
  const installed = LIBRARIES.filter(isInstalled);
  if (installed.length === 0) {
    const advice =
      'Install a library: npm install playwright-core, or npm install puppeteer-core. Without a library, ' +
      'exec, proxy, mcp and acquire still work, for programs with their own library.';
    // A program in another language needs none: the lease is what counts.
    const isOptional = on.pool !== undefined || on.lease === true;
    return {
      status: isOptional ? 'skipped' : 'failed',
      detail: `neither ${LIBRARIES.join(' nor ')} is installed`,
      advice,
    };
  }
  const versions = LIBRARIES.map((name) =>
    isInstalled(name) ? `${name} ${versionOf(name) ?? '(unknown version)'}` : `no ${name}`,
  );
  if (!isInstalled(BIDI_LIBRARY)) versions.push(`no ${BIDI_LIBRARY} (a local pool needs it for BiDi)`);
  return ok(`${versions.join(', ')}; videos of recordings are written by ${await videoWriter()}`);
}

async function checkAddress(on: Case): Promise<Result> {
  const at = await serviceOf(on).catch((error: unknown) => {
    if (error instanceof CliError && error.message === NO_ADDRESS) return undefined;
    throw error;
  });
  if (!at) return { status: 'failed', detail: 'no address is set', advice: NO_ADDRESS };
  const { service, baseUrl } = at;
  if (baseUrl === 'local') return ok('local: Chromium on this machine');
  const url = checkBaseUrl(baseUrl);
  const name = service.name === 'kernel' ? '' : `${service.name} at `;
  const { proxy } = routeTo(url, {});
  if (proxy === undefined) return ok(name + url.href);
  return ok(`${name}${url.href}, through ${nameOf(new URL(proxy))}`);
}

/** In ms: a service that does not answer within this time counts as unreachable. */
const REACH_TIMEOUT = 10_000;

/** Accepts any answer. The request carries no token. */
async function checkReachable({ signal, ...on }: Case): Promise<Result> {
  const { baseUrl } = await serviceOf(on);
  if (baseUrl === 'local') {
    return ok(await findBrowser());
  }
  const limit = AbortSignal.any([signal, AbortSignal.timeout(REACH_TIMEOUT)]);
  try {
    const url = new URL(baseUrl);
    await sendOnce({ url }, { route: routeTo(url, {}), signal: limit });
    // Without a token the status is often 401, which would look like a fault.
    return ok('the service answers');
  } catch (error) {
    throw unreachable(new URL(baseUrl), error, {});
  }
}

/**
 * Sends the request of the service that only reads. Without one, lists the replays of a session that does not exist: with a
 * valid token, the answer is a 404 or an empty list.
 */
async function checkToken(on: Case): Promise<Result> {
  const { service, baseUrl } = await serviceOf(on);
  const { probe, replays, auth } = service;
  if (baseUrl === 'local' || auth === 'none') return ok('not needed');
  if (!probe && !replays) return skipped(`${service.name} has no request that only reads`);
  const { signal } = on;
  const hasToken = await withService(on, async (pool) => {
    const { client } = coreOf(pool);
    if (probe) expectSuccess(await client.send(probe, { facts: {}, signal }), {});
    else await pool.replays('pooled-browser-doctor', { signal }).catch(expectAbsent);
    return client.lastToken !== undefined;
  });
  return ok(hasToken ? 'accepted' : 'not needed');
}

function expectAbsent(error: unknown): void {
  if (!(error instanceof PoolServiceError && error.status === 404)) throw error;
}

/** Statuses of a service that has no pool records, or not this pool. */
const NO_RECORD = [404, 405, 501];

/** Reads the record of the pool. Not every service has records: without one, the lease shows whether the pool exists. */
async function checkPool(on: Case): Promise<Result> {
  const { service } = await serviceOf(on);
  if (!service.pool?.describe) return skipped(`${service.name} has no pools`);
  if (on.pool === undefined) {
    return { status: 'skipped', detail: 'no pool is given; to check a pool: pooled-browser doctor POOL' };
  }
  await using pool = await openPool(on.pool, on);
  try {
    const record = await pool.describe({ signal: on.signal });
    const { available_count: idle, acquired_count: leased, browser_pool_config: { size } = {} } = record;
    const counts = Object.entries({ idle, leased, size }).filter(([, count]) => count !== undefined);
    const facts = counts.map(([name, count]) => `${name} ${count}`).join(', ');
    return ok(`${on.pool}: ${facts || 'the pool exists'}`);
  } catch (error) {
    if (!(error instanceof PoolServiceError && NO_RECORD.includes(error.status))) throw error;
    const detail = `the service has no record of ${on.pool}: either it keeps no records, or there is no such pool`;
    return { status: 'note', detail };
  }
}

/** Leases and releases a browser without a connection, and lists its recordings. */
async function checkLease(on: Case): Promise<Result> {
  const { acquireTimeout, signal, ...service } = on;
  const name = await poolToLeaseFrom(on);
  if (typeof name !== 'string') return name;
  if (on.lease) return skipped('the next check leases');
  await using pool = await openPool(name, service);
  await using lease = await leaseFromCommand(pool, {
    acquireTimeout,
    unreachableTimeout: acquireTimeout,
    release: 'reuse',
    replays: 'list',
    signal,
  });
  const { released, replayStatus, cleanupErrors } = await lease.end();
  if (released === 'failed' || released === 'unknown') {
    const advice =
      'Check that the service answers the request that releases a browser, and that the token permits it. ' +
      'A browser that is still leased ends with its inactivity timeout.';
    return { status: 'failed', detail: 'a browser was leased but could not be released', advice };
  }
  const [error] = cleanupErrors;
  if (error) return { status: 'note', detail: `leased and released; replays: ${error.message}` };
  return ok(`leased and released; replays: ${replayStatus}`);
}

/** A service without pools leases with any name, but only on request: a session costs money. */
async function poolToLeaseFrom(on: Case): Promise<string | Result> {
  if (on.pool !== undefined) return on.pool;
  const { service } = await serviceOf(on);
  if (service.pool?.describe) return skipped('needs a pool');
  if (on.lease) return service.name;
  return skipped('nothing is leased without --lease');
}

/** In ms: until a page is usable, and until the page has calculated the sum. */
const LIMITS = { connectTimeout: 60_000, timeout: 30_000 };

async function checkConnection({ name, library, calculate }: Connection, on: Case): Promise<Result> {
  const leased = await poolToLeaseFrom(on);
  if (typeof leased !== 'string') return leased;
  if (!isInstalled(library))
    return { status: 'skipped', detail: `${library} is not installed`, advice: `npm install ${library}` };
  const first = CONNECTIONS.find((other) => isInstalled(other.library))!;
  if (on.lease && name !== first.name) return skipped('--lease leases once');
  await using pool = await openPool(leased, on);
  const { acquireTimeout, signal } = on;
  // A second attempt would hide the fault of the first.
  const limits = { ...LIMITS, acquireTimeout, pollTimeout: POLL_TIMEOUT, connectAttempts: 1 };
  const run = await calculate(pool, { ...limits, replays: 'off', signal }).catch((error: unknown) => {
    // Not each browser has each protocol. With 501, a local pool says which package is missing for BiDi.
    if (error instanceof InvalidOptionError && error.option === 'protocol') return error;
    if (error instanceof ConnectError && error.status === 501) return error;
    throw error;
  });
  if (isError(run)) return skipped(run.message);
  const { acquire, connect, callback, release } = run.timings;
  const detail =
    `acquire ${acquire} ms, connect ${connect} ms, ${SUM} = ${String(run.value)} in ${callback} ms, ` +
    `release ${release} ms`;
  const faults = run.cleanupErrors.map(({ message }) => message);
  return { status: faults.length === 0 ? 'ok' : 'note', detail: [detail, ...faults].join('\n') };
}
