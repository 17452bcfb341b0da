import type { Abortable } from '../shared/abort.js';
import { backoff, clock, nextMacrotask, startTimer, type Backoff } from '../shared/clock.js';
import { createAbort } from '../shared/globals.js';

/** Most requests that the calls of one process have open at one pool. */
const MOST_OPEN = 32;
/** A service that refuses at once does so within this many ms: one that is silent for longer is preparing a browser. */
const QUIET = 250;
/** A request without an answer for this many ms has reached a service that works, and waits for a browser. */
const PATIENCE = 12_000;
/** The unit of the time for which a service can be asked to wait, and the time that an answer may be late, in ms. */
const SECOND = 1000;
/** Requests that are sent within this many ms are sent together. */
const TOGETHER = 100;
/** After this many releases a full service is asked for one more browser, whatever the pause: they show how long leases take. */
const RELEASES_A_PROBE = 4;
/**
 * How the pause between two requests to a full service grows, and how long it gets in ms. A random part keeps processes apart. A process
 * that has leases asks more rarely, because its own releases show it that a browser is free: so the others get their turn.
 */
const FULL_PAUSES = {
  withLeases: { factor: 2, longest: 1500 },
  without: { factor: 1.2, longest: 1000 },
};

/** The answer to one request. */
export interface Answer {
  readonly isGranted: boolean;
  /**
   * What it says about the service: it works; it is full, and refused at once; it has an outage; or nothing yet, because the
   * connection that follows is the lease.
   */
  readonly says: 'works' | 'full' | 'outage' | 'nothing';
  /** Milliseconds that the service asked to wait. */
  readonly retryAfter?: number | undefined;
  readonly error?: Error | undefined;
}

/** Permits a caller to send one request. */
export interface Permission {
  /** Aborts when nobody waits for the request: what is not written yet is not sent. */
  readonly signal: AbortSignal;
  /** The time that the service may let the request wait, in ms: whole seconds. With `Infinity`, the service decides. */
  readonly wait: number;
  /** The request is written: from now on, it may lease a browser. */
  readonly onWrite: () => void;
}

/** A call that wants a browser of the pool. */
export interface Caller<Reply> {
  /** Its number in the order of all calls. */
  readonly number: number;
  /** Callers with the same source and kind can use each other's browsers. */
  readonly source: object;
  readonly kind: string;
  /** Most leases of this process at once. */
  readonly limit: number;
  readonly retry: Backoff;
  /** The time that it wants the service to let a request wait, in ms. With `Infinity`, the service decides. */
  readonly wait: number;
  /** Sends one request. Its answer is read also if nobody waits for it any more. */
  readonly send: (permission: Permission) => Promise<Reply>;
  /** Keeps the pool open until the answer has its taker. */
  readonly track: (work: Promise<void>) => void;
  /** Releases the browser of an answer that nobody waits for. */
  readonly release: (reply: Reply) => void;
}

/** The place of a caller in the line, until it leaves. */
export interface Place<Reply> {
  readonly caller: Caller<Reply>;
  /** Settles the wait for an answer. Undefined while the caller waits for nothing. */
  waiting?: { resolve: (served: Served<Reply>) => void; reject: (reason: unknown) => void } | undefined;
  /** Lets the caller send. The request belongs to the asynchronous context of its caller, whoever has made way for it. */
  begin?: ((request: Request<Reply>) => void) | undefined;
  /** The request whose answer the caller gets, if it grants nothing. */
  request?: Request<Reply> | undefined;
  /** The request that was open when the caller stopped waiting. */
  abandoned?: Request<Reply> | undefined;
  /** Requests of the caller in the present outage. */
  asked: number;
}

interface Request<Reply> extends Question {
  /** Undefined when its caller has left, or has the browser of another request. */
  owner: Place<Reply> | undefined;
  readonly sender: Caller<Reply>;
  isWritten: boolean;
  /** When it and those that were sent after it get an answer at the latest, by the clock. */
  readonly endsAt: number;
  readonly wait: number;
  readonly cut: AbortController;
}

/** An answer and, if it grants a browser, what its holder must call. */
export interface Served<Reply> {
  readonly reply: Reply;
  /** Ends the place among the leases of this process, once. @param isReleased The service has the browser back. */
  readonly free: (isReleased?: boolean) => void;
  /** Reports the connection that is the lease. */
  readonly confirm: (answer: Omit<Answer, 'isGranted'>) => void;
}

/**
 * The gate of this process to one pool: who sends an acquire request, and who gets the browser.
 *
 * - The caller that has waited longest comes first. A browser goes to the caller that has waited longest among those who want
 *   the like, whichever request leased it; the open requests then change their owners.
 * - A service serves the requests that wait in their order, but sends those back that it could not serve in time. So a request does not
 *   wait longer than those of earlier callers that can't use its browser: they end together, and are sent again in the order of the calls.
 * - There are at most `limit` leases and open requests at once, and at most 32 open requests.
 * - When the next request may be sent depends on what the answers have shown: see `Pace`.
 */
export class Gate<Reply extends Answer> {
  /** The waiting callers, in the order of the calls. */
  readonly #line: Place<Reply>[] = [];
  readonly #open = new Set<Request<Reply>>();
  readonly #pace: Pace;
  /** Leases of this process. */
  #held = 0;
  /** How to end the places of detached leases, by session id. */
  readonly #kept = new Map<string, () => void>();
  #isAwake = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param refusesAtOnce The service never lets a request wait. */
  constructor(refusesAtOnce = false) {
    this.#pace = new Pace(refusesAtOnce, () => this.#wake());
  }

  /** Number of callers. */
  get length(): number {
    return this.#line.length;
  }

  /** True if the next caller has to wait for others of this process. */
  isBusy(limit: number): boolean {
    return this.#line.length >= MOST_OPEN || this.#held + this.#line.length >= limit;
  }

  /** The error of an outage in which a further caller would have to wait. */
  get closedBy(): Error | undefined {
    return this.#pace.outage(this.#owned);
  }

  /** Joins the line. The caller must leave. */
  enter(caller: Caller<Reply>): Place<Reply> {
    const place: Place<Reply> = { caller, asked: 0 };
    this.#line.splice(this.#indexOf(caller.number + 1), 0, place);
    return place;
  }

  /** Waits for the answer to one request of the caller, or for the browser of another one. Rejects with the reason of the signal. */
  ask(place: Place<Reply>, abort: Abortable): Promise<Served<Reply>> {
    // The reason may be any value, and is passed on unchanged.
    if (abort.isAborted) return Promise.reject(abort.signal.reason as Error);
    return new Promise((resolve, reject) => {
      const stopListening = abort.onAbort(() => {
        place.waiting = undefined;
        reject(abort.signal.reason as Error);
        this.#abandon(place, abort.signal.reason);
      });
      place.waiting = {
        resolve: (served) => (stopListening(), resolve(served)),
        reject: (error) => (stopListening(), reject(error)),
      };
      // In the asynchronous context of the caller, also for the request after one whose browser went to another caller.
      const awaitTurn = () => {
        const turn = new Promise<Request<Reply>>((resolve) => (place.begin = resolve));
        void turn.then((request) => {
          awaitTurn();
          this.#send(request);
        });
      };
      awaitTurn();
      this.#wake();
    });
  }

  /** Leaves the line. The answer to an open request is for others. */
  leave(place: Place<Reply>): void {
    const index = this.#indexOf(place.caller.number);
    if (this.#line[index] === place) this.#line.splice(index, 1);
    this.#abandon(place, new DOMException('The caller has left', 'AbortError'));
  }

  /** A request of the caller may still lease a browser. */
  isOpen({ request, abandoned }: Place<Reply>): boolean {
    const latest = request ?? abandoned;
    return latest !== undefined && latest.isWritten && this.#open.has(latest);
  }

  /** Keeps the place of a detached lease: no other lease of this process may use its browser. */
  keep(sessionId: string, free: () => void): void {
    this.#kept.set(sessionId, free);
  }

  /**
   * Returns the function that ends a lease which began elsewhere, or was detached here. Such a lease has its browser already,
   * so it does not wait. Returns undefined if `isAlone`, and the limit is reached by other leases.
   */
  join(
    sessionId: string,
    { limit, isAlone }: { limit: number; isAlone: boolean },
  ): Served<Reply>['free'] | undefined {
    const kept = this.#kept.get(sessionId);
    this.#kept.delete(sessionId);
    if (kept) return kept;
    return isAlone && this.#held + this.#owned >= limit ? undefined : this.#hold();
  }

  /** Number of open requests that callers wait for. */
  get #owned(): number {
    let count = 0;
    for (const { owner } of this.#open) if (owner) count++;
    return count;
  }

  /** Where a call with this number is in the line, or would be. */
  #indexOf(number: number): number {
    let [low, high] = [0, this.#line.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#line[middle]!.caller.number < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Admits callers in a moment: many may leave at the same time. */
  #wake(): void {
    if (this.#isAwake) return;
    this.#isAwake = true;
    // Not `queueMicrotask`, which a test of the caller can have replaced.
    void Promise.resolve().then(() => {
      this.#isAwake = false;
      this.#admit();
    });
  }

  /** Lets all callers send that may send now. */
  #admit(): void {
    clock.clearTimeout(this.#timer);
    for (;;) {
      const open = this.#owned;
      const pause = this.#pace.pauseBefore(open);
      if (pause === undefined) return;
      const next = this.#first(this.#held + open);
      if (!next) return;
      const before = this.#timeBefore(next);
      const wait = waitWithin(before, next.caller.wait);
      if (pause > 0 || wait === undefined) {
        this.#timer = startTimer(wait === undefined ? Math.max(pause, before + SECOND) : pause, () => {
          if (pause > 0) this.#pace.endPause();
          this.#wake();
        });
        return;
      }
      this.#begin(next, wait);
    }
  }

  /** The caller whose turn it is. During an outage, the last one that asked may itself be what fails. */
  #first(taken: number): Place<Reply> | undefined {
    let first: Place<Reply> | undefined;
    for (const place of this.#line) {
      if (!place.waiting || place.request || taken >= place.caller.limit) continue;
      if (!this.#pace.isDown) return place;
      if (!first || place.asked < first.asked) first = place;
    }
    return first;
  }

  /** Milliseconds until an earlier caller that can't use the browser of this one gets an answer. Up to a second late, it is negative. */
  #timeBefore({ caller }: Place<Reply>): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { owner, endsAt } of this.#open) {
      const isEarlier = owner && owner.caller.number < caller.number && !isLike(owner.caller, caller);
      const left = endsAt - clock.now();
      if (isEarlier && left > -SECOND) first = Math.min(first, left);
    }
    return first;
  }

  #begin(place: Place<Reply>, wait: number): void {
    const { caller } = place;
    const request = {
      ...this.#pace.ask(),
      owner: place,
      sender: caller,
      isWritten: false,
      endsAt: clock.now() + Math.min(this.#timeBefore(place), caller.wait),
      wait,
      cut: createAbort(),
    };
    this.#open.add(request);
    place.request = request;
    place.asked = this.#pace.isDown ? place.asked + 1 : 0;
    place.begin!(request);
  }

  #send(request: Request<Reply>): void {
    const { sender, wait, cut } = request;
    const onWrite = () => (request.isWritten = true);
    const answered = sender.send({ signal: cut.signal, wait, onWrite }).then(
      (reply) => this.#answer(request, reply),
      (error: unknown) => {
        this.#end(request)?.reject(error);
        this.#wake();
      },
    );
    sender.track(answered);
  }

  #answer(request: Request<Reply>, reply: Reply): void {
    this.#learn(request, reply);
    if (reply.isGranted) this.#give(request, reply);
    else this.#end(request)?.resolve({ reply, free: () => {}, confirm: () => {} });
    // One that had to wait in vain asks again first.
    if (reply.isGranted || reply.says !== 'works') this.#wake();
    else void nextMacrotask().then(() => this.#wake());
  }

  #learn(request: Request<Reply>, answer: Answer): void {
    this.#pace.learn(request, answer, { retry: request.sender.retry, isHolding: this.#held > 0 });
  }

  #end(request: Request<Reply>): Place<Reply>['waiting'] {
    const { owner } = request;
    this.#open.delete(request);
    this.#pace.end(request);
    if (!owner) return undefined;
    owner.request = undefined;
    const { waiting } = owner;
    owner.waiting = undefined;
    return waiting;
  }

  /** Gives a browser to the caller that has waited longest for the like. */
  #give(request: Request<Reply>, reply: Reply): void {
    const { owner, sender } = request;
    const taken = this.#held + this.#owned;
    const taker = this.#line.find(
      (one) =>
        one.waiting &&
        isLike(one.caller, sender) &&
        // The place of this request, or of the caller's own, is free then.
        (owner !== undefined || one.request !== undefined || taken < one.caller.limit),
    );
    if (!taker) {
      this.#end(request);
      sender.release(reply);
      return;
    }
    if (taker !== owner) exchange(taker, request);
    const waiting = this.#end(request)!;
    const free = this.#hold();
    // The connection that follows is the request, as far as the service is concerned.
    if (reply.says === 'nothing') this.#open.add(Object.assign(request, { owner: taker }));
    const confirm: Served<Reply>['confirm'] = (answer) => {
      if (!this.#open.delete(request)) return;
      this.#learn(request, { ...answer, isGranted: answer.says === 'works' });
      this.#wake();
    };
    waiting.resolve({ reply, free, confirm });
  }

  /** Nobody waits for the request of a caller any more. */
  #abandon(place: Place<Reply>, reason: unknown): void {
    const { request } = place;
    place.request = undefined;
    if (request) {
      place.abandoned = request;
      request.owner = undefined;
      request.cut.abort(reason);
    }
    this.#wake();
  }

  #hold(): Served<Reply>['free'] {
    this.#held++;
    let isHeld = true;
    return (isReleased = false) => {
      if (!isHeld) return;
      isHeld = false;
      this.#held--;
      if (isReleased) this.#pace.noteRelease();
      this.#wake();
    };
  }
}

/**
 * For how many ms a request may wait of which the answer is due before another one, so that it ends a second before: requests take
 * different times to a service. Undefined: there is too little time.
 *
 * @param left Milliseconds until the other answer.
 * @param wanted Milliseconds for which it would wait otherwise.
 */
function waitWithin(left: number, wanted: number): number | undefined {
  if (wanted <= left + TOGETHER) return wanted;
  const whole = (Math.floor(left / SECOND) - 1) * SECOND;
  return whole > 0 ? whole : undefined;
}

/** Two callers can use each other's browsers. */
function isLike(one: Likeness, other: Likeness): boolean {
  return one.source === other.source && one.kind === other.kind;
}

type Likeness = Pick<Caller<unknown>, 'source' | 'kind'>;

/** The first caller takes the browser of the request, whose owner waits for the open request of that caller instead. */
function exchange<Reply>(taker: Place<Reply>, request: Request<Reply>): void {
  const { owner } = request;
  const { request: spare } = taker;
  if (spare) spare.owner = owner;
  if (owner) owner.request = spare;
  request.owner = taker;
  taker.request = request;
}

/** What was known about the service when a request was sent. */
interface Question {
  readonly sentAt: number;
  readonly epoch: number;
  readonly releases: number;
  /** Tests whether a full service has room, or whether an outage is over. */
  readonly isProbe: boolean;
}

/**
 * When the next request may be sent, by what the answers to the last ones have shown:
 *
 * - A service that lets requests wait gets up to 32 at once. One that refuses at once gets one at first, one more for each browser, and
 *   twice as many whenever it does not refuse for a moment: many processes that begin together share its places.
 * - A full service is asked by one request at a time: at once for each browser that this process has released, otherwise after a pause.
 *   Two browsers in a row without a release here mean that it has room again. Every fourth release makes a pause end.
 * - A service with an outage is asked by one request at a time, after a pause that grows.
 * - The answer to a request that is older than the last refusal shows nothing new.
 */
class Pace {
  #state: 'open' | 'full' | 'down' = 'open';
  /** Changes with each refusal. */
  #epoch = 0;
  /** Refusals in a row in the present state. */
  #refusals = 0;
  /** When the next request may be sent, and when the last one was, by the clock. */
  #opensAt = 0;
  #askedAt = 0;
  /** Most open requests while the service has room. */
  #width: number;
  /** Browsers that this process has released, in all, and those for which a full service was not asked yet. */
  #releases = 0;
  #credits = 0;
  /** The last probe of a full service found a browser. */
  #hasFound = false;
  /** The last failure of an outage. */
  #fault: Error | undefined;
  #patience: NodeJS.Timeout | undefined;
  readonly #onOpen: () => void;

  constructor(refusesAtOnce: boolean, onOpen: () => void) {
    this.#width = refusesAtOnce ? 1 : MOST_OPEN;
    this.#onOpen = onOpen;
  }

  get isDown(): boolean {
    return this.#state === 'down';
  }

  /** The failure of an outage in which a further request would have to wait. @param open Number of open requests. */
  outage(open: number): Error | undefined {
    return this.isDown && (open > 0 || this.#opensAt > clock.now()) ? this.#fault : undefined;
  }

  /** Milliseconds until a request may be sent beside the open ones. It is undefined if one of these must be answered first. */
  pauseBefore(open: number): number | undefined {
    if (open >= MOST_OPEN) return undefined;
    if (this.#hasCredit) return 0;
    if (this.#state !== 'open' && open > 0) return undefined;
    const isWide = this.#state !== 'open' || open < this.#width;
    const opensAt = isWide ? this.#opensAt : Math.max(this.#opensAt, this.#askedAt + QUIET);
    return Math.max(isWide ? 0 : 1, Math.round(opensAt - clock.now()));
  }

  /** A timer has made the pause. The clock may be one that a test has stopped. */
  endPause(): void {
    if (this.#opensAt === 0) this.#width = Math.min(MOST_OPEN, this.#width * 2);
    this.#opensAt = 0;
  }

  /** A request is about to be sent. */
  ask(): Question {
    const isProbe = this.#state !== 'open' && !this.#hasCredit;
    if (this.#hasCredit) this.#credits--;
    if (this.isDown) this.#patience = startTimer(PATIENCE, () => this.#reopen());
    this.#askedAt = clock.now();
    return { sentAt: this.#askedAt, epoch: this.#epoch, releases: this.#releases, isProbe };
  }

  /** Nobody waits for its answer any more. */
  end({ isProbe }: Question): void {
    if (isProbe) clock.clearTimeout(this.#patience);
  }

  /** A browser was released by this process. */
  noteRelease(): void {
    this.#releases++;
    if (this.#state !== 'full') return;
    this.#credits++;
    if (this.#releases % RELEASES_A_PROBE === 0) this.#opensAt = 0;
  }

  learn(
    question: Question,
    { says, retryAfter, isGranted, error }: Answer,
    { retry, isHolding }: { retry: Backoff; isHolding: boolean },
  ): void {
    const isNews = question.epoch === this.#epoch;
    const now = clock.now();
    if (says === 'nothing') return;
    if (says === 'outage' && now - question.sentAt < PATIENCE) {
      if (this.isDown && !isNews) return;
      this.#refuse('down');
      this.#fault = error ?? new Error('The service has an outage.');
      this.#opensAt = now + (retryAfter ?? backoff(retry, this.#refusals));
    } else if (says === 'full') {
      if (this.#state === 'full' && !isNews) return;
      // The request may be older than a release.
      if (this.#state !== 'full') this.#credits = this.#releases - question.releases;
      this.#refuse('full');
      const { factor, longest } = FULL_PAUSES[isHolding ? 'withLeases' : 'without'];
      const pause = Math.min(backoff({ ...retry, factor }, this.#refusals), longest * (1 + Math.random()));
      this.#opensAt = now + (retryAfter ?? pause);
    } else {
      if (this.isDown) this.#reopen();
      if (isGranted && isNews) this.#widen(question.isProbe);
      if (retryAfter !== undefined) this.#opensAt = Math.max(this.#opensAt, now + retryAfter);
    }
  }

  get #hasCredit(): boolean {
    return this.#state === 'full' && this.#credits > 0;
  }

  #refuse(state: 'full' | 'down'): void {
    this.#refusals = this.#state === state ? this.#refusals + 1 : 1;
    this.#state = state;
    this.#epoch++;
    this.#hasFound = false;
  }

  /** A browser was leased. */
  #widen(isProbe: boolean): void {
    if (this.#state === 'open') {
      this.#width = Math.min(MOST_OPEN, this.#width + 1);
      return;
    }
    // A browser in the place of one that was released here shows no room.
    if (!isProbe) return;
    this.#opensAt = 0;
    if (this.#hasFound) this.#reopen(2);
    this.#hasFound = true;
  }

  #reopen(width = this.#width): void {
    clock.clearTimeout(this.#patience);
    this.#state = 'open';
    this.#refusals = 0;
    this.#opensAt = 0;
    this.#width = width;
    this.#onOpen();
  }
}
