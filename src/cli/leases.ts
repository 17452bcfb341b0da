import type { Command } from 'commander';
import { readAs } from '../net/response.js';
import { leasesAgain, type ListedSession } from '../services/browser-service.js';
import type { PoolCore } from '../pool/pool-core.js';
import { readMark } from '../services/lease-mark.js';
import { releaseBrowser, type ReleaseResult } from '../pool/release.js';
import { askFirst } from './confirm.js';
import { CliError, EXIT, ExitStatus } from './errors.js';
import type { Interruption } from './interruption.js';
import { ABOUT_TOKEN, addServiceOption, time, type ServiceOptions } from './options.js';
import { onePool, openPool, serviceOf, withService } from './service.js';
import { formatTable, note, printJson } from './terminal.js';
import { isError } from '../shared/globals.js';

export function define(command: Command, { signal }: Interruption): void {
  addServiceOption(command)
    .description('Lists the active leases of this library at a service, of all processes and machines.')
    .argument('[pool]', 'only the leases of this pool')
    .option('--release <id>', 'end this lease; can be repeated', collect)
    .option('--older-than <time>', 'end the leases that are older: 30m, 2h', time)
    .option('--yes', "don't ask; required without a terminal")
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (given: string | undefined, options: ServiceOptions) => {
      const { name: pool, ...at } = given === undefined ? { name: given } : await onePool(given, options);
      return leases({ ...options, ...at, pool, signal });
    });
}

const HELP = `
Only sessions with the tag of this library are listed and ended. A crashed machine leaves leases
behind until their inactivity timeout. The owner is the host and process that leased the browser.
The end is that of --lifetime (option lifetime) at the beginning. A lease that is listed after its
end was extended, or its process is gone.
${ABOUT_TOKEN}

Examples:
  $ pooled-browser leases
  $ pooled-browser leases scrapers --json | jq -r '.[].owner.host'
  $ pooled-browser leases --release 6b2c9d0e-5f1a-4c1e-9a55-1e2f3a4b5c6d
  $ pooled-browser leases --older-than 2h --yes`;

interface LeasesOptions extends ServiceOptions {
  release?: string[];
  /** In ms. */
  olderThan?: number;
  yes?: true;
  json?: true;
  pool: string | undefined;
  signal: AbortSignal;
}

interface ActiveLease extends ListedSession {
  lease: string;
  /** Since the acquire request, in ms, as far as the clocks of the machines agree. */
  age: number | undefined;
  /** Ms until the end of the lifetime with which the lease began; below 0 after it. */
  remaining: number | undefined;
  owner: { host: string; pid: number } | undefined;
}

async function leases(options: LeasesOptions): Promise<void> {
  const { release, olderThan, json, pool } = options;
  const { coreOf } = await import('../pool/pool-core.js');
  const all = await withService(options, (pool) => listLeases(coreOf(pool), options.signal));
  // A service may not say which pool a session belongs to.
  const isOfPool = ({ pool: name = pool, poolId }: ActiveLease) =>
    pool === undefined || name === pool || poolId === pool;
  const listed = all.filter(isOfPool);
  if (release === undefined && olderThan === undefined) return print(listed, json);
  const unknown = (release ?? []).find((id) => !listed.some((lease) => lease.id === id));
  if (unknown !== undefined)
    throw new CliError(`Session ${unknown} is no active lease of this library: nothing was ended.`);
  const isOld = ({ age }: ActiveLease) => olderThan !== undefined && age !== undefined && age > olderThan;
  const ended = listed.filter((lease) => release?.includes(lease.id) || isOld(lease));
  if (olderThan !== undefined) noteUnknownAges(listed);
  await endLeases(ended, options);
}

/** Most requested pages, and most listed sessions: the list of a broken service may have no end. */
const MOST_PAGES = 1000;
const MOST_SESSIONS = 10_000;

/** Requests all pages. A page without a new session is the last one: some services ignore the number of a page. */
async function listLeases({ client, service }: PoolCore, signal: AbortSignal): Promise<ActiveLease[]> {
  const { sessions } = service;
  if (!sessions) {
    const message = `The service ${service.name} has no list of sessions that shows which are of this library.`;
    throw new CliError(message, EXIT.usage);
  }
  const found = new Map<string, ListedSession>();
  let listed = 0;
  for (let page = 0; ; page++) {
    const request = sessions.list(page, listed);
    if (!request) break;
    if (page === MOST_PAGES || found.size >= MOST_SESSIONS) {
      note(`The list of sessions does not end: only the first ${found.size} sessions are used.`);
      break;
    }
    const before = found.size;
    const sessionsOfPage = readAs(await client.send(request, { facts: {}, signal }), {}, sessions.read);
    for (const session of sessionsOfPage) found.set(session.id, session);
    listed += sessionsOfPage.length;
    if (found.size === before) break;
  }
  return [...found.values()].flatMap((session) => activeLease(session, leasesAgain(service)) ?? []);
}

/** Returns the lease of a session; undefined for a session of another program. */
function activeLease(session: ListedSession, isLeasedAgain: boolean): ActiveLease | undefined {
  const { lease, mark, createdAt } = session;
  if (lease === undefined) return undefined;
  const owner = readMark(mark);
  // A session that is leased again is older than its lease.
  const since = Date.parse(owner?.at ?? (isLeasedAgain ? '' : (createdAt ?? '')));
  const age = Number.isNaN(since) ? undefined : Math.max(0, Date.now() - since);
  const lifetime = owner?.lifetime;
  const remaining = lifetime === undefined || age === undefined ? undefined : lifetime - age;
  return { ...session, lease, age, remaining, owner: owner && { host: owner.host, pid: owner.pid } };
}

function print(listed: readonly ActiveLease[], json: true | undefined): void {
  if (json)
    return void printJson(
      listed.map(({ id, name, pool, age, remaining, owner }) => ({
        session: id,
        name,
        pool,
        age,
        remaining,
        owner,
      })),
    );
  if (listed.length === 0) return note('There are no active leases of this library.');
  const rows = listed.map(({ id, name = '-', pool = '-', age, remaining, owner }) => [
    id,
    name,
    pool,
    age === undefined ? '-' : ageText(age),
    remaining === undefined ? '-' : endText(remaining),
    owner ? `${owner.host} ${owner.pid}` : '-',
  ]);
  process.stdout.write(
    `${formatTable([['session', 'name', 'pool', 'age', 'end', 'host and process'], ...rows]).join('\n')}\n`,
  );
}

function ageText(age: number): string {
  const seconds = Math.floor(age / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h ${minutes}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}

function endText(remaining: number): string {
  return remaining < 0 ? `${ageText(-remaining)} ago` : `in ${ageText(remaining)}`;
}

function noteUnknownAges(listed: readonly ActiveLease[]): void {
  const count = listed.filter(({ age }) => age === undefined).length;
  if (count > 0)
    note(
      `${count === 1 ? 'The age of 1 lease is' : `The ages of ${count} leases are`} unknown: end each with --release.`,
    );
}

async function endLeases(ended: readonly ActiveLease[], options: LeasesOptions): Promise<void> {
  const { yes, json, signal } = options;
  if (ended.length === 0) {
    if (json) printJson([]);
    else note('No lease is that old.');
    return;
  }
  const { service } = await serviceOf(options);
  const homeless = ended.find((lease) => (lease.pool ?? options.pool) === undefined);
  if (homeless && service.pool)
    throw new CliError(
      `The service does not say which pool session ${homeless.id} belongs to. Add the pool: pooled-browser leases <pool>.`,
      EXIT.usage,
    );
  if (!yes) {
    if (!json) print(ended, undefined);
    const what = ended.length === 1 ? 'this lease' : `these ${ended.length} leases`;
    const question = `End ${what}? A program that still uses one loses its browser.`;
    await askFirst(question, 'No lease was ended.', signal);
  }
  const results: { session: string; result: ReleaseResult }[] = [];
  for (const lease of ended) results.push({ session: lease.id, result: await endLease(lease, options) });
  if (json) printJson(results);
  else for (const { session, result } of results) process.stdout.write(`${session}  ${RESULTS[result]}\n`);
  if (results.some(({ result }) => result === 'failed' || result === 'unknown'))
    throw new ExitStatus(EXIT.failed);
}

const RESULTS: Readonly<Record<ReleaseResult, string>> = {
  released: 'ended',
  gone: 'had ended before',
  failed: 'could not be ended',
  unknown: 'may have ended: the answer of the service does not say',
};

/** In ms. */
const RELEASE_TIMEOUT = 15_000;

/** Ends a lease, if the session still shows its tag: meanwhile the session may belong to another lease. */
async function endLease(
  { id, lease, pool: name }: ActiveLease,
  options: LeasesOptions,
): Promise<ReleaseResult> {
  const { coreOf } = await import('../pool/pool-core.js');
  await using opened = await openPool(name ?? options.pool ?? 'unknown', options);
  const pool = coreOf(opened);
  const request = { pool: pool.idOrName, id: lease, keepAlive: false, record: false };
  const ticket = pool.ticketOf(id, request, true)!;
  const facts = { pool: pool.idOrName, sessionId: id };
  let cause: unknown;
  const result = await releaseBrowser(ticket, {
    reuses: false,
    timeout: RELEASE_TIMEOUT,
    prior: 'unknown',
    send: pool.releases.sender(facts, (why) => (cause = why)),
  });
  if (result === 'failed' && isError(cause)) note(cause.message);
  return result;
}

/** Collects the values of an option that can be repeated. */
function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
