import type { CheckingConnector } from '../drivers/connector.js';
import { environment } from '../shared/environment.js';
import { InvalidOptionError } from '../shared/errors.js';
import type { Together } from '../shared/together.js';
import { readOption, type Checked, type Checks } from '../shared/options.js';
import type { AddedTypes, Adds, Caller, Declaration } from './declaration.js';
import * as features from './features.js';

type Features = typeof features;
/** What all features add to one of the public types. */
type Added<Part extends keyof AddedTypes> = object &
  Together<{
    [Name in keyof Features]: Features[Name]['declared'] extends Adds<infer Types>
      ? Types extends Record<Part, infer Type>
        ? Type
        : unknown
      : never;
  }>;
/** The checks of the options that a caller takes. */
type ChecksFor<One extends Caller> = object &
  Together<{
    [Name in keyof Features]: Features[Name]['declared'] extends { checks: Record<One, infer Own> }
      ? Own
      : unknown;
  }>;

/** The options of all callers that acquire. */
export interface FeatureAcquireOptions extends Added<'acquire'> {}
/** The options of all functions that connect. */
export interface FeatureConnectOptions extends Added<'connect'> {}
/** The options of all functions that acquire and connect. */
export interface FeatureLeaseOptions extends Added<'lease'> {}
/** The options of all functions. */
export interface FeatureReleaseOptions extends Added<'release'> {}
/** The options of the proxy, beside those of `acquire` and `release`. */
export interface FeatureProxyOptions extends Added<'proxy'> {}
/** The options of `withPooledBrowser`. */
export interface FeatureRunOptions extends Added<'run'> {}
/** The parts of a result. */
export interface FeatureResults extends Added<'result'> {}
/** What is added to the argument of a callback or task, and to a leased browser. */
export interface FeatureFacts extends Added<'facts'> {}
/** The stages of `timings`. */
export interface FeatureTimes extends Added<'times'> {}
/** The events. */
export interface FeatureSteps extends Added<'steps'> {}

const all: readonly Declaration[] = Object.values(features).map(({ declared }) => declared);

function checksFor<One extends Caller>(caller: One): ChecksFor<One> {
  return Object.assign({}, ...all.map(({ checks }) => checks[caller])) as ChecksFor<One>;
}

/** Their checks. */
export const featureChecks = {
  acquire: checksFor('acquire'),
  connect: checksFor('connect'),
  lease: checksFor('lease'),
  release: checksFor('release'),
  proxy: checksFor('proxy'),
  run: checksFor('run'),
};

/** The checked options of all features. */
export type FeatureSettings = Checked<
  ChecksFor<'acquire'> & ChecksFor<'connect'> & ChecksFor<'lease'> & ChecksFor<'release'> & ChecksFor<'run'>
>;

/** The options that the features refuse together. */
type Verified = Together<{
  [Name in keyof Features]: Features[Name]['declared'] extends {
    verify: (settings: infer Settings, ...rest: never[]) => unknown;
  }
    ? Settings
    : unknown;
}>;

/** Refuses options that exclude each other, and what the library can't do. Returns the options that differ. */
export function verifyFeatures(settings: Verified, connector: CheckingConnector | undefined): object {
  return Object.assign({}, ...all.map(({ verify }) => verify?.(settings as never, connector))) as object;
}

/** Returns the options of the environment. @param checks The options that the caller takes. */
export function optionsOfEnvironment<C extends Checks>(checks: C): Partial<Checked<C>> {
  const options: Record<string, unknown> = {};
  for (const { variable } of all) {
    const [name, value] = (variable && environment.firstOf([variable.name])) ?? [];
    if (!variable || name === undefined) continue;
    const check = checks[variable.option];
    if (check) options[variable.option] = readOption(check, name, value);
    else if (variable.refusal !== undefined) throw new InvalidOptionError(name, variable.refusal);
  }
  return options as Partial<Checked<C>>;
}
