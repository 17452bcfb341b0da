import { backoff, clock, delay } from '../shared/clock.js';
import { jsonOf } from '../shared/json.js';
import { retryAfter, shouldRetry, type HttpResponse } from '../net/response.js';
import { isGone, isSuccess, meaningOf } from '../net/status.js';
import {
  ANY_ID,
  idsIn,
  isOurs,
  type CompleteRequest,
  type OwnerCheck,
  type ReleaseTicket,
  type SearchTicket,
} from './tickets.js';

/**
 * What may have happened to the session so far: nothing; a release for reuse was sent, and the service reports that it failed, or
 * another process may have released it; or our release may have been processed, so that the session may belong to another lease.
 */
export type PriorRelease = 'none' | 'failed' | 'unknown';

/** What happened to a browser. `unknown`: this cannot be determined, and another request could end the lease of another caller. */
export type ReleaseResult = 'released' | 'gone' | 'failed' | 'unknown';

/** What became of one request. Without a status, no response arrived. */
export interface Reply {
  readonly status?: number;
  readonly body?: string;
  /** False if the connection could not be opened. */
  readonly isSent: boolean;
  /** Repeating the request does not help. Default: what the status means. */
  readonly isFinal?: boolean | undefined;
  /** Milliseconds that the service asked to wait before the next request. */
  readonly retryAfter?: number | undefined;
}

/** What became of a request that got a response. Its headers can say whether and when to repeat the request. */
export function replyOf({ status, body, headers }: HttpResponse): Reply {
  const mayRepeat = shouldRetry(headers);
  const isFinal = mayRepeat === undefined ? undefined : !mayRepeat;
  return { status, body, isSent: true, isFinal, retryAfter: retryAfter(headers) };
}

export interface OwnerReply extends Reply {
  readonly to: 'release' | 'owner';
  /** Whether the lease is still ours, by a successful answer to the check of the owner. */
  readonly isOurs?: boolean;
}

export interface Step {
  readonly next: 'release' | 'check owner' | ReleaseResult;
  readonly prior: PriorRelease;
  /** The request failed: wait before the next one. */
  readonly pauses?: boolean;
}

/** The facts about a lease on which the steps depend. */
interface ReleasePolicy {
  readonly owner: ReleaseTicket['owner'] | undefined;
  /** The request lets the service lease the same session again. */
  readonly reuses: boolean;
  /** Further statuses which mean that the session no longer exists. */
  readonly gone?: readonly number[] | undefined;
  /** Statuses that do not show whether the session still exists. */
  readonly unclear?: readonly number[] | undefined;
}

/**
 * Decides the next step of a release: the whole policy of this library, in this process and in the helper processes.
 *
 * A release is never repeated after a confirmation. A release for reuse that may have been processed is repeated only while the
 * service shows that the lease is still ours. A service that can't show it is believed when it reports a failure.
 *
 * @param prior The `prior` of the last step.
 * @param answer To the last request; undefined at the beginning.
 */
export function nextStep(
  { owner, gone, unclear, reuses }: ReleasePolicy,
  prior: PriorRelease,
  answer?: OwnerReply,
): Step {
  // Each session has one lease: a repeated request can't end another one.
  const before = owner === undefined ? 'none' : prior;
  if (!answer) return { next: afterFailure(owner, before), prior: before };
  if (answer.to === 'owner') return afterCheck(owner, before, answer);
  const { status, isSent, isFinal } = answer;
  if (status !== undefined && isSuccess(status)) return { next: 'released', prior: before };
  if (status !== undefined && isGone(status, gone)) return { next: 'gone', prior: before };
  if (status !== undefined && unclear?.includes(status)) return { next: 'unknown', prior: 'unknown' };
  const meaning = status === undefined ? undefined : meaningOf(status);
  const outcome = isSent ? (meaning?.release ?? 'unknown') : 'none';
  const raised = outcome === 'unknown' || before === 'none' ? outcome : before;
  // Only a release for reuse lets the session be leased again.
  const after = reuses && owner !== undefined ? raised : before;
  if (isFinal ?? meaning?.isTransient === false) return { next: failureOf(after), prior: after };
  return { next: afterFailure(owner, after), prior: after, pauses: true };
}

function afterCheck(owner: ReleaseTicket['owner'], prior: PriorRelease, answer: OwnerReply): Step {
  const { status = 0, isOurs, isFinal } = answer;
  const { isAbsent } = meaningOf(status);
  if (isOurs || (isAbsent && prior === 'failed')) return { next: 'release', prior };
  if (isSuccess(status) && owner?.isShown) return { next: 'released', prior };
  if (isSuccess(status) || isAbsent || isFinal) return { next: 'unknown', prior: 'unknown' };
  // A refusal or a redirect does not show whose session it is, and can pass.
  return { next: 'check owner', prior, pauses: true };
}

function afterFailure(owner: ReleaseTicket['owner'], prior: PriorRelease): Step['next'] {
  if (prior === 'none') return 'release';
  if (owner) return 'check owner';
  return prior === 'failed' ? 'release' : 'unknown';
}

function failureOf(prior: PriorRelease): 'failed' | 'unknown' {
  return prior === 'unknown' ? 'unknown' : 'failed';
}

/** Pauses between two requests. */
const BACKOFF = { factor: 2, minTimeout: 100, maxTimeout: 2000, randomize: true };
/** Maximum part of the time for one request, so that an unanswered request leaves time for another one. */
const LONGEST_PART = 1 / 2;
/** Shortest timeout of a request in ms, if there is time. */
const SHORTEST_REQUEST = 1000;

/** Time of the check before the cleaning of a browser, in ms. */
const CHECK_TIMEOUT = 5000;

/** Sends a request of a release. Never rejects. */
export type SendRelease = (request: CompleteRequest, timeout: number) => Promise<Reply>;

interface ReleasePlan {
  readonly reuses: boolean;
  /** Milliseconds for all requests. */
  readonly timeout: number;
  readonly prior?: PriorRelease;
  readonly send: SendRelease;
}

/** Releases a browser: repeats the request until the service confirms it, or until the time is over. Never rejects. */
export async function releaseBrowser(
  ticket: ReleaseTicket,
  { reuses, timeout, prior = 'none', send }: ReleasePlan,
): Promise<ReleaseResult> {
  const request = reuses ? ticket.reuse : ticket.destroy;
  const policy = { owner: ticket.owner, reuses, gone: request.gone, unclear: request.unclear };
  const began = clock.now();
  const timeLeft = () => Math.max(0, timeout - (clock.now() - began));
  // A request that the deadline interrupts would only leave an unknown outcome.
  const needed = Math.min(SHORTEST_REQUEST, timeout * LONGEST_PART);
  // Without a check of the owner, the release could end the lease of another caller.
  const mayBeReleased = ticket.isShared === true && ticket.owner?.isShown === true && prior === 'none';
  let step = nextStep(policy, mayBeReleased ? 'failed' : prior);
  let asked: number | undefined;
  for (let failures = 0; ;) {
    if (step.next !== 'release' && step.next !== 'check owner') return step.next;
    if (step.pauses) {
      const pause = backoff(BACKOFF, ++failures);
      // A service may ask for more time than there is: the last request is sent earlier.
      await delay(
        asked ? Math.min(asked, Math.max(pause, timeLeft() - needed)) : Math.min(pause, timeLeft()),
      );
    }
    if (failures > 0 && timeLeft() < needed) return failureOf(step.prior);
    const part = Math.min(timeLeft(), Math.max(SHORTEST_REQUEST, timeout * LONGEST_PART));
    const check = step.next === 'check owner' ? ticket.owner! : undefined;
    const reply = await send(check ?? request, part);
    asked = reply.retryAfter;
    step = nextStep(policy, step.prior, check ? readOwner(reply, check) : { ...reply, to: 'release' });
  }
}

/** Whether the service shows that a lease, which others can have released, is over. Never rejects. */
export async function isLeaseOver({ isShared, owner }: ReleaseTicket, send: SendRelease): Promise<boolean> {
  if (!isShared || !owner?.isShown) return false;
  return readOwner(await send(owner, CHECK_TIMEOUT), owner).isOurs === false;
}

function readOwner(reply: Reply, check: OwnerCheck): OwnerReply {
  const { status, body = '' } = reply;
  if (status === undefined || !isSuccess(status)) return { ...reply, to: 'owner' };
  const record = jsonOf(body);
  // A record that can't be read does not show whose lease the session is.
  if (record === undefined) return { to: 'owner', isSent: true };
  return { ...reply, to: 'owner', isOurs: isOurs(record, check) };
}

/** Pauses between two searches. */
const SEARCH_PAUSE = { factor: 1.5, minTimeout: 500, maxTimeout: 5000, randomize: true };
/** Milliseconds after the last time at which the service can lease the browser. Until then, a failed search is repeated. */
const LATEST_SEARCH = 60_000;
const SEARCH_TIMEOUT = 5000;

export interface SearchPlan extends Pick<ReleasePlan, 'send'> {
  /** Milliseconds in which the service may still lease the browser. */
  readonly timeLeft: () => number;
  /** Releases what was found. */
  readonly release: (ticket: ReleaseTicket) => Promise<unknown>;
  /** Called when a search worked, and found nothing yet. */
  readonly onNothing?: () => void;
  /** Waits before the next search. Resolves to false if that is the last one. */
  readonly pause?: (milliseconds: number) => Promise<boolean>;
}

/** Searches once for the browser of an acquire request whose response nobody read. Never rejects. */
export async function searchOnce({ search, found, ...where }: SearchTicket, send: SendRelease) {
  const reply = await send(search, SEARCH_TIMEOUT);
  const hasWorked = reply.status !== undefined && isSuccess(reply.status);
  const ids = hasWorked ? idsIn(jsonOf(reply.body ?? ''), where) : [];
  const ticketOf = (id: string) => JSON.parse(JSON.stringify(found).replaceAll(ANY_ID, id)) as ReleaseTicket;
  return { reply, hasWorked, found: ids.map(ticketOf) };
}

async function pauseFully(milliseconds: number): Promise<boolean> {
  await delay(milliseconds);
  return true;
}

/**
 * Searches for the browser of an acquire request whose response nobody read, and releases it. A search that found nothing is
 * repeated while the service may still lease the browser, and a search that failed is repeated in any case: a failure does not
 * show that there is no browser.
 */
export async function releaseFound(
  ticket: SearchTicket,
  { timeLeft, send, release, onNothing, pause = pauseFully }: SearchPlan,
): Promise<void> {
  let lastTime: number | undefined;
  let goesOn = true;
  for (let searches = 1; ; searches++) {
    const isLast = timeLeft() <= 0;
    if (isLast) lastTime ??= clock.now();
    const { reply, hasWorked, found } = await searchOnce(ticket, send);
    if (found.length > 0) return void (await Promise.all(found.map((one) => release(one))));
    const { status, isFinal, retryAfter: asked } = reply;
    if (hasWorked) onNothing?.();
    if (isFinal || !goesOn || (hasWorked && isLast)) return;
    // The service has no search, or refuses it.
    if (status !== undefined && !hasWorked && isFinal === undefined && isRefused(status)) return;
    if (lastTime !== undefined && clock.now() - lastTime > LATEST_SEARCH) return;
    goesOn = await pause(
      Math.min(asked || backoff(SEARCH_PAUSE, searches), isLast ? LATEST_SEARCH : Math.max(timeLeft(), 1)),
    );
  }
}

function isRefused(status: number): boolean {
  const { isTransient, isAbsent } = meaningOf(status);
  return isAbsent || !isTransient;
}
