/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON (see
 * `ReleaseMessage`), and at the end of its input releases the remaining leases.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { LinkedAbort } from '../shared/abort.js';
import { clock, delay } from '../shared/clock.js';
import { jsonOf } from '../shared/json.js';
import type { Route } from '../shared/network.js';
import type { HelperCommand } from '../shared/runtime.js';
import { isLoopback } from '../shared/urls.js';
import { releaseBrowser, releaseFound, replyOf, type Reply } from './release.js';
import type { HelperLease, ReleaseMessage } from './release-helper.js';
import { sendOnce } from '../net/http.js';
import { authorize, type CompleteRequest, type ReleaseTicket } from './tickets.js';

/** Timeout of each request, and of a whole release, in ms. */
const REQUEST_TIMEOUT = 5000;
const RELEASE_TIMEOUT = 60_000;
/** Milliseconds that the service gets to process the last request of the process that ended. */
const PROCESSING = 500;
const POLL_INTERVAL = 10;

interface ReceivedTicket extends HelperLease {
  /** When the message arrived. */
  readonly since: number;
  /** Only time can help: the process that ended does not wait for it. */
  isLate?: boolean;
}

const leases = new Map<number, ReceivedTicket>();
let token: string | undefined;
let route: Route = {};
let awaited: Extract<ReleaseMessage, { isAwaited: number }> | undefined;
// The process that reads stderr may have ended. A write to its closed pipe must not end this process.
process.stderr.on('error', () => {});
for await (const line of createInterface({ input: process.stdin })) {
  const message = jsonOf(line) as ReleaseMessage | undefined;
  // A process that was killed can have written only a part of its last line.
  if (!message) continue;
  if ('route' in message) ({ route } = message);
  else if ('isAwaited' in message) awaited = message;
  else if (!('lease' in message)) ({ token } = message);
  else if (message.held) leases.set(message.lease, { ...message.held, since: clock.now() });
  else leases.delete(message.lease);
}
const began = clock.now();
const results = [...leases].map(async ([lease, held]) => {
  await finish(held).catch(() => {});
  leases.delete(lease);
});
if (awaited === undefined) await Promise.all(results);
else {
  const { isAwaited, further } = awaited;
  const isWaiting = () => [...leases.values()].some(({ isLate }) => !isLate);
  while (isWaiting() && clock.now() - began < isAwaited) await delay(POLL_INTERVAL);
  if (leases.size > 0) await continueInFurtherProcess(further);
  // oxlint-disable-next-line unicorn/no-process-exit -- the further process continues what is still under way
  process.exit();
}

/** Ends with the release of the browser. */
async function finish(held: ReceivedTicket): Promise<void> {
  const { ticket, isReuseSent } = held;
  if ('search' in ticket) {
    await delay(PROCESSING);
    const timeLeft = () => Math.max(0, (held.within ?? 0) - (clock.now() - held.since));
    const onNothing = () => (held.isLate = true);
    return releaseFound(ticket, { timeLeft, send, release, onNothing });
  }
  if (isReuseSent) await delay(PROCESSING);
  await release(ticket, isReuseSent);
}

/** Releases the browser for destruction, so that a repeated request can't end another lease. */
async function release(ticket: ReleaseTicket, isReuseSent = false): Promise<void> {
  const prior = isReuseSent ? 'unknown' : 'none';
  await releaseBrowser(ticket, { reuses: false, timeout: RELEASE_TIMEOUT, prior, send });
}

/** Lets a further process continue, because the process that ended waits for this one. */
async function continueInFurtherProcess({
  command,
  args,
}: Pick<HelperCommand, 'command' | 'args'>): Promise<void> {
  const child = spawn(command, args, {
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  const passed = [...leases].map(([lease, { ticket, isReuseSent, within = 0, since }]) => {
    const left = Math.max(0, within - (clock.now() - since));
    return { lease, held: { ticket, isReuseSent, within: left } };
  });
  const messages: ReleaseMessage[] = [{ route }, { token }, ...passed];
  child.stdin.end(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  await finished(child.stdin);
}

async function send(request: CompleteRequest, timeout: number): Promise<Reply> {
  const { url, headers } = authorize(request, token);
  const limit = new LinkedAbort(undefined, Math.min(timeout, REQUEST_TIMEOUT));
  try {
    const { method, body } = request;
    return replyOf(await sendOnce({ url, method, headers, body }, { route, signal: limit.signal }));
  } catch (error) {
    return { isSent: true, isFinal: isLocalAndOver(url, error as Error) };
  } finally {
    limit.dispose();
  }
}

/** Returns true for a service on this machine that has ended: it has no browsers. */
function isLocalAndOver({ hostname }: URL, { code }: NodeJS.ErrnoException): boolean {
  return code === 'ECONNREFUSED' && isLoopback(hostname);
}
