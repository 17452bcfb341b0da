/**
 * A process of its own that gives browsers back for one that can't any more. It reads lines of JSON: `{"hold": ticket}`
 * for a lease that is owed, `{"drop": sessionId}` for one that is not any more. When its input ends, because the other
 * process is done or dead, it releases what is left.
 */
import { createInterface } from 'node:readline';
import type { ReleaseTicket } from './release-ticket.js';

/** Milliseconds for each request, and how often it is sent while the service does not confirm. */
const REQUEST_TIMEOUT = 5000;
const TRIES = 3;

const owed = new Map<string, ReleaseTicket>();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as { hold?: ReleaseTicket; drop?: string };
  if (message.hold) owed.set(message.hold.body.session_id, message.hold);
  if (message.drop) owed.delete(message.drop);
}
await Promise.all([...owed.values()].map(release));

async function release(ticket: ReleaseTicket): Promise<void> {
  for (let attempt = 0; attempt < TRIES; attempt++) if (await isConfirmed(ticket)) return;
}

/** 404 confirms it too: the session is gone. */
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
