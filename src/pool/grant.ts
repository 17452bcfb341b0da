import { raceAbort } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { isRecord, jsonOf } from '../shared/json.js';
import { hideValuesIn } from '../shared/redact.js';
import { endTasks } from '../shared/process-state.js';
import { pathSegmentFault } from '../shared/urls.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import type { Grant, LeaseRequest, ServiceAddress } from '../services/browser-service.js';
import { headersFault } from '../services/check-service.js';
import { ACQUIRE_GRACE, longestWait, requestedLease, type GrantRequest } from './grant-request.js';
import { releaseLost, releaseOrphan } from './lost-browsers.js';
import type { PoolCore } from './pool-core.js';
import { readAs, shouldRetry, type HttpResponse } from '../net/response.js';
import { sealGrant } from './session.js';
import { isSuccess, meaningOf, type StatusMeaning } from '../net/status.js';
import { isOurs, type ReleaseTicket } from './tickets.js';
import { createAbort } from '../shared/globals.js';

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

/** Time to wait in ms if the service decides how long the request waits. */
const UNKNOWN_WAIT = 60 * 60_000;
const LOST =
  'The process ended before the service responded to an acquire request, which may have leased a browser.';
/** What the caller asks for: the id of each request is new. */
export interface WantedLease extends Omit<LeaseRequest, 'pool' | 'id' | 'record'> {
  readonly record?: boolean | undefined;
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
  const { client, service, releases, idOrName } = pool;
  // A process that a signal ends must not lease another browser.
  if (endTasks.ending) await raceAbort(endTasks.ending, signal);
  signal?.throwIfAborted();
  const { record = false, wait } = wanted;
  const lease = { ...wanted, pool: idOrName, id: globalThis.crypto.randomUUID(), record };
  const request = { ...how, lease };
  const message = service.acquire(lease);
  const cut = createAbort();
  let ended: (() => void) | undefined;
  const onSend = () => {
    const onLost = () => {
      cut.abort();
      reportUnknown(request, new PoolConnectionError(LOST, 'ERR_POOL_NO_RESPONSE', { pool: idOrName }));
    };
    const { onCrash = false } = how;
    const within = longestWait(request);
    ended ??= releases.acquiring({ search: pool.searchOf(lease), onCrash, within, onLost });
  };
  const timeout = wait === undefined ? UNKNOWN_WAIT : wait * 1000 + ACQUIRE_GRACE;
  const { onWrite } = how;
  const signals = { signal: cut.signal, unsentSignal: signal };
  const options = { facts: { pool: idOrName }, timeout, ...signals, onSend, onWrite };
  const outcome = message
    ? readOutcome(client.send(message, options), request).finally(() => ended?.())
    : leaseByConnection(request);
  client.background.track(outcome);
  return raceAbort(outcome, signal, (late) => {
    if (late.kind !== 'granted') return;
    const { grant, ticket } = late.granted;
    // Without a ticket, the service leases with the connection, which nobody opened.
    if (ticket) void releaseOrphan(grant.id, ticket, request);
  });
}

/** Reads the response to an acquire request. After a lost one, searches for the browser. */
async function readOutcome<Session extends object>(
  sent: Promise<HttpResponse>,
  request: GrantRequest<Session>,
): Promise<AcquireOutcome<Session>> {
  const { signal } = request;
  const sentAt = clock.now();
  let response: HttpResponse | undefined;
  try {
    response = await sent;
    return response.status === 204 ? { kind: 'none' } : readGrant(response, request);
  } catch (error) {
    if (error === signal?.reason) throw error;
    const outcome = outcomeOf(error as Error, request, response);
    if (outcome.kind !== 'unknown') return outcome;
    const isReleased = await releaseLost(request, sentAt);
    if (isReleased) return { ...outcome, kind: 'unavailable' };
    reportUnknown(request, outcome.error);
    return outcome;
  }
}

function reportUnknown(request: GrantRequest, error: Error): void {
  request.emit({ type: 'outcome-unknown', ...requestedLease(request), error });
}

/** The connection itself will be the lease. */
async function leaseByConnection<Session extends object>(
  request: GrantRequest<Session>,
): Promise<AcquireOutcome<Session>> {
  const { pool, lease, signal } = request;
  try {
    await pool.client.prepareToken({ facts: { pool: pool.idOrName }, signal });
  } catch (error) {
    if (error === signal?.reason) throw error;
    return outcomeOf(error as Error, request, undefined);
  }
  const grant = sealGrant(pool.service.grant(undefined, lease, addressOf(pool)));
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
  const { service } = pool;
  const sessionId = isSuccess(response.status) ? findId(response.body, service.idField) : undefined;
  const facts = { pool: pool.idOrName, sessionId };
  // Also those of a response that is not a session: its browser may have been leased.
  hideValuesIn(response.body);
  try {
    const servedAt = Date.parse(String(response.headers['date']));
    return readAs(response, facts, (json) => {
      const grant = service.grant(json, lease, addressOf(pool));
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
        ticket: pool.ticketOf(grant.id, lease, isMarkShown),
        isMarkShown,
        servedAt: Number.isNaN(servedAt) ? undefined : servedAt,
      };
      return { kind: 'granted', granted };
    });
  } catch (error) {
    if (!sessionId) throw error;
    void releaseOrphan(sessionId, pool.ticketOf(sessionId, lease), request);
    return { kind: 'released', error: error as Error, isOutage: false };
  }
}

function addressOf({ client }: PoolCore): ServiceAddress {
  return { baseUrl: client.host.url, token: client.lastToken };
}

/** The meaning of a failed request. */
function outcomeOf(
  error: Error,
  { pool: { service }, lease }: GrantRequest,
  response: HttpResponse | undefined,
): Extract<AcquireOutcome<never>, { error: Error }> {
  if (error instanceof PoolServiceError) {
    const meaning = meaningOf(error.status);
    const own = service.meaning?.(error.status, jsonOf(response!.body));
    const usual = own ?? meaningWith(shouldRetry(response!.headers), meaning.acquire);
    const isNameTaken = lease.name !== undefined && usual === 'unavailable' && isNameConflict(error);
    const kind = isNameTaken ? 'refused' : usual;
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

/** Codes of a 409 that mean "no browser is available" also for a lease with a name. */
const NONE_AVAILABLE = /available|capacity|exhaust|timeout|timed_out|empty|busy/i;

/** Without a name, a 409 means that no browser is available; with a name, it usually means that the name is taken. */
function isNameConflict({ status, code, details, inner_error }: PoolServiceError): boolean {
  if (status !== 409) return false;
  const codes = [code, inner_error?.code, ...(details ?? []).map((detail) => detail.code)];
  return !codes.some((code) => code !== undefined && NONE_AVAILABLE.test(code) && !/name/i.test(code));
}

/** An unknown outcome stays unknown: a request that is repeated could lease a second browser. */
function meaningWith(
  retries: boolean | undefined,
  usual: StatusMeaning['acquire'],
): StatusMeaning['acquire'] {
  if (retries === undefined || usual === 'unknown') return usual;
  return retries ? 'unavailable' : 'refused';
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
