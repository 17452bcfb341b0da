/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON (see
 * `ReleaseMessage`). At the end it releases the remaining leases, and writes one line when it has finished.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { delay } from '../shared/clock.js';
import { isRecord } from '../shared/json.js';
import { isLoopback } from '../shared/urls.js';
import { authorize, type CompleteRequest } from './complete-request.js';
import { ANY_ID, idsIn, type SearchTicket } from './search.js';
import { releaseBrowser, type ReleasePlan, type ReleaseTicket } from './release.js';
import type { HelperTicket, ReleaseMessage } from './release-helper.js';

/** Timeout of each request, and of a whole release, in ms. */
const REQUEST_TIMEOUT = 5000;
const RELEASE_TIMEOUT = 60_000;
/** Milliseconds that the service gets to process the last request of the process that ended. */
const PROCESSING = 500;

const held = new Map<number, HelperTicket>();
const sent = new Set<number>();
let token: string | undefined;
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
    const response = await fetch(url, {
      method: request.method,
      headers: { ...headers, 'content-type': 'application/json' },
      ...(request.body && { body: JSON.stringify(request.body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(Math.min(timeout, REQUEST_TIMEOUT)),
    });
    const json = request.method === 'GET' && response.ok ? ((await response.json()) as unknown) : undefined;
    return { status: response.status, isSent: true, json };
  } catch (error) {
    return { isSent: true, isFinal: isLocalAndOver(url, error as Error) };
  }
}

/** Returns true for a service on this machine that has ended: it has no browsers. */
function isLocalAndOver({ hostname }: URL, { cause }: Error): boolean {
  const isRefused = isRecord(cause) && cause['code'] === 'ECONNREFUSED';
  return isRefused && isLoopback(hostname);
}
