import type { LeaseRequest } from '../service/browser-service.js';
import { leaseMark } from '../service/lease-mark.js';
import { requestGrant, type AcquireOutcome, type Granted } from '../service/grant.js';
import { INTERNALS } from '../service/pool-internals.js';
import { unreachable } from '../service/reachability.js';
import type { LinkedAbort } from '../shared/abort.js';
import { backoff, clock, delay, startTimer } from '../shared/clock.js';
import { duration, sentence } from '../shared/errors.js';
import { AcquireTimeoutError, LeaseNameTakenError } from '../shared/lease-errors.js';
import { withRetries } from '../shared/retry.js';
import { PoolConnectionError, PoolResponseError, PoolServiceError } from '../shared/service-errors.js';
import type { BrowserPool } from '../service/browser-pool.js';
import type { RunStep } from './events.js';
import type { LeaseSettings } from './options.js';

/** If the service decides how long a request waits, an answer within this number of ms counts as early. */
const EARLY = 1000;

/** The call that acquires a browser. */
export interface AcquiringCall {
  readonly pool: BrowserPool<object>;
  readonly settings: LeaseSettings;
  readonly signal: AbortSignal;
  /** Of all leases of the call. */
  readonly counts: { acquireAttempts: number; unknownAcquires: number };
  readonly emit: (step: RunStep) => void;
  /** A sentence for the error of a call that can be waiting for itself. */
  readonly nestedIn: string | undefined;
}

/** A browser, and the function that ends its place among the leases of this process. */
export interface Acquired extends Granted {
  readonly leave: () => void;
}

/** The reason of the deadline when the service was never reached. */
class NeverReached extends Error {}

/** Thrown for each request that leased no browser. */
class NotLeased extends Error {
  readonly outcome: Exclude<AcquireOutcome, { kind: 'granted' }>;
  /** The service has waited as requested: the next request follows at once, and uses up no retry. */
  readonly hasWaited: boolean;

  constructor(outcome: NotLeased['outcome'], hasWaited: boolean) {
    super(outcome.kind);
    this.outcome = outcome;
    this.hasWaited = hasWaited;
  }
}

/**
 * Sends acquire requests until the pool leases a browser, under the deadline of the call. The caller must release the
 * session. If the service leases a browser after this function has thrown, the pool releases it.
 *
 * @param keepAlive Another program, or a new connection, uses the session after its first connection.
 */
export async function acquireBrowser(
  call: AcquiringCall,
  deadline: LinkedAbort,
  keepAlive: boolean,
): Promise<Acquired> {
  const { pool, settings, counts } = call;
  const { client, limit } = pool[INTERNALS];
  const { reachability } = client.host;
  const { signal } = deadline;
  const queue = client.queueOf(pool.idOrName);
  const state: State = { keepAlive, failures: 0, retries: 0, brokenGrants: 0, isOpen: false };
  // Also ends the wait of a caller in the queue, which sends no request.
  const timeToReach = () => reachability.timeLeft(settings.unreachableTimeout);
  let patience: NodeJS.Timeout | undefined;
  const watch = () => {
    const left = timeToReach();
    if (left > 0) patience = startTimer(left, watch);
    else if (patience) deadline.abort(new NeverReached());
  };
  let place: Awaited<ReturnType<typeof queue.enter>> | undefined;
  let granted: Granted | undefined;
  try {
    watch();
    if (queue.isFull(limit)) call.emit({ type: 'queued', ahead: queue.length });
    place = await queue.enter(limit, signal);
    const attempt = async () => {
      granted = await requestOnce(call, deadline, state);
    };
    const mayRetry = async (error: Error) => {
      if (!(error instanceof NotLeased) || signal.aborted || timeToReach() <= 0) return false;
      if (!mayRepeat(error, call, state)) return false;
      await pauseBefore(error, call, deadline, state);
      return true;
    };
    await withRetries(attempt, mayRetry, {
      signal,
      shouldConsumeRetry: ({ error }) => !(error instanceof NotLeased && error.hasWaited),
    });
    return { ...granted!, leave: place.released };
  } catch (error) {
    // p-retry rejects after an abort even if the attempt has just succeeded: that browser must be released.
    if (granted && place) return { ...granted, leave: place.released };
    place?.released();
    // Its response is still to come, and may lease a browser.
    if (state.isOpen) counts.unknownAcquires++;
    throw explain(error, call, deadline, state);
  } finally {
    clock.clearTimeout(patience);
    place?.acquired();
  }
}

/** What the requests of one wait have shown so far. */
interface State {
  readonly keepAlive: boolean;
  /** Failures in a row. */
  failures: number;
  /** Requests that failed or were answered too early. */
  retries: number;
  /** Broken responses whose browser was released. */
  brokenGrants: number;
  /** A request has been sent, and its response has not been read. */
  isOpen: boolean;
  /** The last error of the service, and whether the last request failed: otherwise the service had no browser. */
  lastError?: Error;
  isFailing?: boolean;
}

/** Sends one request, in turn with other callers while the service has an outage. @throws NotLeased */
async function requestOnce(call: AcquiringCall, deadline: LinkedAbort, state: State): Promise<Granted> {
  const { pool, settings, counts, emit } = call;
  const { keepAlive } = state;
  const { client } = pool[INTERNALS];
  const { signal } = deadline;
  let sentAt = 0;
  let wait: number | undefined;
  // Clocks and rounding differ: half of the requested time counts as waited.
  const hasWaited = () => clock.now() - sentAt >= (wait === undefined ? EARLY : wait * 500);
  const send = async () => {
    const { timeLeft } = deadline;
    const { name, tags, startUrl, releaseOnCrash, replays } = settings;
    wait = client.service.waits === 'asked' ? secondsToWait(settings.pollTimeout, timeLeft) : undefined;
    sentAt = clock.now();
    emit({ type: 'acquiring', ...progress(call, deadline, 1), timeLeft: Math.floor(timeLeft) });
    counts.acquireAttempts++;
    const id = globalThis.crypto.randomUUID();
    const record = replays === 'record';
    const what = { name, tags, startUrl, wait, keepAlive, record };
    const lease: LeaseRequest = { pool: pool.idOrName, id, mark: leaseMark(), ...what };
    const onSend = () => (state.isOpen = true);
    const outcome = await requestGrant({ pool, lease, signal, emit, onCrash: releaseOnCrash, onSend });
    state.isOpen = false;
    return outcome;
  };
  const outageIn = (outcome: AcquireOutcome) =>
    'error' in outcome && outcome.isOutage && !hasWaited()
      ? { retryAfter: retryAfterOf(outcome) }
      : undefined;
  const outcome = await client.host.gate.run({ send, outageIn, retry: settings.retry, signal });
  if (outcome.kind === 'granted') return outcome.granted;
  if (outcome.kind === 'unknown') counts.unknownAcquires++;
  if (outcome.kind === 'released') state.brokenGrants++;
  const isNone = outcome.kind === 'none' || outcome.kind === 'unavailable';
  throw new NotLeased(outcome, isNone && hasWaited());
}

/** Whole seconds, and never past the deadline. */
function secondsToWait(pollTimeout: number | false, timeLeft: number): number | undefined {
  if (pollTimeout === false) return undefined;
  return Math.max(1, Math.min(Math.ceil(pollTimeout / 1000), Math.floor(timeLeft / 1000)));
}

/** Whether another request may be sent after one that leased no browser. */
function mayRepeat(
  { outcome, hasWaited }: NotLeased,
  { settings, counts }: AcquiringCall,
  state: State,
): boolean {
  const { name, retry } = settings;
  if (!hasWaited && ++state.retries > retry.retries) return false;
  if (outcome.kind === 'none') return true;
  // A success that can't be read most likely leased a browser: another request would lease a second one.
  if (outcome.kind === 'unknown' && outcome.error instanceof PoolResponseError) return false;
  // A call repeats at most one request with an unknown outcome, and at most one with a broken response.
  if (outcome.kind === 'unknown') return counts.unknownAcquires <= 1;
  // The name of a browser that is still being released is in use: a request for it would be refused.
  if (outcome.kind === 'released') return name === undefined && state.brokenGrants <= 1;
  return outcome.kind === 'unavailable' && !(name !== undefined && isNameConflict(outcome.error));
}

/** Waits before the next request: as long as the service asks, otherwise by the backoff. */
async function pauseBefore(
  { outcome, hasWaited }: NotLeased,
  call: AcquiringCall,
  deadline: LinkedAbort,
  state: State,
): Promise<void> {
  const error = 'error' in outcome ? outcome.error : undefined;
  if (error) state.lastError = error;
  state.isFailing = error !== undefined;
  state.failures = hasWaited ? 0 : state.failures + 1;
  call.emit({ type: 'waiting', ...progress(call, deadline), ...(error && { error }) });
  const { client } = call.pool[INTERNALS];
  // The outage gate makes the pause, for all callers together.
  if ('error' in outcome && outcome.isOutage && !hasWaited) return;
  const retryAfter = retryAfterOf(outcome);
  if (hasWaited && retryAfter === undefined) return;
  const pause = retryAfter ?? backoff(call.settings.retry, state.failures);
  const queue = client.queueOf(call.pool.idOrName);
  // A service that refuses at once may have a browser as soon as this process releases one.
  const wake = (resolve: () => void) => queue.onRelease(resolve);
  await delay(pause, deadline.signal, client.service.waits === 'never' ? wake : undefined);
}

/**
 * Waits after a refused connection to a service where the connection itself is the lease, and none is available now.
 *
 * @throws AcquireTimeoutError
 */
export async function waitForConnection(
  call: AcquiringCall,
  deadline: LinkedAbort,
  { error, refusals }: { error: Error; refusals: number },
): Promise<void> {
  const { pool, settings, emit } = call;
  emit({ type: 'waiting', ...progress(call, deadline), error });
  const queue = pool[INTERNALS].client.host.queueOf(pool.idOrName);
  const state = { keepAlive: false, failures: refusals, retries: refusals, brokenGrants: 0, isOpen: false };
  try {
    if (refusals > settings.retry.retries) throw error;
    const wake = (resolve: () => void) => queue.onRelease(resolve);
    await delay(backoff(settings.retry, refusals), deadline.signal, wake);
  } catch {
    throw explain(error, call, deadline, { ...state, lastError: error, isFailing: true });
  }
}

/** Milliseconds. Zero counts as missing: the requests would follow each other without a pause. */
function retryAfterOf(outcome: AcquireOutcome): number | undefined {
  const error = 'error' in outcome ? outcome.error : undefined;
  return error instanceof PoolServiceError ? error.retryAfter || undefined : undefined;
}

function progress({ counts }: AcquiringCall, deadline: LinkedAbort, further = 0) {
  return { attempt: counts.acquireAttempts + further, waited: Math.round(deadline.elapsed) };
}

/** Codes of a 409 that mean "no browser is available" also for a lease with a name. */
const NONE_AVAILABLE = /available|capacity|exhaust|timeout|timed_out|empty|busy/i;

/** Without a name, a 409 means that no browser is available; with a name, it usually means that the name is taken. */
function isNameConflict(error: Error): boolean {
  if (!(error instanceof PoolServiceError) || error.status !== 409) return false;
  const { code, details, inner_error } = error;
  const codes = [code, inner_error?.code, ...(details ?? []).map((detail) => detail.code)];
  return !codes.some((code) => code !== undefined && NONE_AVAILABLE.test(code) && !/name/i.test(code));
}

function isNameTaken(error: unknown): boolean {
  return error instanceof PoolServiceError && (error.status === 409 || error.status === 422);
}

/** Returns the error that the call throws. */
function explain(error: unknown, call: AcquiringCall, deadline: LinkedAbort, state: State): unknown {
  const { signal, settings, counts, pool } = call;
  if (signal.aborted) return signal.reason;
  const { reachability } = pool[INTERNALS].client.host;
  if (!deadline.timedOut && reachability.timeLeft(settings.unreachableTimeout) <= 0)
    return neverReachedError(call, deadline);
  const outcome = error instanceof NotLeased ? error.outcome : undefined;
  if (deadline.timedOut || outcome?.kind === 'none') return timeoutError(call, deadline, state);
  const cause = outcome ? outcome.error : error;
  const { name } = settings;
  if (name === undefined || counts.unknownAcquires === 0 || !isNameTaken(cause)) return cause;
  const message =
    `The lease name "${name}" is in use. An earlier acquire request of this call may have leased a browser under ` +
    'this name; its response was lost (event outcome-unknown). That browser stays leased until its inactivity timeout.';
  return new LeaseNameTakenError(message, name, { ...factsOf(call, deadline), cause });
}

/** No connection to the service was opened within `unreachableTimeout`. */
function neverReachedError(call: AcquiringCall, deadline: LinkedAbort): PoolConnectionError {
  const { host } = call.pool[INTERNALS].client;
  const { message, cause } = unreachable(host.url, host.reachability.lastFailure, {});
  const more =
    `No connection was opened for ${duration(call.settings.unreachableTimeout)}. ` +
    'If the service needs longer to start, increase unreachableTimeout.';
  const facts = { ...factsOf(call, deadline), cause, isPermanent: true };
  return new PoolConnectionError(`${message} ${more}`, 'ERR_POOL_UNREACHABLE', facts);
}

/** No browser became available in time. If the last request failed, the message begins with its error. */
function timeoutError(
  call: AcquiringCall,
  deadline: LinkedAbort,
  { lastError: cause, isFailing = false }: State,
): AcquireTimeoutError {
  const { pool, settings, counts, nestedIn } = call;
  const { acquireAttempts: attempts } = counts;
  const [limit, advice] = deadline.timedOut
    ? [`within ${duration(settings.acquireTimeout)}`, 'Increase acquireTimeout']
    : [`with retry.retries at ${settings.retry.retries}`, 'Increase retry.retries'];
  const message =
    `No browser became available in pool "${pool.idOrName}" ${limit} ` +
    `(${attempts} acquire ${attempts === 1 ? 'request' : 'requests'}).`;
  const sentences = [
    cause && isFailing && sentence(cause.message),
    message,
    // A larger pool does not help if the service can't be reached.
    !(isFailing && cause instanceof PoolConnectionError) &&
      `${advice}, enlarge the pool, or look for leases that are not released.`,
    nestedIn,
  ];
  return new AcquireTimeoutError(sentences.filter(Boolean).join(' '), { ...factsOf(call, deadline), cause });
}

function factsOf({ pool, counts }: AcquiringCall, { elapsed }: LinkedAbort) {
  return { pool: pool.idOrName, attempts: counts.acquireAttempts, elapsed };
}
