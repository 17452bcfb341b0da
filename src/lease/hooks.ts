import type { ConnectAddition } from '../drivers/extension.js';
import type { LeaseRequest } from '../services/browser-service.js';
import { raceAbort, raceTimeout } from '../shared/abort.js';
import { asError, duration } from '../shared/errors.js';
import { CleanupError } from '../shared/lease-errors.js';
import type { CallContext, LeaseContext } from './context.js';
import type {
  EndWork,
  FeatureSet,
  HandlesOf,
  LeaseEnding,
  LeaseFeature,
  OpenedPart,
  OwnOf,
  SummaryOf,
  Work,
  WorkEnd,
  WorkResult,
} from './feature.js';

/** Longest time of a hook, in ms, if its feature has no `timeout`. */
const TIMEOUT = 10_000;

/** The hooks of the end, in their order. */
export type EndHook = 'stop' | 'collect' | 'cleaning' | 'released';

export class Hooks<Features extends FeatureSet> {
  readonly #features: readonly LeaseFeature[];
  readonly #call: CallContext;

  constructor(features: Features, call: CallContext) {
    this.#features = Object.values(features);
    this.#call = call;
  }

  /** The fact of the first feature that has it. */
  first(fact: 'needsCdp' | 'noDetach'): string | undefined {
    return this.#features.find((one) => one[fact] !== undefined)?.[fact];
  }

  prepare(): Promise<void> {
    return this.#before((one) => one.prepare?.(this.#call.signal));
  }

  request(): Partial<LeaseRequest> {
    return this.#together('request', (one) => one.request?.(this.#call));
  }

  /** Never throws. */
  advise(): (string | undefined)[] {
    return this.#features.map((one) => this.#attempt(one, 'advise', () => one.advise?.(this.#call)));
  }

  /** Never throws. */
  leased(lease: LeaseContext): void {
    for (const one of this.#features) this.#attempt(one, 'leased', () => one.leased?.(lease));
  }

  connect(lease: LeaseContext): ConnectAddition[] {
    return this.#features.flatMap((one) => one.connect?.(lease) ?? []);
  }

  handles(lease: LeaseContext): HandlesOf<Features> & object {
    return this.#together('handles', (one) => one.handles?.(lease)) as HandlesOf<Features> & object;
  }

  opened(lease: LeaseContext, part: OpenedPart | undefined): Promise<void> {
    return this.#before((one) => one.opened?.(lease, part));
  }

  /** Begins a run, a task or a test. The function that ends it never rejects. If one feature can't begin it, what the others began is ended. */
  async begin(work: Work, own?: OwnOf<Features> & object): Promise<EndWork<WorkResult<Features>>> {
    const { lease } = work;
    const begin = async (one: LeaseFeature) => ({
      one,
      end: await limited(one, async () => one.begin?.(work, own)),
    });
    const begun = await Promise.allSettled(this.#features.map(begin));
    const ends = begun.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    const endAll = async (how: WorkEnd | undefined): Promise<WorkResult<Features>> => {
      const endOne = async ({ one, end }: { one: LeaseFeature; end: EndWork | undefined }) =>
        end && this.#run(one, 'end', () => end(how), lease);
      const parts: readonly (object | undefined)[] = await Promise.all(ends.map(endOne));
      return Object.assign({}, ...parts);
    };
    const failed = begun.find((result) => result.status === 'rejected');
    if (!failed) return endAll;
    await endAll(undefined);
    throw failed.reason;
  }

  /** Lets the features surround the callback. */
  surround<Value>(callback: () => Promise<Value>): () => Promise<Value> {
    return this.#features.reduce(
      (inner, one) => (one.surround ? () => one.surround!(inner) : inner),
      callback,
    );
  }

  /** Never rejects. */
  async end(hook: EndHook, ending: LeaseEnding): Promise<void> {
    // After another failure than those that the feature reports, nobody knows what is left in the browser.
    const lease = hook === 'stop' || hook === 'collect' ? ending.lease : undefined;
    const having = this.#features.filter((one) => one[hook]);
    await Promise.all(having.map((one) => this.#run(one, hook, async () => one[hook]!(ending), lease)));
  }

  /** Never throws. */
  summary(): SummaryOf<Features> & object {
    const parts = this.#features.map((one) => this.#attempt(one, 'summary', () => one.summary));
    return Object.assign({}, ...parts);
  }

  /** Never throws: the browser must not be lost with what one feature saves. */
  save(): Record<string, unknown> {
    const save = (one: LeaseFeature) => this.#attempt(one, 'save', () => one.save?.());
    return Object.fromEntries(this.#features.map((one) => [one.name, save(one)]));
  }

  restore(saved: Readonly<Record<string, unknown>>): void {
    for (const one of this.#features) one.restore?.(saved[one.name]);
  }

  /** Calls a hook whose failure fails the call. The end, which follows it, must not meet what other features still do. */
  async #before(hook: (one: LeaseFeature) => Promise<void> | undefined): Promise<void> {
    const working = this.#features.map((one) => limited(one, async () => hook(one)));
    const results = await raceAbort(Promise.allSettled(working), this.#call.signal);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Puts together what the features add. A field of two features would be that of the one which happens to be later. */
  #together<Part extends object>(hook: string, partOf: (one: LeaseFeature) => Part | undefined): Part {
    const all: Record<string, unknown> = {};
    const firsts = new Map<string, string>();
    for (const one of this.#features) {
      for (const [field, value] of Object.entries(partOf(one) ?? {})) {
        if (value === undefined) continue;
        const first = firsts.get(field);
        if (first !== undefined)
          throw new Error(`The features ${first} and ${one.name} both add ${field} (${hook}).`);
        firsts.set(field, one.name);
        all[field] = value;
      }
    }
    return all as Part;
  }

  /** Calls a hook of the end. Never rejects. @param lease Of a hook that uses the browser: it is not reused after a failure. */
  async #run<T>(
    feature: LeaseFeature,
    hook: string,
    work: () => Promise<T>,
    lease: LeaseContext | undefined,
  ): Promise<T | undefined> {
    try {
      return await limited(feature, work);
    } catch (cause) {
      this.#report(feature, hook, cause, lease);
      return undefined;
    }
  }

  /** Calls a hook that takes no time. Never throws. */
  #attempt<T>(feature: LeaseFeature, hook: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (cause) {
      this.#report(feature, hook, cause);
      return undefined;
    }
  }

  #report({ name }: LeaseFeature, hook: string, cause: unknown, lease?: LeaseContext): void {
    const message = `The feature ${name} failed (${hook}): ${asError(cause).message}`;
    if (lease) lease.preventReuse(message, cause);
    else this.#call.addError(new CleanupError(message, { cause }));
  }
}

function limited<T>({ timeout = TIMEOUT }: LeaseFeature, work: () => Promise<T>): Promise<T> {
  return raceTimeout(timeout, work, () => new Error(`it took longer than ${duration(timeout)}`));
}
