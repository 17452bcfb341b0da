import { expectTypeOf } from 'expect-type';
import { it } from 'vitest';
import type { RunEvent } from '../../src/calls/events.js';
import type { HeldLeaseOptions, RunOptions } from '../../src/calls/options.js';
import type { RunSummary, Timings } from '../../src/calls/run.js';
import type { LeaseFeatures } from '../../src/features/create-features.js';
import type { FeatureRunOptions, FeatureSettings, FeatureSteps } from '../../src/features/options.js';
import type { Outcome } from '../../src/jobs/outcome.js';
import type { EventFacts } from '../../src/lease/events.js';
import type {
  FeatureContext,
  LeaseEnding,
  LeaseFeature,
  SummaryOf,
  Work,
  WorkResult,
} from '../../src/lease/feature.js';

/** The options of a feature that no function takes. */
type WithoutOption<Settings> = Exclude<keyof Settings, keyof RunOptions>;
/** The parts of the results of features that are in no public result. */
type WithoutResult<Features> = Exclude<
  keyof SummaryOf<Features> | keyof WorkResult<Features>,
  keyof RunSummary
>;
/** What features say of one task, and an outcome of a job does not have. */
type WithoutOutcome<Features> = Exclude<keyof WorkResult<Features>, keyof Outcome<unknown, unknown>>;
/** The facts of events that would replace a fact of all events. */
type Replacing<Steps> = Extract<{ [Type in keyof Steps]: keyof Steps[Type] }[keyof Steps], keyof EventFacts>;
/** The stages of features that are missing in `timings`. */
type WithoutTime<Features> = {
  [Name in keyof Features]: Features[Name] extends { readonly stage: infer Stage }
    ? Exclude<Stage, keyof Timings>
    : never;
}[keyof Features];
/** The events of features that `onEvent` does not know, by their hooks. */
type WithoutEvent<Features> = {
  [Name in keyof Features]: {
    [Hook in keyof Features[Name]]-?: StepOfHook<Features[Name][Hook]> extends infer Step
      ? Step extends { type: infer Type }
        ? string extends Type
          ? never
          : Step extends OneEvent
            ? never
            : Type
        : never
      : never;
  }[keyof Features[Name]];
}[keyof Features];

type OneEvent = RunEvent<object> extends infer Event ? (Event extends unknown ? Bare<Event> : never) : never;
type Bare<Event> = Omit<Event, 'pool' | 'run' | 'elapsed'>;
/** What a hook may emit. */
type StepOfHook<Hook> = Hook extends (first: infer First, ...rest: never[]) => unknown
  ? First extends { emit: (step: infer Step) => void }
    ? Step
    : First extends { lease: { emit: (step: infer Step) => void } }
      ? Step
      : never
  : never;

/** Has all that a new feature can have, but in no composed type. */
declare class Forgotten implements LeaseFeature {
  readonly stage: 'forgottenStage';
  readonly summary: { forgottenResult: string };
  begin(work: Work): Promise<() => Promise<{ forgottenPart: string }>>;
  leased(lease: FeatureContext<{ type: 'forgotten-event'; fact: number }>): void;
  stop(end: LeaseEnding<{ type: 'forgotten-end' }>): Promise<void>;
}

/** Checked by the compiler (`npm run types`), never called. */
function types() {
  expectTypeOf<WithoutOption<FeatureSettings>>().toBeNever();
  expectTypeOf<WithoutResult<LeaseFeatures>>().toBeNever();
  expectTypeOf<WithoutTime<LeaseFeatures>>().toBeNever();
  expectTypeOf<WithoutEvent<LeaseFeatures>>().toBeNever();
  expectTypeOf<WithoutOutcome<LeaseFeatures>>().toBeNever();
  expectTypeOf<Replacing<FeatureSteps>>().toBeNever();
  // A lease without a callback has all options but those of one run.
  expectTypeOf<Exclude<keyof FeatureSettings, keyof HeldLeaseOptions>>().toEqualTypeOf<
    keyof FeatureRunOptions
  >();

  interface Forgetting {
    forgotten: Forgotten;
  }
  expectTypeOf<WithoutOption<{ forgottenOption: unknown }>>().toEqualTypeOf<'forgottenOption'>();
  expectTypeOf<WithoutResult<Forgetting>>().toEqualTypeOf<'forgottenResult' | 'forgottenPart'>();
  expectTypeOf<WithoutTime<Forgetting>>().toEqualTypeOf<'forgottenStage'>();
  expectTypeOf<WithoutOutcome<Forgetting>>().toEqualTypeOf<'forgottenPart'>();
  expectTypeOf<Replacing<{ 'forgotten-event': { run: string } }>>().toEqualTypeOf<'run'>();
  expectTypeOf<WithoutEvent<Forgetting>>().toEqualTypeOf<'forgotten-event' | 'forgotten-end'>();
}

it('composes the options, results, stages and events of all features', () => {
  expectTypeOf(types).toBeFunction();
});
