import type { OpenCdp, Opening } from '../../drivers/extension.js';
import type { FeatureContext, LeaseFeature } from '../../lease/feature.js';
import { LinkedAbort, onAbort, raceAbort } from '../../shared/abort.js';
import { lazy } from '../../shared/lazy.js';
import { LeaseOverError } from '../../shared/lease-errors.js';
import type { StepOf } from '../../shared/telemetry.js';
import { declareFeature } from '../declaration.js';
import type { HandoffAnswer, HandoffFacts, HandoffRequest, HandoffSteps } from './options.js';

export const declared = declareFeature<{ facts: HandoffFacts; steps: HandoffSteps }>()({ checks: {} });

/** @internal */
export interface AskOptions {
  /** Stops the timers of the lease, and what observes the browser. */
  readonly pause: () => Promise<(end: string) => Promise<void>>;
  /** Opens the connection to show the browser, if this process has none. */
  readonly openCdp?: OpenCdp | undefined;
  /** Aborts when the one who has asked no longer waits. */
  readonly signal?: AbortSignal | undefined;
}

const load = lazy(() => import('./handoff.js'));

/** @internal */
export const create = async () => new Handoffs();

/** Asks a person to use the browser of a lease. Nothing of it loads before the first time. */
class Handoffs implements LeaseFeature {
  readonly #over = new LinkedAbort();
  #lease: FeatureContext<StepOf<HandoffSteps>> | undefined;
  #opening: Opening | undefined;
  /** The last one: a lease has one at a time, and a further one waits. */
  #last: Promise<unknown> = Promise.resolve();

  leased(lease: FeatureContext<StepOf<HandoffSteps>>): void {
    this.#lease = lease;
  }

  async connect(_lease: FeatureContext, opening: Opening): Promise<undefined> {
    this.#opening = opening;
  }

  async stop({ lease: { sessionId } }: { readonly lease: FeatureContext }): Promise<void> {
    this.#over.abort(new LeaseOverError('The lease has ended.', { sessionId }));
    await this.#last;
  }

  /**
   * Opens a page for a person, and resolves with the answer.
   *
   * @throws HandoffTimeoutError; the reason of the signal of the lease; ConnectionDroppedError; LeaseOverError.
   */
  ask(request: HandoffRequest, how: AskOptions): Promise<HandoffAnswer> {
    const asking = this.#last.then(() => this.#ask(request, how));
    this.#last = asking.catch(() => {});
    return asking;
  }

  async #ask(request: HandoffRequest, { pause, openCdp, signal: asker }: AskOptions): Promise<HandoffAnswer> {
    const lease = this.#lease!;
    const over = new LinkedAbort(lease.signal);
    const stopListening = this.#over.onAbort(() => over.abort(this.#over.signal.reason));
    const leave = onAbort(asker, () => over.abort(asker!.reason));
    let resume: ((end: string) => Promise<void>) | undefined;
    let end = NOBODY;
    try {
      over.throwIfAborted();
      resume = await raceAbort(pause(), over.signal, (late) => void late(NOBODY));
      const { handOff } = await raceAbort(load(), over.signal);
      const [opening, ended, signal] = [this.#opening, this.#over, over.signal];
      const answer = await handOff(request, { lease, opening, openCdp, signal, ended });
      end = ANSWERS[answer.status];
      return answer;
    } finally {
      stopListening();
      leave();
      over.dispose();
      await resume?.(end);
    }
  }
}

/** For people who read what happened in the lease. */
const ANSWERS = { done: 'The person answered: "Done".', declined: 'The person answered: "Cannot be done".' };
const NOBODY = 'The hand-off ended without an answer.';
