/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON (see
 * `ReleaseMessage`). At the end it releases the remaining leases, and writes one line when it has finished.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { delay } from '../shared/clock.js';
import { parseJson } from '../shared/json.js';
import type { Route } from '../shared/network.js';
import { isLoopback } from '../shared/urls.js';
import { releaseBrowser, type ReleasePlan } from './release.js';
import type { HelperTicket, ReleaseMessage } from './release-helper.js';
import { sendOnce } from './http.js';
import { isSuccess } from './status.js';
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

const held = new Map<number, HelperTicket>();
const sent = new Set<number>();
let token: string | undefined;
let route: Route = {};
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as ReleaseMessage;
  if ('end' in message) break;
  read(message);
}
const results = await Promise.allSettled([...held].map(([lease, ticket]) => finish(ticket, sent.has(lease))));
process.stdout.write('finished\n');
// A request of a process that exits stays open until its end, and may lease a browser until then.
const lateSearches = results.flatMap((result) => (result.status === 'fulfilled' ? (result.value ?? []) : []));
if (lateSearches.length > 0) {
  if (!process.stdin.readableEnded) await once(process.stdin.resume(), 'end');
  await Promise.allSettled(lateSearches.map((ticket) => finish(ticket, false)));
}
process.stdin.destroy();

function read(message: Exclude<ReleaseMessage, { end: true }>): void {
  if ('token' in message) ({ token } = message);
  else if ('route' in message) ({ route } = message);
  else if ('hold' in message) held.set(message.lease, message.hold);
  else if ('sent' in message) sent.add(message.sent);
  else {
    held.delete(message.drop);
    sent.delete(message.drop);
  }
}

/** Resolves to a search that found nothing. */
async function finish(ticket: HelperTicket, isSent: boolean): Promise<SearchTicket | undefined> {
  const isSearch = 'search' in ticket;
  if (isSearch || isSent) await delay(PROCESSING);
  if (!isSearch) await release(ticket, isSent);
  else if ((await releaseFound(ticket)) === 0) return ticket;
  return undefined;
}

/** Releases the browser for destruction, so that a repeated request can't end another lease. */
async function release(ticket: ReleaseTicket, isSent: boolean): Promise<void> {
  const doubt = isSent ? 'unknown' : 'none';
  await releaseBrowser(ticket, { reuses: false, timeout: RELEASE_TIMEOUT, doubt, send });
}

/** Releases the browser of an acquire request whose response nobody read. Resolves to the number of browsers. */
async function releaseFound({ search, found, ...where }: SearchTicket): Promise<number> {
  const { json } = await send(search, REQUEST_TIMEOUT);
  const tickets = idsIn(json, where).map(
    (id) => JSON.parse(JSON.stringify(found).replaceAll(ANY_ID, id)) as ReleaseTicket,
  );
  await Promise.all(tickets.map((ticket) => release(ticket, false)));
  return tickets.length;
}

async function send(request: CompleteRequest, timeout: number): ReturnType<ReleasePlan['send']> {
  const { url, headers } = authorize(request, token);
  try {
    const { method, body } = request;
    const signal = AbortSignal.timeout(Math.min(timeout, REQUEST_TIMEOUT));
    const response = await sendOnce({ url, method, headers, body }, { route, signal });
    const isRecord = method === 'GET' && isSuccess(response.status);
    // A record that can't be read throws: it does not show whose lease the session is.
    const json = isRecord ? parseJson(response.body) : undefined;
    return { status: response.status, isSent: true, json };
  } catch (error) {
    return { isSent: true, isFinal: isLocalAndOver(url, error as Error) };
  }
}

/** Returns true for a service on this machine that has ended: it has no browsers. */
function isLocalAndOver({ hostname }: URL, { code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' && isLoopback(hostname);
}
