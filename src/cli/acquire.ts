import { once } from 'node:events';
import type { Command } from 'commander';
import { onAbort } from '../shared/abort.js';
import type { Grant } from '../services/browser-service.js';
import { isLeaseExpiredError } from '../shared/lease-errors.js';
import { EXIT, ExitStatus } from './errors.js';
import type { Interruption } from './interruption.js';
import type { RunSummary } from '../calls/run.js';
import { ABOUT_TOKEN, addLeaseOptions, addPoolArgument, type LeaseCommandOptions } from './options.js';
import { openPools } from './service.js';
import { formatTable, note, printJson } from './terminal.js';

export function define(command: Command, { signal }: Interruption): void {
  addPoolArgument(addLeaseOptions(command))
    .description('Leases a browser, prints its addresses, and releases it at Ctrl-C or after --lifetime.')
    .option('--name <name>', 'name of the lease')
    .option('--until-eof', 'release the browser also when stdin ends: when the parent program is gone')
    .option('--json', 'print JSON, one line per event')
    .addHelpText('after', HELP)
    .action(async (pool: string, options: AcquireOptions) => acquire(pool, options, signal));
}

const HELP = `${ABOUT_TOKEN}

The addresses contain secrets: everybody with an address can control the browser. They are printed
on stdout; all other messages are printed on stderr. While nothing is connected to the browser, the
service keeps it only for the printed number of seconds.

Examples:
  $ pooled-browser acquire scrapers
  $ pooled-browser acquire scrapers --name by-hand --tag who=ada --start-url https://example.com
  $ pooled-browser acquire scrapers --json | jq -r --unbuffered '.session.cdp_ws_url // empty'`;

interface AcquireOptions extends LeaseCommandOptions {
  untilEof?: true;
  json?: true;
}

/** Leases a browser and holds it until a signal, or the end of stdin. */
async function acquire(poolList: string, options: AcquireOptions, signal: AbortSignal): Promise<void> {
  await using pools = await openPools(poolList, options);
  const { describeReplays, leaseFromCommand } = await import('./lease.js');
  const { relay } = await import('../drivers/relay.js');
  await using lease = await leaseFromCommand(pools, { ...options, signal }, relay(false));
  const { grant } = lease;
  const { revealSession } = await import('../pool/session.js');
  // The JSON of a session hides its secrets, which are the result of this command.
  if (options.json) printJson({ type: 'acquired', session: revealSession(grant.session) });
  else process.stdout.write(`${describeBrowser(grant)}\n`);
  note(
    `The browser is leased until ${options.untilEof ? 'stdin ends or ' : ''}Ctrl-C.` +
      (grant.idleTimeout === undefined
        ? ''
        : ` The service destroys it after ${idleTime(grant.idleTimeout)}.`),
  );
  await waitForEnd(signal, lease.lease.context.signal, options);
  const end = await lease.end();
  const { released, replays, replayStatus } = end;
  if (options.json) printJson({ type: 'released', released, replays, replayStatus });
  else [...describeReplays(end), ...describeRelease(end)].forEach(note);
  if (released === 'failed' || released === 'unknown') throw new ExitStatus(EXIT.failed);
}

function describeBrowser({ id, cdpUrl, bidiUrl, liveViewUrl, idleTimeout }: Grant): string {
  return formatTable([
    ['session', id],
    ['cdp', cdpUrl ?? 'none'],
    ['webdriver', bidiUrl ?? 'none'],
    ['live view', liveViewUrl ?? 'none'],
    ['timeout', idleTimeout === undefined ? 'unknown' : idleTime(idleTimeout)],
  ]).join('\n');
}

function idleTime(milliseconds: number): string {
  return `${milliseconds / 1000} s without a connection`;
}

/** Resolves at a signal, at the end of the lease's lifetime, or at the end of stdin. Never rejects. */
async function waitForEnd(
  signal: AbortSignal,
  over: AbortSignal,
  { untilEof }: AcquireOptions,
): Promise<void> {
  // Listening for a signal does not keep a process alive.
  const awake = setInterval(() => {}, 60_000);
  const stopped = new Promise<void>((resolve) => {
    onAbort(signal, resolve);
    onAbort(over, () => {
      if (isLeaseExpiredError(over.reason)) resolve();
    });
  });
  const ends: Promise<unknown>[] = [stopped];
  if (untilEof) ends.push(once(process.stdin.resume(), 'close').catch(() => {}));
  await Promise.race(ends);
  if (untilEof) process.stdin.destroy();
  clearInterval(awake);
}

/** A failed release is reported separately. */
function describeRelease({ released }: RunSummary): string[] {
  if (released === 'reused') return ['Released: the browser is back in its pool.'];
  return released === 'destroyed' ? ['Released: the browser is destroyed.'] : [];
}
