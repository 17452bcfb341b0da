import { raceAbort } from '../shared/abort.js';
import { clock } from '../shared/clock.js';
import { isRecord, jsonOf } from '../shared/json.js';
import { hideValuesIn } from '../shared/redact.js';
import { endTasks } from '../shared/process-state.js';
import { pathSegmentFault } from '../shared/urls.js';
import {
  isNameConflict,
  PoolConnectionError,
  PoolResponseError,
  PoolServiceError,
} from '../shared/service-errors.js';
import type { LeaseRequest, ServiceAddress } from '../services/browser-service.js';
import { acquireRequest, headersFault } from '../services/check-service.js';
import type { AcquireOutcome, Granted } from './grant-reply.js';
import { ACQUIRE_GRACE, longestWait, requestedLease, type GrantRequest } from './grant-request.js';
import { releaseLost, releaseOrphan } from './lost-browsers.js';
import type { PoolCore } from './pool-core.js';
import { readAs, shouldRetry, type HttpResponse } from '../net/response.js';
import { sealGrant } from './session.js';
import { isSuccess, meaningOf, type StatusMeaning } from '../net/status.js';
import { isOurs } from './tickets.js';
import { createAbort } from '../shared/globals.js';

/** Time to wait in ms if the service decides how long the request waits. */
const UNKNOWN_WAIT = 60 * 60_000;
const LOST =
  'The process ended before the service responded to an acquire request, which may have leased a browser.';
/** What the caller asks for: the id of each request is new. */
export interface WantedLease extends Omit<LeaseRequest, 'pool' | 'id' | 'record'> {
  readonly record?: boolean | undefined;
}

type GrantOrder<Session extends object> = Omit<GrantRequest<Session>, 'lease'> & {
  readonly wanted: WantedLease;
};

/**
 * Sends one acquire request. Its response is read even after an abort, because an unread response is a lost lease: a browser
 * that the service leases then is released.
 *
 * @throws The signal's reason after an abort.
 */
export async function requestGrant<Session extends object>(
  order: GrantOrder<Session>,
): Promise<AcquireOutcome<Session>> {
  return raceAbort(readGrantOf(order), order.signal, (late) => {
    if (late.kind === 'granted') releaseUnclaimed(late.granted, order);
  });
}

/**
 * Sends one acquire request, and always reads its response: the caller must take the browser, or release it.
 *
 * @throws The signal's reason after an abort before the request is written.
 */
export async function readGrantOf<Session extends object>({
  wanted,
  ...how
}: GrantOrder<Session>): Promise<AcquireOutcome<Session>> {
  const { pool, signal } = how;
  const { client, service, releases, idOrName } = pool;
  // A process that a signal ends must not lease another browser.
  if (endTasks.ending) await raceAbort(endTasks.ending, signal);
  signal?.throwIfAborted();
  const { record = false, wait } = wanted;
  const lease = { ...wanted, pool: idOrName, id: globalThis.crypto.randomUUID(), record };
  const request = { ...how, lease };
  const message = acquireRequest(service, lease);
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
  return outcome;
}

/** Releases a browser that no caller takes, in the background. */
export function releaseUnclaimed<Session extends object>(
  { grant, lease, ticket }: Granted<Session>,
  how: Omit<GrantRequest<Session>, 'lease'>,
): void {
  // Without a ticket, the service leases with the connection, which nobody opened.
  if (ticket) void releaseOrphan(grant.id, ticket, { ...how, lease });
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

export function addressOf({ client }: PoolCore): ServiceAddress {
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
