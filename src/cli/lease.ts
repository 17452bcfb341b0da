import { hostname } from 'node:os';
import type { RunEvent } from '../calls/events.js';
import { leaseSession } from '../calls/lease-browser.js';
import type { RunSummary } from '../calls/run.js';
import type { Connector } from '../drivers/connector.js';
import type { Pools } from '../pool/browser-pool.js';
import type { Grant, Replay } from '../services/browser-service.js';
import type { BrowserSession } from '../services/kernel-api.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { duration, sentence } from '../shared/errors.js';
import { isLeaseExpiredError, type LeaseExpiredError } from '../shared/lease-errors.js';
import { PoolConnectionError } from '../shared/service-errors.js';
import { leaseSettings, type LeaseCommandOptions } from './options.js';
import { withFlags } from './report-error.js';
import { note, oneLine } from './terminal.js';
import { environment } from '../shared/environment.js';

/** A leased browser that another program drives. The caller must call `end`. */
interface SessionLease<Handles> extends AsyncDisposable {
  readonly lease: Awaited<ReturnType<typeof leaseSession<BrowserSession, Handles>>>;
  /** The leased browser. */
  readonly grant: Grant;
  /** Lists the recordings and releases the browser, once. Never rejects; failures are printed on stderr. */
  end(): Promise<RunSummary>;
}

/**
 * Leases a browser without connecting to it. The browser is released however this process ends.
 *
 * @param signal Aborts the wait for a browser. Once there is one, only `end` ends the lease.
 * @param connector For the connection that exposes hosts, or records.
 */
export async function leaseFromCommand<Handles = never>(
  pool: Pools,
  { signal, ...options }: LeaseCommandOptions & { signal: AbortSignal },
  connector?: Connector<Handles>,
): Promise<SessionLease<Handles>> {
  const { exposeNetwork, allowedHosts: _notHere, ...settings } = leaseSettings(options);
  const isBeside = exposeNetwork !== undefined || settings.replays === 'record';
  const acquiring = new LinkedAbort(signal);
  const lease = await leaseSession(
    pool,
    {
      ...settings,
      // Nothing cleans up behind the other program.
      release: settings.release === 'auto' ? 'destroy' : settings.release,
      signal: acquiring.signal,
      onEvent: createLeaseLog(options.acquireTimeout),
    },
    connector && isBeside ? { connector, exposeNetwork } : undefined,
  ).catch((error: unknown) => {
    if (signal.aborted) note(INTERRUPTED);
    throw error;
  });
  acquiring.dispose();
  const { grant } = lease.context;
  const end = () => lease.end({ status: 'ok' });
  const { signal: over } = lease.context;
  // The program has the address of the service, and may go on.
  onAbort(over, () => {
    if (isLeaseExpiredError(over.reason))
      void lease.end({ status: 'failed', error: over.reason, isInUse: true });
  });
  return { lease, grant, end, [Symbol.asyncDispose]: async () => void (await end()) };
}

const INTERRUPTED =
  'Waiting up to 5 s for the response to the last acquire request, to release the browser if it leases one. ' +
  'Press Ctrl-C again to quit immediately.';

/**
 * Creates a listener that prints what delays a lease or fails in it; the same message in a row is printed once.
 *
 * @param acquireTimeout Total time to wait for a browser, in ms.
 */
export function createLeaseLog(acquireTimeout: number, print = note): (event: RunEvent) => void {
  let last: string | undefined;
  const shown = new Set<string>();
  return (event) => {
    const description = describeEvent(event, acquireTimeout);
    const text = description && withFlags(description);
    if (text === undefined || text === last) return;
    if (event.type === 'host-exposed' || event.type === 'request-refused') {
      // Each lease of a job emits the event.
      if (shown.has(text)) return;
      shown.add(text);
    }
    last = text;
    print(text);
  };
}

/** Milliseconds of a wait for a free browser that is not worth a line. */
const SHORT_WAIT = 3000;

function describeEvent(event: RunEvent, acquireTimeout: number): string | undefined {
  switch (event.type) {
    case 'waiting': {
      if (!event.error && event.waited < SHORT_WAIT) return undefined;
      const reason = event.error ? oneLine(event.error.message) : `No browser is free in pool ${event.pool}.`;
      // A service that was never reached is given up earlier.
      if (event.error instanceof PoolConnectionError) return `${reason} Retrying.`;
      return `${sentence(reason)} Retrying for up to ${duration(acquireTimeout)} in total.`;
    }
    case 'failover': {
      const reason = event.error
        ? sentence(oneLine(event.error.message))
        : `Pool ${event.from} has no browser.`;
      return `${reason} The next pool is asked: ${event.to}.`;
    }
    case 'acquired':
      return liveViewHere(event.session);
    case 'outcome-unknown':
      return `${oneLine(event.error.message)} A browser may be leased now, until its inactivity timeout ends the lease.`;
    case 'release-failed':
      return oneLine(event.error.message);
    case 'recording-unavailable':
      return `Not recorded: ${oneLine(event.error.message)}`;
    case 'lease-expiring':
      return `${leaseOf(event, event.sessionId)} ends in ${duration(event.remaining)} (--lifetime).`;
    case 'ended':
      return isLeaseExpiredError(event.error) ? describeExpiry(event, event.error) : undefined;
    case 'host-exposed':
      return `The browser reaches ${oneLine(event.host)} through this machine.`;
    case 'request-refused':
      return `The browser did not load from ${oneLine(event.host)}, which is not allowed.`;
    case 'handoff':
      return describeHandoff(event);
    case 'handoff-answered':
      return `${forBrowser(event)}${ANSWERS[event.status]}`;
    case 'replays':
      return event.error && `The replays could not be listed: ${oneLine(event.error.message)}`;
    default:
      return undefined;
  }
}

/** A live view of this machine. The link to one of a service is a secret that a log must not show. */
function liveViewHere({ browser_live_view_url: text = '' }: BrowserSession): string | undefined {
  return isHere(text) ? `Live view: ${new URL(text).href}` : undefined;
}

/** Whether a link is one of a local pool. */
function isHere(link: string): boolean {
  return URL.canParse(link) && new URL(link).hostname === '127.0.0.1';
}

/** Names the lease in the path of a proxy, or of --name. */
function leaseOf({ name }: { name?: string }, sessionId?: string): string {
  const lease = name === undefined ? 'The lease' : `The lease ${oneLine(name)}`;
  return sessionId === undefined ? lease : `${lease} of session ${sessionId}`;
}

/** The advice of the error is for code: not each command can extend a lease. */
function describeExpiry(event: { name?: string }, { lifetime }: LeaseExpiredError): string {
  return `${leaseOf(event)} reached its lifetime of ${duration(lifetime)}: its browser is released. For longer work, increase --lifetime.`;
}

function forBrowser({ name }: { name?: string }): string {
  return name === undefined ? '' : `${oneLine(name)}: `;
}

const ANSWERS = {
  done: 'The person answered: Done.',
  declined: 'The person answered: Cannot be done.',
  timeout: 'Nobody answered in time.',
  ended: 'The hand-off ended without an answer.',
} as const;

/** The bell of the terminal calls the person. */
function describeHandoff(event: { name?: string; url: string; message: string }): string {
  const { url, message } = event;
  if (process.stderr.isTTY) process.stderr.write('\u0007');
  const { port } = new URL(url);
  const tunnel = environment.isOverSsh()
    ? `\nOn your own machine, forward the port first: ssh -L ${port}:127.0.0.1:${port} ${hostname()}`
    : '';
  return `${forBrowser(event)}A person is needed: ${oneLine(message)}\nOpen ${url}${tunnel}`;
}

/** Describes each recording of a lease. */
export function describeReplays({ replays }: { replays: readonly Replay[] }): string[] {
  // No field of a replay is required.
  return replays.map(({ name, finished_at: finished, replay_view_url: url, replay_id: id }) => {
    const title = name === undefined ? '' : `${oneLine(name)}: `;
    const link = url ?? id ?? 'without a link';
    const ends = isHere(link) ? ' (while the pool runs)' : '';
    return `replay ${title}${link}${finished === undefined ? ' (not finished yet)' : ''}${ends}`;
  });
}
