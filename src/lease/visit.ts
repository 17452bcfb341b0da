import type { Caller, Place } from '../pool/gate.js';
import type { GrantReply } from '../pool/grant-reply.js';
import type { PoolCore } from '../pool/pool-core.js';
import { LinkedAbort } from '../shared/abort.js';
import { clock, startTimer } from '../shared/clock.js';

/** Time in ms for the answer to an open request when the time of its pool is over. */
const ANSWER_GRACE = 1000;

interface TimeAtPool {
  /** Of the call. */
  readonly deadline: LinkedAbort;
  /** Milliseconds until the next pool is asked. `Infinity`: there is no other. */
  readonly time: number;
  readonly unreachableTimeout: number;
}

/** The time that a call spends in the line of one pool. Its creator calls `leave`. */
export class Visit<Session extends object> {
  readonly pool: PoolCore<Session>;
  readonly place: Place<GrantReply>;
  /** Aborts when the time is over. The deadline of the call itself, if there is no other pool: thousands of calls may wait. */
  readonly abort: LinkedAbort;
  readonly #how: TimeAtPool;
  readonly #began = clock.now();
  #timer: NodeJS.Timeout | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(pool: PoolCore<Session>, caller: Caller<GrantReply>, how: TimeAtPool) {
    this.pool = pool;
    this.#how = how;
    this.abort = how.time === Number.POSITIVE_INFINITY ? how.deadline : new LinkedAbort(how.deadline.signal);
    this.place = pool.gate.enter(caller);
    this.#timer = startTimer(how.time, () => {
      // The answer to an open request is worth some time: it may bring a browser.
      if (this.isOpen) this.#timer = startTimer(ANSWER_GRACE, () => this.#end());
      else this.#end();
    });
    // Also ends the wait of a caller in the line, which sends no request.
    const watch = () => {
      const left = this.#timeToReach;
      if (left > 0) this.#patience = startTimer(left, watch);
      else if (this.#patience) this.#end();
    };
    watch();
  }

  /** A request of this visit may still lease a browser. */
  get isOpen(): boolean {
    return this.pool.gate.isOpen(this.place);
  }

  /** Milliseconds. */
  get timeLeft(): number {
    const { deadline, time } = this.#how;
    return Math.min(deadline.timeLeft, Math.max(0, time - this.#elapsed));
  }

  /** Ends the time that was only prolonged for the answer to an open request. */
  endIfOver(): void {
    if (this.#elapsed >= this.#how.time) this.#end();
  }

  leave(): void {
    clock.clearTimeout(this.#timer);
    clock.clearTimeout(this.#patience);
    if (this.abort !== this.#how.deadline) this.abort.dispose();
    this.pool.gate.leave(this.place);
  }

  get #elapsed(): number {
    return clock.now() - this.#began;
  }

  /** Milliseconds in which the service must be reached for the first time, by any call. */
  get #timeToReach(): number {
    return this.pool.client.host.reachability.timeLeft(this.#how.unreachableTimeout);
  }

  #end(): void {
    this.abort.abort(new Error('The time at this pool is over.'));
  }
}
