import type { Socket } from './socket.js';

/** `'cdp'`: Chrome DevTools Protocol; `'bidi'`: WebDriver BiDi. */
export type Protocol = 'cdp' | 'bidi';

/** `'default'`: the browser's own context, with its profile; `'new'`: a fresh context, closed after the lease. */
export type ContextChoice = 'default' | 'new';

/**
 * How the tasks of `mapPooledBrowsers` in one browser are isolated from each other:
 * - `'context'`: each task has its own context;
 * - `'storage'`: all tasks share a context and a page, and the data that a site can store is cleared between them;
 * - `'none'`: all tasks share a page of the browser's own context, and nothing is cleared.
 */
export type Isolation = 'context' | 'storage' | 'none';

/** The argument of `Connector.connect`. */
export interface ConnectRequest {
  /** An open WebSocket to the browser. */
  readonly socket: Socket;
  /** The protocol of the option `protocol`. */
  readonly protocol: Protocol;
  /** The context of the option `context`. */
  readonly context: ContextChoice;
  /** URL of the page for the callback, if the browser has such a page; otherwise any page. */
  readonly pageUrl: string | undefined;
  /** The automation library's own connect options. */
  readonly connectOptions: object;
  /** Milliseconds until a page must be usable; then `socket` is closed. */
  readonly timeout: number;
  /**
   * Opens a WebSocket URL on loopback that leads to `socket`, for a library that connects by URL. Its path is a secret
   * that is valid for one connection. Use either this URL or `socket`.
   */
  endpoint(this: void): Promise<string>;
}

/**
 * Binds one automation library to leased browsers: connects, opens pages, cleans up and disconnects. It makes no
 * decisions about leases, retries or timeouts. `Handles` is the part of the callback's argument that comes from the
 * library.
 */
export interface Connector<Handles = unknown> {
  /** Name of the library, for errors and events. */
  readonly library: string;
  /** Returns why the library can't use this protocol, or can't isolate tasks in this way; `undefined` if it can. */
  refusal(protocol: Protocol, isolation?: Isolation): string | undefined;
  /** Imports the library, while the acquire request waits at the service. */
  load(): Promise<unknown>;
  /** Connects to the browser, and chooses or opens its page. */
  connect(request: ConnectRequest): Promise<Connection<Handles>>;
}

/** A connection of an automation library to a leased browser. */
export interface Connection<Handles> {
  /** The library's part of the callback's argument: browser, page, context. */
  readonly handles: Handles;
  /**
   * The last known URL of the page, without a request to the browser. After a reconnect, the callback receives the page
   * with this URL.
   */
  pageUrl?(): string;
  /** Returns false after the library's connection was closed, also by the callback. */
  isConnected(): boolean;
  /** Opens a page for tasks of `mapPooledBrowsers`. `cleanup` closes it at the latest. */
  openWorkspace?(isolation: Isolation): Promise<Workspace<Handles>>;
  /** Closes the pages and contexts that this lease opened. Rejects if the browser does not respond. */
  cleanup(): Promise<void>;
  /** Disconnects without closing the browser. */
  disconnect(): Promise<void>;
}

/** A page in a browser that runs one task after another. */
export interface Workspace<Handles> {
  /** The library's part of the task's argument: browser, page, context. */
  readonly handles: Handles;
  /** Prepares the page for the next task. Resolves to false if the next task needs another workspace. */
  reset(): Promise<boolean>;
  /** Closes the page, and the context that was opened for it. */
  close(): Promise<void>;
}
