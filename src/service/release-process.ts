/**
 * A separate process that releases browsers for a process that exits or was killed. It reads lines of JSON:
 * `{"hold": ticket}` adds a lease, `{"drop": sessionId}` removes it. When its input ends, it releases the remaining leases.
 */
import { createInterface } from 'node:readline';
import type { ReleaseTicket } from './held-leases.js';

/** Timeout of each request in ms, and the number of attempts until the service confirms. */
const REQUEST_TIMEOUT = 5000;
const ATTEMPTS = 3;

const held = new Map<string, ReleaseTicket>();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as { hold?: ReleaseTicket; drop?: string };
  if (message.hold) held.set(message.hold.body.session_id, message.hold);
  if (message.drop) held.delete(message.drop);
}
await Promise.all([...held.values()].map(release));

async function release(ticket: ReleaseTicket): Promise<void> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) if (await isConfirmed(ticket)) return;
}

/** 404 is a confirmation too: the session no longer exists. */
async function isConfirmed({ url, token, body }: ReleaseTicket): Promise<boolean> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_TIMEOUT),
    });
    return response.ok || response.status === 404;
  } catch {
    return false;
  }
}
