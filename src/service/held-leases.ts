import { environment } from '../shared/environment.js';
import { ownOrigins, beforeProcessEnds, END_TIMEOUT } from '../shared/process-end.js';
import { giveBack, type Releaser } from './release.js';
import { RELEASE_PROCESS, type ReleaseTicket } from './release-ticket.js';
import { watchLease } from './watcher.js';

/** Gives a pool's release requests in writing. */
export const TICKET: unique symbol = Symbol('pooled-browser.ticket');

/** What it takes to give back a browser of a pool, with time to spare and without. */
export interface LeaseHolder extends Releaser {
  [TICKET](sessionId: string): ReleaseTicket | undefined;
}

interface HeldLease {
  pool: LeaseHolder;
  sessionId: string;
}

const held = new Set<HeldLease>();
let unguard: (() => void) | undefined;

/**
 * From now on this process owes this browser's release, and sees to it even when it ends; with `watch`, another
 * process does when this one is killed. The returned function says that nothing is owed any more.
 */
export function holdLease(pool: LeaseHolder, sessionId: string, { watch = false } = {}): () => void {
  const lease = { pool, sessionId };
  const ticket = watch ? pool[TICKET](sessionId) : undefined;
  const unwatch = ticket && watchLease(ticket);
  held.add(lease);
  unguard ??= beforeProcessEnds({ atExit: releaseInProcess, beforeEnd: releaseAll });
  return () => {
    unwatch?.();
    if (!held.delete(lease) || held.size > 0) return;
    unguard?.();
    unguard = undefined;
  };
}

/** Releases what is held, and what is granted meanwhile. Destroyed: nobody has swept these browsers. */
async function releaseAll(): Promise<void> {
  const deadline = performance.now() + END_TIMEOUT;
  while (held.size > 0 && performance.now() < deadline) {
    const leases = [...held];
    const timeout = Math.max(1, deadline - performance.now());
    await Promise.allSettled(
      leases.map(({ pool, sessionId }) => giveBack(pool, sessionId, { reuse: false, timeout })),
    );
    for (const lease of leases) held.delete(lease);
  }
}

/** At exit nothing asynchronous runs any more: a process of its own sends the requests while this one waits for it. */
function releaseInProcess(): void {
  const tickets = [...held].flatMap(({ pool, sessionId }) => pool[TICKET](sessionId) ?? []);
  const reachable = tickets.filter(({ url }) => !ownOrigins.has(new URL(url).origin));
  if (reachable.length === 0) return;
  const env = environment.forChild();
  // Loaded here: few processes come to this.
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  // Through a pipe: everyone on the machine can read a process's arguments.
  const input = reachable.map((ticket) => `${JSON.stringify({ hold: ticket })}\n`).join('');
  spawnSync(process.execPath, [RELEASE_PROCESS], {
    input,
    env,
    timeout: END_TIMEOUT,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
}
