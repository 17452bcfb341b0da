import { onAbort, raceAbort } from '../shared/abort.js';
import { clock, delay, startTimer } from '../shared/clock.js';
import { isRecord, jsonOf } from '../shared/json.js';
import { hideValuesIn } from '../shared/redact.js';
import { endTasks } from '../shared/process-state.js';
import { pathSegmentFault } from '../shared/urls.js';
import {
  PoolConnectionError,
  PoolResponseError,
  PoolServiceError,
  type ReleaseError,
} from '../shared/service-errors.js';
import type { BrowserService, Grant, LeaseRequest, ServiceAddress } from '../services/browser-service.js';
import { headersFault } from '../services/check-service.js';
import type { ServiceClient } from './client.js';
import { clientOf } from './client.js';
import type { PoolEvent } from './events.js';
import { heldSessionsOf } from './held-sessions.js';
import { closingOf } from './open-calls.js';
import { releaseFound } from './release.js';
import { INTERNALS, type PoolWithInternals } from './pool-internals.js';
import { readAs, readJson, shouldRetry, type HttpResponse } from '../net/response.js';
import { sealGrant } from './session.js';
import { isSuccess, meaningOf, type StatusMeaning } from '../net/status.js';
import { ANY_ID, idsIn, isOurs, type OwnerCheck, type ReleaseTicket, type SearchTicket } from './tickets.js';

/** A browser that an acquire request leased, and how to release it. */
export interface Granted<Session extends object> {
  readonly grant: Grant<Session>;
  /** The request that leased it. */
  readonly lease: LeaseRequest;
  /** Undefined if the end of the connection releases the browser. */
  readonly ticket: ReleaseTicket | undefined;
  /** Whether the service showed the mark of the lease in its response. */
  readonly isMarkShown: boolean;
  /** Time of the response by the service's clock, in ms, in steps of a second. Undefined if the service does not send it. */
  readonly servedAt: number | undefined;
}

/**
 * The outcome of one acquire request:
 * - `granted`; `none`: no browser became available in the requested time;
 * - `unavailable`: refused, because none is available now; `refused`: no later request can succeed;
 * - `released`: one was leased in a broken response, and is being released;
 * - `unknown`: nobody can say whether one was leased.
 */
export type AcquireOutcome<Session extends object> =
  | { readonly kind: 'granted'; readonly granted: Granted<Session> }
  | { readonly kind: 'none' }
  | {
      readonly kind: 'unavailable' | 'refused' | 'released' | 'unknown';
      readonly error: Error;
      /** The service itself has a problem. */
      readonly isOutage: boolean;
    };

/** Time in ms to wait for a response beyond the requested wait, so that no lease is lost by a timeout. */
const ACQUIRE_GRACE = 15_000;
/** Time to wait in ms if the service decides how long the request waits. */
const UNKNOWN_WAIT = 60 * 60_000;
/** How long a service that decides itself may wait, in ms, for the search after the end of the process. */
const ASSUMED_WAIT = 5 * 60_000;
/** Time to release a browser that no caller received, in ms. */
const ORPHAN_TIMEOUT = 30_000;
/** Milliseconds that the service gets to process a request whose response was lost, before a search. */
const PROCESSING = 250;
const LOST =
  'The process ended before the service responded to an acquire request, which may have leased a browser.';
/** Timeout of a search in ms. */
const SEARCH_TIMEOUT = 5000;

/** What the caller asks for: the id of each request is new. */
interface WantedLease extends Omit<LeaseRequest, 'pool' | 'id' | 'record'> {
  readonly record?: boolean | undefined;
}

interface GrantRequest<Session extends object = object> {
  readonly pool: PoolWithInternals<Session>;
  readonly lease: LeaseRequest;
  readonly signal: AbortSignal | undefined;
  readonly emit: (event: PoolEvent) => void;
  /** The browser is released also if this process is killed. */
  readonly onCrash?: boolean;
  /** Called when the request is about to be sent: from then on, it may lease a browser. */
  readonly onSend?: () => void;
}

/**
 * Sends one acquire request. Its response is read even after an abort, because an unread response is a lost lease: a browser
 * that the service leases then is released.
 *
 * @throws The signal's reason after an abort.
 */
export async function requestGrant<Session extends object>({
  wanted,
  ...how
}: Omit<GrantRequest<Session>, 'lease'> & { readonly wanted: WantedLease }): Promise<
  AcquireOutcome<Session>
> {
  const { pool, signal } = how;
  signal?.throwIfAborted();
  const { record = false } = wanted;
  const lease = { ...wanted, pool: pool.idOrName, id: globalThis.crypto.randomUUID(), record };
  const request = { ...how, lease };
  const outcome = send(request);
  clientOf(pool).background.track(outcome);
  return raceAbort(outcome, signal, (late) => {
    if (late.kind !== 'granted') return;
    const { grant, ticket } = late.granted;
    // Without a ticket, the service leases with the connection, which nobody opened.
    if (ticket) void releaseOrphan(grant.id, ticket, request);
  });
}

async function send<S extends object>(request: GrantRequest<S>): Promise<AcquireOutcome<S>> {
  const { pool, lease, signal, emit } = request;
  const client = clientOf(pool);
  const held = heldSessionsOf(pool);
  const facts = { pool: pool.idOrName };
  const message = client.service.acquire(lease);
  if (!message) return leaseByConnection(request);
  const timeout = lease.wait === undefined ? UNKNOWN_WAIT : lease.wait * 1000 + ACQUIRE_GRACE;
  // A process that a signal ends must not lease another browser.
  if (endTasks.ending) await endTasks.ending;
  const reportUnknown = (error: Error) => emit({ type: 'outcome-unknown', ...leaseFacts(request), error });
  let ended: (() => void) | undefined;
  const sentAt = clock.now();
  const cut = new AbortController();
  const onSend = () => {
    const onLost = () => {
      cut.abort();
      reportUnknown(new PoolConnectionError(LOST, 'ERR_POOL_NO_RESPONSE', facts));
    };
    const onCrash = request.onCrash === true;
    ended ??= held.acquiring({
      search: searchTicketOf(request),
      onCrash,
      within: longestWait(request),
      onLost,
    });
    request.onSend?.();
  };
  let response: HttpResponse | undefined;
  try {
    response = await client.send(message, {
      facts,
      timeout,
      signal: cut.signal,
      unsentSignal: signal,
      onSend,
    });
    if (response.status === 204) return { kind: 'none' };
    return readGrant(response, request);
  } catch (error) {
    if (error === signal?.reason) throw error;
    const outcome = outcomeOf(error as Error, client.service, response);
    if (outcome.kind !== 'unknown') return outcome;
    const isReleased = await releaseLost(request, sentAt);
    if (!isReleased) reportUnknown(outcome.error);
    return isReleased ? { ...outcome, kind: 'unavailable' } : outcome;
  } finally {
    ended?.();
  }
}

/** The connection itself will be the lease. */
async function leaseByConnection<Session extends object>({
  pool,
  lease,
  signal,
}: GrantRequest<Session>): Promise<AcquireOutcome<Session>> {
  const client = clientOf(pool);
  try {
    await client.prepareToken({ facts: { pool: pool.idOrName }, signal });
  } catch (error) {
    if (error === signal?.reason) throw error;
    return outcomeOf(error as Error, client.service, undefined);
  }
  const { service } = pool[INTERNALS].settings();
  const grant = sealGrant(service.grant(undefined, lease, addressOf(client)));
  return {
    kind: 'granted',
    granted: { grant, lease, ticket: undefined, isMarkShown: false, servedAt: undefined },
  };
}

/** Reads a response that leased a browser, or refused to. A browser in a broken response is released. */
function readGrant<Session extends object>(
  response: HttpResponse,
  request: GrantRequest<Session>,
): AcquireOutcome<Session> {
  const { pool, lease } = request;
  const client = clientOf(pool);
  const { service } = pool[INTERNALS].settings();
  const sessionId = isSuccess(response.status) ? findId(response.body, service.idField) : undefined;
  const facts = { pool: pool.idOrName, sessionId };
  // Also those of a response that is not a session: its browser may have been leased.
  hideValuesIn(response.body);
  try {
    const servedAt = Date.parse(String(response.headers['date']));
    return readAs(response, facts, (json) => {
      const grant = service.grant(json, lease, addressOf(client));
      const headers = headersFault(grant.headers);
      if (headers !== undefined) throw new Error(`has ${headers}`);
      const fault = pathSegmentFault(grant.id);
      // The library could not release a browser with such an id.
      if (fault !== undefined) throw new Error(`has a session id that ${fault}`);
      const test = service.owner?.(grant.id, lease);
      const isMarkShown = Boolean(test && isOurs(json, test));
      const granted = {
        grant: sealGrant(grant),
        lease,
        ticket: ticketOf(grant.id, request, isMarkShown),
        isMarkShown,
        servedAt: Number.isNaN(servedAt) ? undefined : servedAt,
      };
      return { kind: 'granted', granted };
    });
  } catch (error) {
    if (!sessionId) throw error;
    void releaseOrphan(sessionId, ticketOf(sessionId, request), request);
    return { kind: 'released', error: error as Error, isOutage: false };
  }
}

function addressOf({ host, lastToken }: ServiceClient): ServiceAddress {
  return { baseUrl: host.url, token: lastToken };
}

/** The meaning of a failed request. */
function outcomeOf(
  error: Error,
  service: BrowserService,
  response: HttpResponse | undefined,
): Extract<AcquireOutcome<never>, { error: Error }> {
  if (error instanceof PoolServiceError) {
    const meaning = meaningOf(error.status);
    const own = service.meaning?.(error.status, jsonOf(response!.body));
    const kind = own ?? meaningWith(shouldRetry(response!.headers), meaning.acquire);
    // A service that never waits refuses with 429 what others answer after a wait.
    const isBusy = service.waits === 'never' && error.status === 429;
    return { kind, error, isOutage: meaning.isOutage && kind !== 'refused' && !isBusy };
  }
  if (error instanceof PoolConnectionError) {
    const isOutage = !error.isPermanent;
    if (error.code === 'ERR_POOL_NO_RESPONSE') return { kind: 'unknown', error, isOutage };
    return { kind: error.isPermanent ? 'refused' : 'unavailable', error, isOutage };
  }
  const kind = error instanceof PoolResponseError ? 'unknown' : 'refused';
  return { kind, error, isOutage: false };
}

/** Milliseconds within which the service can lease a browser for a request that was sent. */
function longestWait({ pool, lease }: GrantRequest): number {
  const asked = lease.wait === undefined ? undefined : lease.wait * 1000;
  const assumed = clientOf(pool).service.waits === 'never' ? 0 : ASSUMED_WAIT;
  return (asked ?? assumed) + ACQUIRE_GRACE;
}

/** An unknown outcome stays unknown: a request that is repeated could lease a second browser. */
function meaningWith(
  retries: boolean | undefined,
  usual: StatusMeaning['acquire'],
): StatusMeaning['acquire'] {
  if (retries === undefined || usual === 'unknown') return usual;
  return retries ? 'unavailable' : 'refused';
}

/**
 * How to release the session of an acquire request.
 *
 * @param isShown Whether the service showed the mark of the lease in its response. A service that did not will not show it later.
 */
export function ticketOf(
  id: string,
  { pool, lease }: Pick<GrantRequest, 'pool' | 'lease'>,
  isShown?: boolean,
): ReleaseTicket | undefined {
  const client = clientOf(pool);
  const { service } = client;
  const reuse = service.release(id, { pool: pool.idOrName, reuse: true });
  const destroy = service.release(id, { pool: pool.idOrName, reuse: false });
  if (!reuse || !destroy) return undefined;
  const ticket = { id, reuse: client.complete(reuse), destroy: client.complete(destroy) };
  const test = service.owner?.(id, lease);
  if (test === undefined) return ticket;
  if (test === null || isShown === false) return { ...ticket, owner: null };
  const { at, is, ...request } = test;
  const owner: OwnerCheck = { ...client.complete(request), at, is, isShown: isShown ?? false };
  return { ...ticket, owner };
}

function searchTicketOf(request: GrantRequest): SearchTicket | undefined {
  const client = clientOf(request.pool);
  const { service } = client;
  const search = service.find?.(request.lease);
  const found = ticketOf(ANY_ID, request);
  if (!search || !found) return undefined;
  const { list, at, ...message } = search;
  const where = { list, ...(at && { at }), is: request.lease.id, idField: service.idField };
  return { search: client.complete(message), ...where, found };
}

/**
 * Searches for the browser of a lost response, and releases it. Resolves to true if there was one, and it is released. Otherwise,
 * the search goes on in the background.
 */
async function releaseLost(request: GrantRequest, sentAt: number): Promise<boolean> {
  const isReleased = await releaseLostNow(request);
  if (!isReleased) keepSearching(request, sentAt);
  return isReleased;
}

async function releaseLostNow(request: GrantRequest): Promise<boolean> {
  const client = clientOf(request.pool);
  const ticket = searchTicketOf(request);
  if (!ticket) return false;
  await delay(PROCESSING);
  const facts = { pool: request.pool.idOrName };
  try {
    const json = readJson(await client.send(ticket.search, { facts, timeout: SEARCH_TIMEOUT }), facts);
    const ids = idsIn(json, ticket);
    const results = await Promise.all(ids.map((id) => releaseOrphan(id, ticketOf(id, request), request)));
    return results.length > 0 && results.every(Boolean);
  } catch {
    // The service has no search, or does not answer: the outcome stays unknown.
    return false;
  }
}

/** Pause after the first search, in ms. */
const SEARCH_INTERVAL = 500;

/**
 * Searches for the browser of a lost response as long as the service can still lease it, in the background: neither the process
 * nor `pool.close()` waits for that time.
 */
function keepSearching(request: GrantRequest, sentAt: number): void {
  const { pool, onCrash = false } = request;
  const ticket = searchTicketOf(request);
  const timeLeft = () => Math.max(0, longestWait(request) - (clock.now() - sentAt));
  if (!ticket || timeLeft() === 0) return;
  const held = heldSessionsOf(pool);
  const end = held.searching(ticket, { onCrash, within: timeLeft() });
  if (!end) return;
  const { signal: closing } = closingOf(pool);
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
  const facts = { pool: pool.idOrName };
  const search = async () => {
    await pause(SEARCH_INTERVAL);
    await releaseFound(ticket, {
      timeLeft,
      send: (message, timeout) => held.send(message, { facts, timeout }),
      release: ({ id }) => releaseOrphan(id, ticketOf(id, request), request),
      pause,
    });
  };
  clientOf(pool).background.track(search().finally(end));
}

/** Releases a browser that no caller received, in the background. Resolves to true when it is released. Never rejects. */
function releaseOrphan(
  id: string,
  ticket: ReleaseTicket | undefined,
  request: GrantRequest,
): Promise<boolean> {
  const { pool, emit } = request;
  const { background } = clientOf(pool);
  const facts = { pool: pool.idOrName, sessionId: id };
  emit({ type: 'grant-orphaned', ...leaseFacts(request), sessionId: id });
  // Nobody has used the browser, so the next lease can use it as it is.
  const session = heldSessionsOf(pool).hold(id, ticket, { onCrash: request.onCrash === true });
  const reported = session.release({ reuse: true, timeout: ORPHAN_TIMEOUT }).then(
    (released) => {
      emit({ type: 'released', ...facts, released });
      return true;
    },
    (error: ReleaseError) => {
      emit({ type: 'release-failed', ...facts, error });
      return false;
    },
  );
  background.track(reported);
  return reported;
}

function leaseFacts({ pool, lease: { name, tags } }: GrantRequest) {
  return { pool: pool.idOrName, ...(name && { name }), ...(tags && { tags }) };
}

/** Finds the session id in a body that may not be a valid session: that browser is leased and must be released. */
function findId(body: string, idField: string): string | undefined {
  const id = idInJson(jsonOf(body), idField) ?? idInText(body, idField);
  return pathSegmentFault(id) === undefined ? (id as string) : undefined;
}

/** The id may stand in an object of the body, as in `{ "data": { "id": … } }`. */
function idInJson(json: unknown, idField: string): unknown {
  if (!isRecord(json)) return undefined;
  return json[idField] ?? Object.values(json).find(isRecord)?.[idField];
}

function idInText(body: string, idField: string): unknown {
  const text = new RegExp(`"${idField}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)+")`).exec(body)?.[1];
  return text === undefined ? undefined : jsonOf(text);
}
