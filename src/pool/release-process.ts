/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON (see
 * `ReleaseMessage`). At the end it releases the remaining leases, and writes one line when it has finished.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { delay } from '../shared/clock.js';
import type { Route } from '../shared/network.js';
import { isLoopback } from '../shared/urls.js';
import { releaseBrowser, type Reply } from './release.js';
import type { HelperLease, ReleaseMessage } from './release-helper.js';
import { sendOnce } from '../net/http.js';
import { jsonOf } from '../shared/json.js';
import { isSuccess } from '../net/status.js';
import {
  ANY_ID,
  authorize,
  idsIn,
  type CompleteRequest,
  type ReleaseTicket,
  type SearchTicket,
} from './tickets.js';

/** Timeout of each request, and of a whole release, in ms. */
const REQUEST_TIMEOUT = 5000;
const RELEASE_TIMEOUT = 60_000;
/** Milliseconds that the service gets to process the last request of the process that ended. */
const PROCESSING = 500;

const leases = new Map<number, HelperLease>();
let token: string | undefined;
let route: Route = {};
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as ReleaseMessage;
  if ('end' in message) break;
  if ('route' in message) ({ route } = message);
  else if (!('lease' in message)) ({ token } = message);
  else if (message.held) leases.set(message.lease, message.held);
  else leases.delete(message.lease);
}
const results = await Promise.allSettled([...leases.values()].map(finish));
process.stdout.write('finished\n');
// A request of a process that exits stays open until its end, and may lease a browser until then.
const lateSearches = results.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : []));
if (lateSearches.length > 0) {
  if (!process.stdin.readableEnded) await once(process.stdin.resume(), 'end');
  await Promise.allSettled(lateSearches.map(finish));
}
process.stdin.destroy();

/** Resolves to a search that found nothing. */
async function finish(lease: HelperLease): Promise<HelperLease | undefined> {
  const { ticket, isSent } = lease;
  const isSearch = 'search' in ticket;
  if (isSearch || isSent) await delay(PROCESSING);
  if (!isSearch) await release(ticket, isSent);
  else if ((await releaseFound(ticket)) === 0) return lease;
  return undefined;
}

/** Releases the browser for destruction, so that a repeated request can't end another lease. */
async function release(ticket: ReleaseTicket, isSent: boolean): Promise<void> {
  const doubt = isSent ? 'unknown' : 'none';
  await releaseBrowser(ticket, { reuses: false, timeout: RELEASE_TIMEOUT, doubt, send });
}

/** Releases the browser of an acquire request whose response nobody read. Resolves to the number of browsers. */
async function releaseFound({ search, found, ...where }: SearchTicket): Promise<number> {
  const { status = 0, body = '' } = await send(search, REQUEST_TIMEOUT);
  const ids = isSuccess(status) ? idsIn(jsonOf(body), where) : [];
  const tickets = ids.map((id) => JSON.parse(JSON.stringify(found).replaceAll(ANY_ID, id)) as ReleaseTicket);
  await Promise.all(tickets.map((ticket) => release(ticket, false)));
  return tickets.length;
}

async function send(request: CompleteRequest, timeout: number): Promise<Reply> {
  const { url, headers } = authorize(request, token);
  try {
    const { method, body } = request;
    const signal = AbortSignal.timeout(Math.min(timeout, REQUEST_TIMEOUT));
    const { status, body: text } = await sendOnce({ url, method, headers, body }, { route, signal });
    return { status, body: text, isSent: true };
  } catch (error) {
    return { isSent: true, isFinal: isLocalAndOver(url, error as Error) };
  }
}

/** Returns true for a service on this machine that has ended: it has no browsers. */
function isLocalAndOver({ hostname }: URL, { code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' && isLoopback(hostname);
}
