import type { CheckingConnector } from '../drivers/connector.js';
import type { Checks } from '../shared/options.js';

/** What a feature adds to public types: interfaces with descriptions, which editors show. */
export interface AddedTypes {
  /** Options, by the callers that take them: all that acquire. */
  acquire?: object;
  /** All that connect. */
  connect?: object;
  /** All that acquire and connect. */
  lease?: object;
  /** All. */
  release?: object;
  /** `withPooledBrowser`. */
  run?: object;
  /** `serveProxy`, which takes those of `acquire` and `release`, too. */
  proxy?: object;
  /** Its part of the result. */
  result?: object;
  /** What it adds to the argument of a callback or task, and to a leased browser: the member `facts` of its class. */
  facts?: object;
  /** Its stages of `timings`. */
  times?: object;
  /** Its events, by their `type`. */
  steps?: object;
}

/** The callers that take options. */
export type Caller = Exclude<keyof AddedTypes, 'result' | 'facts' | 'times' | 'steps'>;

/** All that is known of a feature before a lease loads it. */
export interface Declaration {
  /** The checks of its options, by the callers that take them. */
  readonly checks: { readonly [Name in Caller]?: Checks };
  /** Refuses options that exclude each other, and what the library can't do. Returns the options that differ. */
  readonly verify?: (settings: never, connector: CheckingConnector | undefined) => object | void;
  /** Its part of the result of a lease without it. */
  readonly none?: () => object;
  /** The environment variable of an option. `refusal`: why a call fails that does not take the option. */
  readonly variable?: {
    readonly option: string;
    readonly name: string;
    readonly refusal?: string;
  };
}

declare const TYPES: unique symbol;
/** A declared feature, with the types that it adds. */
export interface Adds<Types> {
  readonly [TYPES]?: Types;
}

/** What a declaration needs: checks of all its options, and its part of a result without it. */
type Needed<Types extends AddedTypes> = Declaration & {
  checks: Record<keyof Types & Caller, Checks>;
} & (Types extends {
    result: infer Result;
  }
    ? { none: () => Result }
    : object);

/** Declares a feature: `declareFeature<{ run: ArtifactsOptions }>()({ … })`. The compiler refuses one that lacks what it needs. */
export function declareFeature<Types extends AddedTypes = object>() {
  return <Declared extends Needed<Types>>(declared: Declared) => declared as Declared & Adds<Types>;
}
