import type { FeatureContext, Finished, LeaseFeature } from '../../lease/feature.js';
import type { LeaseRequest } from '../../services/browser-service.js';
import { LinkedAbort, onAbort } from '../../shared/abort.js';
import { clock, LONGEST_TIMER, startTimer } from '../../shared/clock.js';
import { InvalidOptionError } from '../../shared/errors.js';
import { isRecord } from '../../shared/json.js';
import { LeaseExpiredError, LeaseOverError } from '../../shared/lease-errors.js';
import { milliseconds, readOption } from '../../shared/options.js';
import type { StepOf } from '../../shared/telemetry.js';
import type { LifetimeFacts, LifetimeSettings, LifetimeSteps } from './options.js';

type Context = FeatureContext<StepOf<LifetimeSteps>>;

/** The event `lease-expiring` is emitted this time before the end, in ms, or after half of the time. */
const WARNING = 60_000;

/** What another process continues with. Times are in ms. */
export interface SavedLifetime {
  /** Of the lease when it was saved. */
  readonly age: number;
  readonly lifetime: number;
  /** As JSON has it: null if there is none. */
  readonly maxLifetime: number | null;
  /** When it was saved, by the clock of that machine. */
  readonly savedAt: number;
}

/** The option `lifetime`: ends a lease after a time, unless it is extended. */
export class Lifetime implements LeaseFeature {
  readonly facts: LifetimeFacts = { extend: (ms) => this.#extend(ms) };
  readonly #settings: LifetimeSettings;
  #period: Period | undefined;

  constructor(settings: LifetimeSettings) {
    this.#settings = settings;
  }

  /** Milliseconds until the end; undefined if the lease has none. */
  get remaining(): number | undefined {
    return this.#period?.remaining;
  }

  /** What another process continues with. Undefined without an end. */
  get saved(): SavedLifetime | undefined {
    return this.#period?.saved;
  }

  request(): Partial<LeaseRequest> {
    const { lifetime } = this.#settings;
    return lifetime === Number.POSITIVE_INFINITY ? {} : { endsAfter: lifetime };
  }

  leased(lease: Context, saved: unknown): AbortSignal | undefined {
    this.#period = new Period(lease, periodOf(this.#settings, saved));
    onAbort(lease.abandoned, () => this.#period?.close());
    return this.#period.over;
  }

  /** A release that has begun is not cut. */
  async stop(): Promise<void> {
    this.#period?.close();
  }

  async finish(): Promise<Finished | undefined> {
    return { saved: this.saved };
  }

  #extend(given: number): number {
    const ms = readOption(milliseconds(), 'extend', given);
    if (this.#period) return this.#period.extend(ms);
    throw new InvalidOptionError('extend', 'extend needs a leased browser.');
  }
}

/** When a lease began, and how long it lasts, in ms. */
interface Times {
  readonly age: number;
  readonly lifetime: number;
  readonly maxLifetime: number;
}

/** The times of a lease that begins, or of one that another process began: that one is never prolonged. */
function periodOf({ lifetime, maxLifetime = 2 * lifetime }: LifetimeSettings, saved: unknown): Times {
  const before = readSaved(saved);
  if (!before) return { age: 0, lifetime, maxLifetime };
  const age = before.age + Math.max(0, Date.now() - before.savedAt);
  return {
    age,
    lifetime: Math.min(before.lifetime, age + lifetime),
    maxLifetime: Math.min(before.maxLifetime ?? Number.POSITIVE_INFINITY, age + maxLifetime),
  };
}

/** It comes from outside. */
function readSaved(saved: unknown): SavedLifetime | undefined {
  if (!isRecord(saved)) return undefined;
  const { age, lifetime, maxLifetime, savedAt } = saved;
  const isTime = (value: unknown): value is number => typeof value === 'number' && value >= 0;
  if (!isTime(age) || !isTime(lifetime) || !isTime(savedAt)) return undefined;
  if (maxLifetime !== null && !isTime(maxLifetime)) return undefined;
  return { age, lifetime, maxLifetime, savedAt };
}

/** The time of one leased browser. */
class Period {
  readonly #lease: Context;
  /** When the lease began, by the monotonic clock. */
  readonly #began: number;
  readonly #maxLifetime: number;
  readonly #over = new LinkedAbort();
  #lifetime: number;
  #timer: NodeJS.Timeout | undefined;
  /** `lease-expiring` is due at this age. Undefined after it. */
  #warnAt: number | undefined;
  #isClosed = false;

  constructor(lease: Context, { age, lifetime, maxLifetime }: Times) {
    this.#lease = lease;
    this.#began = clock.now() - age;
    this.#lifetime = lifetime;
    this.#maxLifetime = maxLifetime;
    this.#start();
  }

  /** Aborts at the end. Undefined without one. */
  get over(): AbortSignal | undefined {
    return this.#hasEnd ? this.#over.signal : undefined;
  }

  get remaining(): number | undefined {
    return this.#hasEnd ? Math.max(0, Math.round(this.#lifetime - this.#age)) : undefined;
  }

  /** The lifetime for a keep file; undefined if the lease has no end. */
  get saved(): SavedLifetime | undefined {
    if (!this.#hasEnd) return undefined;
    const maxLifetime = Number.isFinite(this.#maxLifetime) ? this.#maxLifetime : null;
    return { age: this.#age, lifetime: this.#lifetime, maxLifetime, savedAt: Date.now() };
  }

  extend(ms: number): number {
    const { service, sessionId } = this.#lease;
    const facts = { pool: service.pool, sessionId };
    // A busy process may be late.
    if (this.#age >= this.#lifetime) this.#expire();
    this.#lease.signal.throwIfAborted();
    if (this.#isClosed) throw new LeaseOverError('The lease has ended: it can not be extended.', facts);
    if (!this.#hasEnd) {
      const message = 'The lease has no end to move: it was leased without the option lifetime.';
      throw new InvalidOptionError('extend', message, facts);
    }
    this.#lifetime = Math.min(this.#lifetime + ms, this.#maxLifetime);
    this.#start();
    return this.remaining!;
  }

  close(): void {
    this.#isClosed = true;
    clock.clearTimeout(this.#timer);
  }

  get #hasEnd(): boolean {
    return this.#lifetime !== Number.POSITIVE_INFINITY;
  }

  get #age(): number {
    return clock.now() - this.#began;
  }

  #start(): void {
    if (!this.#hasEnd) return;
    const left = this.#lifetime - this.#age;
    this.#warnAt = this.#lifetime - Math.min(WARNING, left / 2);
    this.#wait();
  }

  /** Waits for the event or the end, whichever is next; a longer time than a timer has, in parts. */
  #wait(): void {
    clock.clearTimeout(this.#timer);
    const left = (this.#warnAt ?? this.#lifetime) - this.#age;
    // The timer must not keep the process alive.
    this.#timer = startTimer(Math.min(Math.max(0, left), LONGEST_TIMER), () => this.#look())?.unref();
  }

  #look(): void {
    if (this.#isClosed) return;
    const age = this.#age;
    if (age >= this.#lifetime) return this.#expire();
    if (this.#warnAt !== undefined && age >= this.#warnAt) {
      this.#warnAt = undefined;
      // The listener may extend the lease.
      this.#lease.emit({
        type: 'lease-expiring',
        sessionId: this.#lease.sessionId,
        remaining: this.remaining!,
      });
    }
    this.#wait();
  }

  #expire(): void {
    const { service, sessionId } = this.#lease;
    this.#over.abort(new LeaseExpiredError(this.#lifetime, { pool: service.pool, sessionId }));
  }
}
