import type { ConnectExtension, Opening } from '../drivers/extension.js';
import type { LeaseRequest } from '../services/browser-service.js';
import { onAbort, raceAbort, raceTimeout } from '../shared/abort.js';
import { asError, duration } from '../shared/errors.js';
import { CleanupError } from '../shared/lease-errors.js';
import type { CallContext } from './context.js';
import type {
  EndWork,
  FeatureContext,
  FeatureSet,
  Finished,
  LeaseEnding,
  LeaseFeature,
  SummaryOf,
  Work,
  WorkEnd,
  WorkResult,
} from './feature.js';

/** Longest time of a hook, in ms, if its feature has no `timeout`. */
const TIMEOUT = 10_000;

/** A feature that exists, with its name in the set: for the errors of its hooks, and for what it saves. */
interface Named {
  readonly name: string;
  readonly one: LeaseFeature;
}

export class Hooks<Features extends FeatureSet> {
  readonly #features: readonly Named[];
  readonly #call: CallContext;
  /** What the features saved in another process, by their names. */
  #saved: Readonly<Record<string, unknown>> = {};
  #finished: readonly { feature: Named; end: Finished | undefined }[] = [];

  constructor(features: Features, call: CallContext) {
    this.#features = Object.entries(features).flatMap(([name, one]) => (one ? { name, one } : []));
    this.#call = call;
  }

  /** What the first feature needs that needs it. */
  need(kind: 'cdp' | 'thisProcess'): string | undefined {
    return this.#features.find(({ one }) => one.needs?.[kind] !== undefined)?.one.needs?.[kind];
  }

  /** Calls a hook whose failure fails the call. The end, which follows it, must not meet what other features still do. */
  async prepare(): Promise<void> {
    const having = this.#features.filter(({ one }) => one.prepare !== undefined);
    if (having.length === 0) return;
    const { signal } = this.#call;
    const working = having.map((feature) => limited(feature, async () => feature.one.prepare?.(signal)));
    const results = await raceAbort(Promise.allSettled(working), signal);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Puts together what the features add. A field of two features would be that of the one which happens to be later. */
  request(): Partial<LeaseRequest> {
    const all: Record<string, unknown> = {};
    const firsts = new Map<string, string>();
    for (const { name, one } of this.#features) {
      for (const [field, value] of Object.entries(one.request?.() ?? {})) {
        if (value === undefined) continue;
        const first = firsts.get(field);
        if (first !== undefined)
          throw new Error(`The features ${first} and ${name} both add ${field} (request).`);
        firsts.set(field, name);
        all[field] = value;
      }
    }
    return all;
  }

  /** Never throws. */
  leased(lease: FeatureContext): void {
    for (const feature of this.#features)
      this.#attempt(feature, 'leased', () => {
        const over = feature.one.leased?.(lease, this.#saved[feature.name]);
        if (over) onAbort(over, () => this.#call.abort(over.reason));
      });
  }

  connect(lease: FeatureContext, opening: Opening): Promise<ConnectExtension | undefined>[] {
    return this.#features.map(async ({ one }) => one.connect?.(lease, opening));
  }

  /**
   * Begins the lease, a run, a task or a test. The function that ends it never rejects. If one feature can't begin it, what the others
   * began is ended.
   */
  async begin(work: Work): Promise<EndWork<WorkResult<Features>>> {
    const { lease } = work;
    const begin = async (feature: Named) => ({
      feature,
      end: await limited(feature, async () => feature.one.begin?.(work)),
    });
    const having = this.#features.filter(({ one }) => one.begin !== undefined);
    const begun = await Promise.allSettled(having.map(begin));
    const ends = begun.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    const endAll = async (how: WorkEnd | undefined): Promise<WorkResult<Features>> => {
      const endOne = async ({ feature, end }: { feature: Named; end: EndWork | undefined }) =>
        end && this.#run(feature, 'end', () => end(how), lease);
      const parts: readonly (object | undefined)[] = await Promise.all(ends.map(endOne));
      return Object.assign({}, ...parts);
    };
    const failed = begun.find((result) => result.status === 'rejected');
    if (!failed) return endAll;
    await endAll(undefined);
    throw failed.reason;
  }

  /** Never rejects, and neither does the returned function. */
  async pause(): Promise<(end: string) => Promise<void>> {
    const paused = await this.#each(({ one }) => one.pause && (() => one.pause!()), 'pause');
    const resumes = new Map(paused.map(({ feature, end }) => [feature, end]));
    const resumeAll = (end: string) =>
      this.#each((feature) => {
        const resume = resumes.get(feature);
        return resume && (() => resume(end));
      }, 'resume');
    return async (end) => void (await resumeAll(end));
  }

  /** Never rejects. After a failure that a feature does not report itself, nobody knows what is left in the browser. */
  async stop(ending: LeaseEnding): Promise<void> {
    await this.#each(({ one }) => one.stop && (() => one.stop!(ending)), 'stop', ending.lease);
  }

  /** Never rejects. */
  async finish(ending: LeaseEnding): Promise<void> {
    this.#finished = await this.#each(({ one }) => one.finish && (() => one.finish!(ending)), 'finish');
  }

  /** Never rejects. */
  async released(): Promise<void> {
    const ends = new Map(this.#finished.map(({ feature, end }) => [feature, end]));
    await this.#each((feature) => {
      const end = ends.get(feature);
      return end?.released && (() => end.released!());
    }, 'released');
  }

  /** What the features have saved for another process, by their names. */
  get saved(): Record<string, unknown> {
    return Object.fromEntries(this.#finished.map(({ feature, end }) => [feature.name, end?.saved]));
  }

  /** Continues a lease of another process. */
  restore(saved: Readonly<Record<string, unknown>>): void {
    this.#saved = saved;
  }

  /** Never throws. */
  summary(): SummaryOf<Features> & object {
    const parts = this.#features.map((feature) =>
      this.#attempt(feature, 'summary', () => feature.one.summary),
    );
    return Object.assign({}, ...parts);
  }

  /** Calls a hook of those that have it. Never rejects. */
  #each<End>(
    hookOf: (feature: Named) => (() => Promise<End>) | undefined,
    name: string,
    lease?: FeatureContext,
  ): Promise<{ feature: Named; end: End | undefined }[]> {
    const having = this.#features.flatMap((feature) => {
      const hook = hookOf(feature);
      return hook ? { feature, hook } : [];
    });
    return Promise.all(
      having.map(async ({ feature, hook }) => ({
        feature,
        end: await this.#run(feature, name, async () => hook(), lease),
      })),
    );
  }

  /** Calls a hook of the end. Never rejects. @param lease Of a hook that uses the browser: it is not reused after a failure. */
  async #run<T>(
    feature: Named,
    hook: string,
    work: () => Promise<T>,
    lease: FeatureContext | undefined,
  ): Promise<T | undefined> {
    try {
      return await limited(feature, work);
    } catch (cause) {
      this.#report(feature, hook, cause, lease);
      return undefined;
    }
  }

  /** Calls a hook that takes no time. Never throws. */
  #attempt<T>(feature: Named, hook: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (cause) {
      this.#report(feature, hook, cause);
      return undefined;
    }
  }

  #report({ name }: Named, hook: string, cause: unknown, lease?: FeatureContext): void {
    const message = `The feature ${name} failed (${hook}): ${asError(cause).message}`;
    if (lease) lease.preventReuse(message, cause);
    else this.#call.addError(new CleanupError(message, { cause }));
  }
}

function limited<T>(
  { one: { needs: { time: timeout = TIMEOUT } = {} } }: Named,
  work: () => Promise<T>,
): Promise<T> {
  return raceTimeout(timeout, work, () => new Error(`it took longer than ${duration(timeout)}`));
}
