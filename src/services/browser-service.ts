import type { PoolRecord } from './kernel-api.js';
import { optionalTextAt } from './service-json.js';

/** A request to a service, as data: another process can send it. */
export interface ServiceRequest {
  /** HTTP method. */
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path below the address of the service, with its query. The tag `path` encodes values. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: object | undefined;
  /** Of a release: statuses, besides 404 and 410, which mean that the session no longer exists. */
  readonly gone?: readonly number[];
  /** Of a release: statuses that do not show whether the session still exists. */
  readonly unclear?: readonly number[];
}

/** Where the token is sent. */
export type ServiceAuth =
  { readonly header: string; readonly scheme?: 'Bearer' | 'Basic' } | { readonly query: string } | 'none';

/** What a session should have, in words that mean the same at every service. */
export interface SessionOptions {
  /** Where the browser runs, as the service calls it, such as `eu-central-1`. */
  region?: string | undefined;
  /** Size of the window in CSS pixels. */
  viewport?: { width: number; height: number } | undefined;
  /**
   * `true`: a proxy of the service; `{ country: 'de' }`; `{ id }` of a stored one; the URL of yours; `false`: none.
   */
  proxy?: boolean | string | { country: string } | { id: string } | undefined;
  /** Milliseconds after which the service ends the session. Rounded up to the unit of the service. */
  timeout?: number | undefined;
  /** Hides from web pages that a program drives the browser. */
  stealth?: boolean | undefined;
  /**
   * Id or name of the profile (cookies and logins) with which the browser begins. `save: true`: what the
   * lease changes in it stays.
   */
  profile?:
    string | { id?: string | undefined; name?: string | undefined; save?: boolean | undefined } | undefined;
}

/** Returns the fields of a request for a value, or says after "because" why the service has none. */
export type FieldsOf<Value> = (value: Value) => object | string;

/** How a service says these options in its request, by their names. What is missing is refused, or with a text, for this reason. */
export type SessionFields =
  { readonly [Name in keyof SessionOptions]?: FieldsOf<NonNullable<SessionOptions[Name]>> | string } | string;

/** One acquire request, in the words of this library. */
export interface LeaseRequest {
  /** Id or name of the pool. A service without pools ignores it. */
  readonly pool: string;
  /** New for each request. The service should store it, so that `owner` and `find` can recognize the lease. */
  readonly id: string;
  /**
   * Host, process and time of the request, and `endsAfter`, for the command `leases`: store it beside the id if the service stores as
   * many tags.
   */
  readonly mark?: string | undefined;
  /** Milliseconds after which this library ends the lease, if it is not extended. Undefined: none. */
  readonly endsAfter?: number | undefined;
  /** Name of the lease. */
  readonly name?: string | undefined;
  /** Tags of the lease. */
  readonly tags?: Readonly<Record<string, string>> | undefined;
  /** URL that the browser opens. */
  readonly startUrl?: string | undefined;
  /** What the session should have. Its fields are added to the body of the request: only a service without one needs it. */
  readonly sessionOptions?: SessionOptions | undefined;
  /** Seconds to wait for a browser; undefined if the service decides. It exists only for a service with `waits: 'asked'`. */
  readonly wait?: number | undefined;
  /** The session must survive a lost connection: `reconnect`, `detach`, or another program uses it. */
  readonly keepAlive: boolean;
  /** `replays: 'record'`, for a service that records from the beginning or not at all. */
  readonly record: boolean;
  /** WebRTC of the browser must send no UDP packets. Only browsers of this machine are started for a lease. */
  readonly noUdp?: boolean | undefined;
}

/** Where the service is, for URLs that a response does not contain. */
export interface ServiceAddress {
  /** Address of the service. */
  readonly baseUrl: URL;
  /** The token of the request; undefined for a service without tokens. */
  readonly token: string | undefined;
}

/** A leased browser, as a service describes it. */
export interface Grant<Session extends object = object> {
  /** Identifies the session in further requests. */
  readonly id: string;
  /** The object that the callback receives: the service's own. */
  readonly session: Session;
  /** WebSocket URL for the Chrome DevTools Protocol; or the http URL of a debugging port. */
  readonly cdpUrl?: string | undefined;
  /** WebSocket URL for WebDriver BiDi. */
  readonly bidiUrl?: string | undefined;
  /** URL of a page to watch and control the browser. */
  readonly liveViewUrl?: string | undefined;
  /** Name of the lease, if the service shows it. */
  readonly name?: string | undefined;
  /** The session has a profile: its logins would be lost if the browser's own context were cleared for the next lease. */
  readonly hasProfile?: boolean;
  /** Milliseconds without a connection after which the service ends the session. */
  readonly idleTimeout?: number | undefined;
  /** The session ends with its first connection: it can't be reconnected, detached or reused. */
  readonly endsWithConnection?: boolean;
  /** Secret fields of `session`, besides those in `secretParameters`. */
  readonly secretFields?: readonly string[];
  /** Headers of each WebSocket to this browser, besides those of the service. Their values are secrets. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The URLs that connect again after a lost connection, or after `detach`, where they differ. */
  readonly reconnect?: { readonly cdpUrl?: string | undefined; readonly bidiUrl?: string | undefined };
}

/** A test of a session's record that another process can run. */
export interface OwnerTest extends ServiceRequest {
  /** The lease is ours if the value at this place of the JSON is `is`. */
  readonly at: readonly string[];
  /** The value of our lease. */
  readonly is: string;
}

/** A search for the sessions of one acquire request that another process can run. */
export interface SessionSearch extends ServiceRequest {
  /** Place of the list in the JSON. An object instead of a list counts as one entry. */
  readonly list: readonly string[];
  /**
   * Place of the lease's id in an entry. Entries with another value there are not ours: a service may ignore the filter of
   * the request. Without it, every entry counts.
   */
  readonly at?: readonly string[];
  /** The entries are whole sessions, which `grant` reads: another process can find a browser and its URLs again (`keepFile`). */
  readonly isWhole?: boolean;
}

/** An active session in the list of a service. */
export interface ListedSession {
  /** Identifies the session. */
  readonly id: string;
  /** `LeaseRequest.id` of its lease. Without it, the session is not one of this library. */
  readonly lease?: string | undefined;
  /** `LeaseRequest.mark` of its lease. */
  readonly mark?: string | undefined;
  /** Name of the lease. */
  readonly name?: string | undefined;
  /** Name or id of its pool, if the release needs it. */
  readonly pool?: string | undefined;
  /** Id of its pool, beside the name. */
  readonly poolId?: string | undefined;
  /** When the session was created, ISO 8601. */
  readonly createdAt?: string | undefined;
}

/** Who can open the link of a recording: everybody, people with a login at the service, or programs with its key. */
export type ReplayAccess = 'public' | 'login' | 'key';

/** Where the video of a recording is, of a service that does not send it at once. */
export interface VideoSearch {
  /** Sent once, before the search: lets the service write the video. */
  readonly order?: ServiceRequest;
  /** The request whose response says where the video is. */
  readonly find: ServiceRequest;
  /**
   * Reads that response. A URL is requested without the token. A request is sent to the service, and if it is redirected, the
   * other address is requested without the token. `undefined`: the video is not written yet. Throws if there will be none.
   */
  readonly read: (json: unknown) => string | ServiceRequest | undefined;
}

/** A recording of a session. No field is required. */
export interface Replay {
  /** Identifier. */
  readonly replay_id?: string;
  /** Start of the recording, ISO 8601, by the service's clock. */
  readonly started_at?: string;
  /** End of the recording, ISO 8601; missing while it is running or being written. */
  readonly finished_at?: string;
  /** URL of the page that shows the recording. It may contain a secret, and may be shown to people. */
  readonly replay_view_url?: string;
  /** What opening that URL needs: nothing else, a login at the service, or the service's key. */
  readonly access?: ReplayAccess;
  /** Name of what was recorded: that of the lease. A recording by this process without one is named by its pool and start. */
  readonly name?: string;
  /** `'client'`: a process of this library has recorded the lease. Missing: the service has. */
  readonly recorded_by?: 'client';
  /** Fields that this version of the library does not know. */
  readonly [field: string]: unknown;
}

/** How to record. */
export interface ReplayRequest {
  /** Frames per second. Default: the service's. */
  frameRate?: number | undefined;
  /** Seconds after which the recording ends. Default: the service's. */
  maxSeconds?: number | undefined;
}

/** Requests about a session to a service that records. */
export interface SessionRequests {
  replays(sessionId: string, how?: Abortable): Promise<Replay[]>;
  startReplay(sessionId: string, request?: ReplayRequest, how?: Abortable): Promise<Replay>;
  stopReplay(sessionId: string, replayId: string, how?: Abortable): Promise<void>;
  deleteReplay(sessionId: string, replayId: string, how?: Abortable): Promise<void>;
}

interface Abortable {
  signal?: AbortSignal | undefined;
}

/** Why a service can't store the name or the tags of a lease. */
export interface LeaseFault {
  /** The option at fault: `tags`, `name`, or an option of the service. */
  readonly option: string;
  /** A sentence with the limit. */
  readonly reason: string;
}

/**
 * How one service leases browsers. An object of pure functions: it sends nothing, waits for nothing and keeps no state. All
 * requests, retries, timeouts, releases and secrets are the library's.
 */
export interface BrowserService<Session extends object = object> {
  /** Name of the service, for messages. */
  readonly name: string;
  /** Default of the option `baseUrl`. */
  readonly baseUrl?: string;
  /** Default: `{ header: 'authorization', scheme: 'Bearer' }`. */
  readonly auth?: ServiceAuth;
  /** Headers of each request, and of each WebSocket to the address of the service. Their values are secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Environment variables with the key of the service at an address. The first one that is set is read if neither the option
   * `token` nor `BROWSER_POOL_ACCESS_TOKEN` is. It is sent to that address only, also by copies of this object.
   */
  readonly usualToken?: { readonly variables: readonly string[]; readonly at: string };
  /** The service also works without a token. */
  readonly isTokenOptional?: boolean;
  /** Parameters of the service's URLs, and fields of its JSON, whose values are secrets, also in a response that is no session. */
  readonly secretParameters?: readonly string[];
  /** The field of an acquire response that has the session id, also for a response that breaks off. */
  readonly idField: string;
  /**
   * Who waits for a browser. `'asked'`: the service, as long as `LeaseRequest.wait` says; `'always'`: the service, as long
   * as it likes; `'never'`: it refuses at once, and this library sends the request again.
   */
  readonly waits: 'asked' | 'always' | 'never';
  /**
   * Milliseconds, for a service that closes a connection without commands: after this time without one, the library sends a
   * command that changes nothing, on each connection of the lease. Take half of the service's limit.
   */
  readonly keepAlive?: number;
  /** A sentence for the error when the service closed a connection: which limit of time it has, and how to increase it. */
  readonly lossAdvice?: string;
  /** The protocols of its browsers, to refuse others before a lease. Default: those that have a URL in a grant. */
  readonly protocols?: readonly ('cdp' | 'bidi')[] | undefined;
  /** Default of the option `limit`: most leases of one process at once. */
  readonly limit?: number;

  /**
   * How its acquire request says the options that mean the same at every service: their fields are added to its body. A text: why it
   * has none of them. Default: it has nothing like them, and they are refused by name.
   */
  readonly sessionOptions?: SessionFields;
  /** Why the service can't store the name and the tags of a lease. It is called before anything is sent. Default: it can. */
  readonly refuses?: (lease: Pick<LeaseRequest, 'name' | 'tags'>) => LeaseFault | undefined;
  /** The request that leases a browser. `undefined`: none is needed, the connection itself is the lease. */
  readonly acquire: (lease: LeaseRequest) => ServiceRequest | undefined;
  /** Reads a successful response. Throws if it is not a session: the message ends a sentence that begins with "The response". */
  readonly grant: (json: unknown, lease: LeaseRequest, at: ServiceAddress) => Grant<Session>;
  /** The request that releases a browser. `undefined`: the end of the connection releases it. */
  readonly release: (
    id: string,
    to: { readonly pool: string; readonly reuse: boolean },
  ) => ServiceRequest | undefined;

  /** The meaning of an error response to an acquire request, where it differs from the usual one of its status. */
  readonly meaning?: (status: number, json: unknown) => 'unavailable' | 'refused' | 'unknown' | undefined;
  /**
   * Only of a service that leases the same session again. A release for reuse that may have been processed is repeated only
   * while this test succeeds; `null`: this lease can't be recognized. Without this function, each session has one lease:
   * releases are repeated, all its recordings are ours, and no browser is reused.
   */
  readonly owner?: (id: string, lease: LeaseRequest) => OwnerTest | null;
  /** Finds the session of an acquire request whose response was lost, or whose process was killed. */
  readonly find?: (lease: LeaseRequest) => SessionSearch | undefined;
  /** Recordings of a session. */
  readonly replays?: {
    /** What opening their links needs. */
    readonly access?: ReplayAccess;
    /** The request that lists them. */
    readonly list: (id: string) => ServiceRequest;
    /** Reads the list. Throws if the response is not one. */
    readonly read: (json: unknown, id: string) => readonly Replay[];
    /** The request that starts a recording; its response is a `Replay`. */
    readonly start?: (id: string, request: ReplayRequest) => ServiceRequest;
    /** The request that stops a recording. */
    readonly stop?: (id: string, replayId: string) => ServiceRequest;
    /** The request that deletes a recording that has ended. */
    readonly delete?: (id: string, replayId: string) => ServiceRequest;
    /** The request that downloads a video, or how to find it. */
    readonly video?: (id: string, replayId: string) => ServiceRequest | VideoSearch;
    /** Of a service whose list may lack the end of a recording: fields of the session's record that complete it. */
    readonly session?: {
      /** The request for the record. */
      readonly request: (id: string) => ServiceRequest;
      /** Reads the fields. */
      readonly read: (json: unknown) => Pick<Replay, 'started_at' | 'finished_at'>;
    };
  };
  /** The list of active sessions, also those of other processes: the command `leases`. */
  readonly sessions?: {
    /**
     * The request for a page of the list, from 0; undefined after the last one.
     *
     * @param listed Number of sessions on the pages before: a service may send shorter pages than requested.
     */
    readonly list: (page: number, listed: number) => ServiceRequest | undefined;
    /** Reads a page. Throws if the response is not one. */
    readonly read: (json: unknown) => readonly ListedSession[];
  };
  /**
   * A request that only reads, and fails with a wrong token: the command `doctor`. Default: the list of the recordings of a
   * session that does not exist.
   */
  readonly probe?: ServiceRequest;
  /** Operations on the pool itself. */
  readonly pool?: {
    /** The request whose response is the pool's record. */
    readonly describe?: (pool: string) => ServiceRequest;
    /** Reads the record. */
    readonly read?: (json: unknown) => PoolRecord;
    /** The request that destroys the idle browsers. */
    readonly flush?: (pool: string) => ServiceRequest;
  };
}

/** The tag with `LeaseRequest.id`, by which this library recognizes its own lease. */
export const LEASE_TAG = 'pooled-browser-lease';
/** The tag with `LeaseRequest.mark`. */
export const MARK_TAG = 'pooled-browser-owner';

/**
 * The tags, the name, the id and the mark of a lease, for a service that stores all of them as tags. Where it can't store
 * all, our own tags are left out first: the mark, then the id. Without its id, the lease can't be searched for.
 *
 * @param canStore Whether the service stores these tags. Default: all.
 */
export function leaseTags(
  { id, mark, name, tags }: LeaseRequest,
  canStore: (tags: Readonly<Record<string, string>>) => boolean = () => true,
): Readonly<Record<string, string>> {
  const own = { ...tags, ...(name !== undefined && { name }) };
  const known = { ...own, [LEASE_TAG]: id };
  const all = { ...known, ...(mark !== undefined && { [MARK_TAG]: mark }) };
  return [all, known, own].find(canStore) ?? { ...tags };
}

/** The option at fault if a service can't store all tags of a lease. @param own The option of the service with further tags. */
export function optionWithTags({ name, tags }: Pick<LeaseRequest, 'name' | 'tags'>, own: string): string {
  if (tags) return 'tags';
  return name === undefined ? own : 'name';
}

/** Reads what `leaseTags` wrote from the tags of a session in a list. */
export function leaseInTags(tags: unknown): Pick<ListedSession, 'lease' | 'mark' | 'name'> {
  return {
    lease: optionalTextAt(tags, LEASE_TAG),
    mark: optionalTextAt(tags, MARK_TAG),
    name: optionalTextAt(tags, 'name'),
  };
}

/** Returns a WebSocket URL of the service itself, whatever path the service names: one of two slashes would begin with a host. */
export function socketUrl({ baseUrl }: ServiceAddress, below: string): string {
  const prefix = baseUrl.origin + baseUrl.pathname.replace(/\/+$/, '');
  const url = new URL(prefix + (below.startsWith('/') ? below : `/${below}`));
  return url.href.replace(/^http/, 'ws');
}

/** Whether a session can belong to one lease after another: then its browser can be reused. */
export function leasesAgain({ owner }: BrowserService): boolean {
  return owner !== undefined;
}
