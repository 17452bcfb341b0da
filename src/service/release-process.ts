/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON (see
 * `ReleaseMessage`). At the end it releases the remaining leases, and writes one line when it has finished.
 */
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../shared/json.js';
import { withRetries } from '../shared/retry.js';
import { isLoopback } from '../shared/urls.js';
import { bearsMark } from './ownership.js';
import type { ReleaseMessage, ReleaseTicket } from './release-helper.js';

/** Timeout of each request in ms. */
const REQUEST_TIMEOUT = 5000;
const RETRIES = 8;
/** Milliseconds that the service gets to process the release of the process that ended. */
const PROCESSING = 500;

const held = new Map<number, ReleaseTicket>();
const sent = new Set<number>();
let token = '';
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as ReleaseMessage;
  if ('end' in message) break;
  read(message);
}
await Promise.allSettled([...held].map(([lease, ticket]) => release(ticket, sent.has(lease))));
process.stdout.write('finished\n');
// The input may still be open.
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

/** Releases the browser for destruction, so that a repeated request can't end another lease. */
async function release(ticket: ReleaseTicket, isInDoubt: boolean): Promise<void> {
  if (isInDoubt) await sleep(PROCESSING);
  const attempt = async () => {
    if (isInDoubt && !(await isStillOurs(ticket))) return;
    const response = await send('POST', ticket.releaseUrl, { session_id: ticket.sessionId, reuse: false });
    // 404 is a confirmation too: the session no longer exists.
    if (!response.ok && response.status !== 404) throw new Error(`Status ${response.status}`);
  };
  const backoff = { retries: RETRIES, minTimeout: 200, maxTimeout: 10_000, randomize: true };
  await withRetries(attempt, { ...backoff, shouldRetry: ({ error }) => !isLocalAndOver(ticket, error) });
}

/** Returns true for a service on this machine that has ended: it has no browsers. */
function isLocalAndOver({ releaseUrl }: ReleaseTicket, { cause }: Error): boolean {
  const isRefused = isRecord(cause) && cause['code'] === 'ECONNREFUSED';
  return isRefused && isLoopback(new URL(releaseUrl).hostname);
}

async function isStillOurs({ sessionUrl, mark }: ReleaseTicket): Promise<boolean> {
  if (!mark) return false;
  const response = await send('GET', sessionUrl);
  if (response.status >= 500) throw new Error(`Status ${response.status}`);
  return response.ok && bearsMark(await response.json(), mark);
}

function send(method: string, url: string, body?: object): Promise<Response> {
  return fetch(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    redirect: 'error',
    signal: AbortSignal.timeout(REQUEST_TIMEOUT),
  });
}
