import type { OpenConnection } from '../drivers/open-browser.js';
import type { ConnectAddition } from '../drivers/extension.js';
import type { LeaseRequest } from '../services/browser-service.js';
import type { CallContext, LeaseContext } from './context.js';
import type { Together } from '../shared/together.js';
import type { AnyStep } from './events.js';

/**
 * What a feature adds to the life of one lease. All hooks are optional, and a feature keeps its state itself. Features do not
 * know each other. A hook that takes time is called on all of them at the same time, and the next step begins when all have
 * ended, also if one has failed; after an abort, which they see in their signal, the end begins at once. The others are called in
 * the order of the set, and `surround` nests in it. No two features may add the same field to the request or to the handles: the
 * call fails. In the results, the later one wins.
 *
 * An error of `prepare`, `restore`, `request`, `connect`, `handles`, `opened`, `begin` or `surround` fails the call, and so does a
 * timeout of one that takes time. Any other one is in `cleanupErrors`, and changes neither the result of the call nor the next step.
 */
export interface LeaseFeature {
  /** For the errors of its hooks, and for what it saves. */
  readonly name: string;
  /**
   * Longest time of one hook, in ms. It must exceed the timeouts that the feature has itself.
   * @default 10_000
   */
  readonly timeout?: number;
  /** The option that it was given, if it needs CDP beside the protocol of the library. */
  readonly needsCdp?: string | undefined;
  /** Why the browser can't be left to another process. */
  readonly noDetach?: string | undefined;
  /** Facts about its option for the other features, which find them in `shared` of the call. */
  readonly shares?: object;

  /** Before anything is sent. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Adds to each acquire request. */
  request?(call: CallContext): Partial<LeaseRequest>;
  /** A sentence for the error of a call for which no browser became available. */
  advise?(call: CallContext): string | undefined;
  /** The pool has leased a browser, also a further one of the same call. Starts what runs beside the connect. */
  leased?(lease: LeaseContext): void;
  /** Adds to each connect, also to those of the option `reconnect`. */
  connect?(lease: LeaseContext): ConnectAddition;
  /**
   * The lease is open, and no callback has begun. Not called for a lease that another process began.
   *
   * @param part Missing if another program connects.
   */
  opened?(lease: LeaseContext, part: OpenedPart | undefined): Promise<void>;
  /** Handles that it adds to the argument of the callback, beside those of the library. */
  handles?(lease: LeaseContext): object;
  /**
   * A run, a task or a test begins. Resolves with the function that ends it, if there is something to end.
   *
   * @param own Options of this part, which replace those of the lease.
   */
  begin?(work: Work, own?: object): Promise<EndWork | undefined>;
  /** Surrounds the callback. Must call it once, and return its result. */
  surround?<Value>(callback: () => Promise<Value>): Promise<Value>;

  /** End, 1: the callback is over. Stops what runs beside it. */
  stop?(end: LeaseEnding): Promise<void>;
  /** End, 2: takes what is wanted out of the browser, which is still as the callback left it. */
  collect?(end: LeaseEnding): Promise<void>;
  /** End, 3: while the browser is cleaned. Must not use the browser; the session is still ours. */
  cleaning?(end: LeaseEnding): Promise<void>;
  /** End, 4: after the release. The browser may already belong to another lease. */
  released?(end: LeaseEnding): Promise<void>;

  /** Its part of the result, which may be read at any time: data, not work. */
  readonly summary?: object;
  /** What another process needs of it to continue the lease, as JSON. After `cleaning`, at the end of a detached lease. */
  save?(): unknown;
  /** Receives what `save` returned in the process that detached the lease; undefined if it threw. It comes from outside. */
  restore?(saved: unknown): void;
}

/** The features of a lease. The heart only calls them; the caller of the lease uses them by their names. */
export type FeatureSet = Readonly<Record<string, LeaseFeature>>;

/** A part of a lease with results of its own. */
export interface WorkPart {
  /** The run of the whole lease, or one of several tasks or tests. */
  readonly kind: 'run' | 'task';
  /** The handles of its page and context. */
  readonly handles: object;
  /** Which pages belong to it: all, those of its context, or its page with its pop-ups. */
  readonly scope: 'browser' | 'context' | 'page';
  /** Other tasks run in the browser at the same time. */
  readonly isAmongOthers?: boolean;
}

/** A part of a lease, for the features. */
export interface Work<Step extends AnyStep = AnyStep> extends WorkPart {
  readonly lease: LeaseContext<Step>;
  readonly connection: OpenConnection<unknown>;
}

/** The connection of an opened lease, and the handles of its callback. */
export type OpenedPart = Pick<Work, 'connection' | 'handles'>;

export interface WorkEnd {
  /** Part of the names of its files. */
  readonly name: string;
  readonly failed: boolean;
  /** False if the browser was lost, or must not be used any longer. */
  readonly isReachable: boolean;
  /** Do not wait for what is still running. */
  readonly isCut?: boolean;
}

/**
 * Ends a run, a task or a test, or the part of one feature. Resolves with its result.
 *
 * @param end Undefined if the part never began, because a feature could not begin it.
 */
export type EndWork<Result = object> = (end: WorkEnd | undefined) => Promise<Result>;

export interface LeaseEnding<Step extends AnyStep = AnyStep> {
  readonly lease: LeaseContext<Step>;
  /** Missing if another program used the browser. */
  readonly connection: OpenConnection<unknown> | undefined;
  readonly status: 'ok' | 'failed';
  /** The browser stays leased. */
  readonly leaves: boolean;
}

type EndedBy<End> = End extends EndWork ? Awaited<ReturnType<End>> : never;

/** What the features add to the result of a lease. */
export type SummaryOf<Features> = Together<{
  [Name in keyof Features]: Features[Name] extends { readonly summary: infer Part } ? Part : unknown;
}>;
/** What the features add to the argument of the callback. */
export type HandlesOf<Features> = Together<{
  [Name in keyof Features]: Features[Name] extends { handles(lease: LeaseContext): infer Part }
    ? Part
    : unknown;
}>;
/** What the features add to the result of a run, a task or a test: nothing from those that had nothing to end. */
export type WorkResult<Features> = Partial<
  Together<{
    [Name in keyof Features]: Features[Name] extends { begin(...work: never[]): Promise<infer End> }
      ? EndedBy<End>
      : unknown;
  }>
>;
/** The options of a run, a task or a test that replace those of the lease. */
export type OwnOf<Features> = Together<{
  [Name in keyof Features]: Features[Name] extends { begin(work: Work, own?: infer Own): unknown }
    ? NonNullable<Own>
    : unknown;
}>;
