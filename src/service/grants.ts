import { raceAbort } from '../shared/abort.js';
import type { OptionsOutput } from '../shared/options.js';
import { callListener, publish } from '../shared/telemetry.js';
import type { PoolEvent } from './events.js';
import type { HttpResponse } from './http.js';
import { INTERNALS, type PoolInternals } from './pool-internals.js';
import type { acquireOptions, AcquireRequest } from './pool-options.js';
import { leaseOf, markOf, type MarkedLease } from './ownership.js';
import type { ReleaseError } from '../shared/service-errors.js';
import { isSuccess, readJson, responseError } from './responses.js';
import { findSessionId, readSession } from './session.js';
import { isOutcomeUnknown } from './status.js';
import type { BrowserSession } from './wire.js';

/** Time in ms to wait for a response beyond the requested wait, so that no lease is lost by a timeout. */
const ACQUIRE_GRACE = 15_000;
/** Time to wait in ms if the service decides how long the request waits (API: acquire_timeout_seconds). */
const UNKNOWN_WAIT = 60 * 60_000;
/** Time to release a browser that no caller received, in ms. */
const ORPHAN_TIMEOUT = 30_000;

interface GrantingPool {
  readonly idOrName: string;
  readonly [INTERNALS]: PoolInternals;
}

interface GrantRequest {
  pool: GrantingPool;
  request: AcquireRequest;
  signal: AbortSignal | undefined;
  emit: (event: PoolEvent) => void;
}

/** Sends one acquire request. A browser that the service leases after an abort is released. */
export async function requestGrant(
  pool: GrantingPool,
  request: AcquireRequest,
  { signal, onEvent }: OptionsOutput<typeof acquireOptions>,
): Promise<BrowserSession | null> {
  // Without a listener, the events are published on the diagnostics channel, so that none is lost.
  const emit = (event: PoolEvent) => callListener(onEvent ?? publish, event);
  const grantRequest = { pool, request, signal, emit };
  const grant = send(grantRequest);
  pool[INTERNALS].background.track(grant);
  return raceAbort(grant, signal, (session) => session && releaseOrphan(leaseOf(session), grantRequest));
}

/** Reads the response even after an abort: an unread response is a lost lease. */
async function send(grantRequest: GrantRequest): Promise<BrowserSession | null> {
  const { pool, request, signal, emit } = grantRequest;
  const { client, counters } = pool[INTERNALS];
  const { acquire_timeout_seconds: wait } = request;
  const timeout = wait === undefined ? UNKNOWN_WAIT : wait * 1000 + ACQUIRE_GRACE;
  const path = client.path('browser_pools', pool.idOrName, 'acquire');
  const facts = { pool: pool.idOrName };
  try {
    const response = await client.send({
      method: 'POST',
      path,
      body: request,
      facts,
      timeout,
      unsentSignal: signal,
    });
    const session = response.status === 204 ? null : readGrant(response, grantRequest);
    counters.countRequest(session ? 'granted' : 'empty');
    return session;
  } catch (error) {
    const isUnknown = isOutcomeUnknown(error);
    // A request that was aborted before it was sent does not count.
    if (error !== signal?.reason) counters.countRequest(isUnknown ? 'unknown' : 'failed');
    if (isUnknown) emit({ type: 'outcome-unknown', ...leaseFacts(grantRequest), error });
    throw error;
  }
}

function readGrant(response: HttpResponse, grantRequest: GrantRequest): BrowserSession {
  const sessionId = isSuccess(response) ? findSessionId(response.body) : undefined;
  const facts = { pool: grantRequest.pool.idOrName, sessionId };
  try {
    const session = readSession(readJson(response, facts));
    if (typeof session === 'string') throw responseError(session, response, facts);
    return session;
  } catch (error) {
    if (sessionId) {
      const mark = markOf(grantRequest.request);
      releaseOrphan({ sessionId, mark, isMarkShown: false }, grantRequest);
    }
    throw error;
  }
}

/** Releases a browser that no caller received, in the background. */
function releaseOrphan(lease: MarkedLease, grantRequest: GrantRequest): void {
  const { pool, emit } = grantRequest;
  const { sessionId } = lease;
  const { counters, held, background } = pool[INTERNALS];
  const facts = { pool: pool.idOrName, sessionId };
  counters.countRequest('orphaned');
  emit({ type: 'grant-orphaned', ...leaseFacts(grantRequest), sessionId });
  const release = held.hold(lease).release({ reuse: true, timeout: ORPHAN_TIMEOUT });
  const reported = release.then(
    (released) => emit({ type: 'released', ...facts, released }),
    (error: ReleaseError) => emit({ type: 'release-failed', ...facts, error }),
  );
  background.track(reported);
}

function leaseFacts({ pool, request: { name, tags } }: GrantRequest) {
  return { pool: pool.idOrName, ...(name && { name }), ...(tags && { tags }) };
}
