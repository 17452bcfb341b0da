import { onAbort } from '../shared/abort.js';
import { clock, delay, startTimer } from '../shared/clock.js';
import { longestWait, requestedLease, type GrantRequest } from './grant-request.js';
import { releaseFound, searchOnce, type SearchPlan } from './release.js';
import type { ReleaseTicket, SearchTicket } from './tickets.js';

/** Time to release a browser that no caller received, in ms. */
const ORPHAN_TIMEOUT = 30_000;
/** Milliseconds that the service gets to process a request whose response was lost, before a search. */
const PROCESSING = 250;

/**
 * Searches for the browser of a lost response, and releases it. Resolves to true if there was one, and it is released. Otherwise,
 * the search goes on in the background.
 */
export async function releaseLost(request: GrantRequest, sentAt: number): Promise<boolean> {
  const { pool, lease } = request;
  const ticket = pool.searchOf(lease);
  if (!ticket) return false;
  const send = pool.releases.sender({ pool: pool.idOrName });
  const release = ({ id }: ReleaseTicket) => releaseOrphan(id, pool.ticketOf(id, lease), request);
  await delay(PROCESSING);
  const { found } = await searchOnce(ticket, send);
  const results = await Promise.all(found.map(release));
  const isReleased = results.length > 0 && results.every(Boolean);
  if (!isReleased) keepSearching(request, ticket, { sentAt, send, release });
  return isReleased;
}

/** Pause after the first search, in ms. */
const SEARCH_INTERVAL = 500;

/**
 * Searches for the browser of a lost response as long as the service can still lease it, in the background: neither the process
 * nor `pool.close()` waits for that time.
 */
function keepSearching(
  request: GrantRequest,
  ticket: SearchTicket,
  { sentAt, ...how }: Pick<SearchPlan, 'send' | 'release'> & { readonly sentAt: number },
): void {
  const { pool, onCrash = false } = request;
  const timeLeft = () => Math.max(0, longestWait(request) - (clock.now() - sentAt));
  if (timeLeft() === 0) return;
  const end = pool.releases.searching(ticket, { onCrash, within: timeLeft() });
  if (!end) return;
  const { signal: closing } = pool.closing;
  const pause = async (milliseconds: number) => {
    let timer: NodeJS.Timeout | undefined;
    let stopListening: (() => void) | undefined;
    await new Promise<void>((resolve) => {
      timer = startTimer(milliseconds, resolve)?.unref();
      stopListening = onAbort(closing, resolve);
    });
    clock.clearTimeout(timer);
    stopListening?.();
    return !closing.aborted;
  };
  const search = async () => {
    await pause(SEARCH_INTERVAL);
    await releaseFound(ticket, { ...how, timeLeft, pause });
  };
  pool.client.background.track(search().finally(end));
}

/** Releases a browser that no caller received, in the background. Resolves to true when it is released. Never rejects. */
export function releaseOrphan(
  id: string,
  ticket: ReleaseTicket | undefined,
  request: GrantRequest,
): Promise<boolean> {
  const { pool, emit } = request;
  emit({ type: 'grant-orphaned', ...requestedLease(request), sessionId: id });
  // Nobody has used the browser, so the next lease can use it as it is.
  const pending = pool.releases.hold(id, ticket, { onCrash: request.onCrash === true, emit });
  const releasing = pending.release({ reuse: true, timeout: ORPHAN_TIMEOUT });
  const reported = releasing.then(() => true).catch(() => false);
  pool.client.background.track(reported);
  return reported;
}
