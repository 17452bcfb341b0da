import type { AnyStep } from '../shared/telemetry.js';
import type { ConnectExtension, Opening } from '../drivers/extension.js';
import type { OpenUrlOptions, Observation, ObserveRequest } from '../drivers/observation.js';
import type { LocalOptions } from '../pool/pool-options.js';
import type { BrowserService, Grant, LeaseRequest, SessionRequests } from '../services/browser-service.js';
import type { Together } from '../shared/together.js';
import type { SocketEnd } from '../wire/forms.js';

/**
 * What a feature adds to the life of one lease. All members are optional, and a feature keeps its state itself. A feature whose
 * option is off does not exist: `create` of its folder sees all options. Features do not depend on each other. A hook that takes time is
 * called on all of them at the same time, and the next step begins when all have ended, also if one has failed; after an abort, which
 * they see in their signal, the end begins at once. The others are called in the order of the set. No two features may add the same
 * field to the request: the call fails. In the results, the later one wins.
 *
 * An error of `prepare`, `request`, `connect` or `begin` fails the call, and so does a timeout of one that takes time. Any other one is
 * in `cleanupErrors`, and changes neither the result of the call nor the next step.
 */
export interface LeaseFeature {
  /** What its option asks of the lease. */
  readonly needs?: FeatureNeeds;

  /** Before anything is sent. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Adds to each acquire request. */
  request?(): Partial<LeaseRequest>;
  /**
   * The pool has leased a browser, also a further one of the same call. Starts what runs beside the connect.
   *
   * @returns A signal whose abort ends the lease, with its reason, while the browser still responds.
   * @param saved What `finish` saved in the process that detached the lease, if another one did. It comes from outside.
   */
  leased?(lease: FeatureContext, saved: unknown): AbortSignal | void;
  /** The library is about to connect, for the first time or again. Resolves with what runs beside it. */
  connect?(lease: FeatureContext, opening: Opening): Promise<ConnectExtension | undefined>;
  /**
   * The lease, its run, or one of its tasks or tests begins. Resolves with the function that ends it, if there is something to end. A
   * lease itself ends with `stop`; one of tasks, and one that another process began, does not begin.
   */
  begin?(work: Work): Promise<EndWork | undefined>;

  /**
   * A person is about to use the browser: nothing is observed there until the returned function is called, with a sentence that says how the
   * hand-off has ended.
   */
  pause?(): Promise<((end: string) => Promise<void>) | undefined>;

  /**
   * The callback is over, and the browser is still as the callback left it. Stops what runs beside it, and takes what is wanted out of
   * the browser.
   */
  stop?(end: LeaseEnding): Promise<void>;
  /**
   * While the browser is cleaned. Must not use the browser; the session is still ours. Only the recordings of a service need requests
   * at this time.
   */
  finish?(end: LeaseEnding): Promise<Finished | undefined>;

  /** The part of the result that the feature adds. It may be read at any time: data, not work. */
  readonly summary?: object;
}

/** What the option of a feature asks of a lease. */
export interface FeatureNeeds {
  /**
   * Longest time of one hook, in ms. It must exceed the timeouts that the feature has itself.
   * @default 10_000
   */
  readonly time?: number;
  /** The option, if it needs CDP beside the protocol of the library. */
  readonly cdp?: string;
  /** Why the browser can't be left to another process. */
  readonly thisProcess?: string;
}

/** The end of a feature. */
export interface Finished {
  /** What another process needs of it to continue a detached lease, as JSON. */
  readonly saved?: unknown;
  /** Called after the release. The browser may already belong to another lease. */
  released?(): Promise<void>;
}

/** A leased browser, for its features. `Step` are the events that they may emit. */
export interface FeatureContext<Step extends AnyStep = AnyStep> {
  readonly sessionId: string;
  readonly grant: Grant;
  readonly service: LeasedService;
  /** Aborts when the work must end: by the caller's signal, a timeout, or the loss of the browser. */
  readonly signal: AbortSignal;
  /** Aborts if the browser is abandoned before its callback: then no hook of the end is called for it. */
  readonly abandoned: AbortSignal;
  readonly emit: (step: Step) => void;
  /** Adds an error to `cleanupErrors`, which never fail the call. */
  readonly addError: (error: Error) => void;
  /** The browser must not be leased again: something of this lease is left there. Reports why. */
  readonly preventReuse: (why: string, cause?: unknown) => void;
  /** Adds the time of the work to a stage, also if it fails, and traces it. */
  readonly time: <T>(stage: string, work: () => Promise<T>, task?: { readonly index: number }) => Promise<T>;
  /** Something has happened in the browser's own context. */
  readonly onOwnContextUsed: () => void;
}

/** Where a browser was leased, and what a feature can do there without the connection of the library. */
export interface LeasedService {
  /** Id or name of the pool. */
  readonly pool: string;
  /** The name and the tags of the lease there, also of one that another process began. */
  readonly lease: Pick<LeaseRequest, 'name' | 'tags'>;
  /** Which requests it has. */
  readonly facts: BrowserService;
  /** Its settings, if it is `baseUrl: 'local'`. */
  readonly local: LocalOptions | undefined;
  /** The time at which the service leased the browser, by its clock, in ms. */
  readonly servedAt: number | undefined;
  readonly requests: SessionRequests;
  /** URL of a page to watch and control the browser, which people may open. */
  readonly liveViewUrl: string | undefined;
  /** Opens a URL in the first page of the browser, with a connection of its own. */
  readonly openInFirstPage: (url: string) => Promise<void>;
}

/** The connection of a library, for the features. */
export interface WorkConnection {
  // Methods: each library has handles of its own.
  observe?(request: ObserveRequest): Observation;
  openUrl?(this: void, handles: object, url: string, how: OpenUrlOptions): Promise<void>;
  pageId?(handles: object): Promise<string>;
  /** Resolves when the socket has ended. */
  readonly ended: Promise<SocketEnd>;
}

/** The features of a lease. The heart only calls them; the caller of the lease uses them by their names. */
export type FeatureSet = Readonly<Record<string, LeaseFeature | undefined>>;

/** A part of a lease with results of its own. */
export interface WorkPart {
  /** The run of the whole lease, or one of several tasks or tests. */
  readonly kind: 'run' | 'task';
  /** The handles of its page and context. */
  readonly handles: object;
  /** Which pages belong to it: all, those of its context, or its page with its pop-ups. */
  readonly scope: 'browser' | 'context' | 'page';
  /** What people call it: the titles of a test, the input of a task. */
  readonly title?: string;
  /** The task of which this is an attempt: another one may follow. Whether the task has failed is known after the end. */
  readonly attemptOf?: object;
  /** Other tasks run in the browser at the same time. */
  readonly isAmongOthers?: boolean;
}

/** The lease or a part of it, for the features. */
export interface Work<Step extends AnyStep = AnyStep> extends Omit<WorkPart, 'kind' | 'handles'> {
  readonly kind: 'lease' | WorkPart['kind'];
  readonly lease: FeatureContext<Step>;
  /** The connection; missing if another program connects. */
  readonly connection: WorkConnection | undefined;
  readonly handles: object | undefined;
}

export interface WorkEnd {
  /** Part of the names of its files. */
  readonly name: string;
  readonly failed: boolean;
  /** Why it failed. */
  readonly error?: unknown;
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
  readonly lease: FeatureContext<Step>;
  /** The connection; missing if another program used the browser. */
  readonly connection: WorkConnection | undefined;
  readonly status: 'ok' | 'failed';
  /** Why it failed. */
  readonly error?: unknown;
  /** It ran the tasks of a job, whose failures are their own. */
  readonly isOfTasks: boolean;
  /** The browser stays leased. */
  readonly leaves: boolean;
  /** The methods of the library's commands without a response, when the callback was over. */
  readonly methodsInFlight: readonly string[];
}

type EndedBy<End> = End extends EndWork ? Awaited<ReturnType<End>> : never;

/** What the features add to the result of a lease. */
export type SummaryOf<Features> = Together<{
  [Name in keyof Features]: NonNullable<Features[Name]> extends { readonly summary: infer Part }
    ? Part
    : unknown;
}>;
/** What the features add to the result of a run, a task or a test: nothing from those that had nothing to end. */
export type WorkResult<Features> = Partial<
  Together<{
    [Name in keyof Features]: NonNullable<Features[Name]> extends {
      begin(...work: never[]): Promise<infer End>;
    }
      ? EndedBy<End>
      : unknown;
  }>
>;
