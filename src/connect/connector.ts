import type { Protocol } from './protocol.js';
import type { Socket } from './socket.js';

/** What a lease asks of a connector. */
export interface ConnectRequest {
  /** An open websocket to the browser. The connector speaks over it. */
  socket: Socket;
  protocol: Protocol;
  /** `'default'`: the browser's own context; `'new'`: a fresh one, gone afterwards. */
  context: ContextChoice;
  /** Address of the page to hand out, where the browser has such a page; else any. */
  pageUrl?: string | undefined;
  /** The automation library's own connect options. */
  driver: object;
  /** Milliseconds until a page must be usable; the socket is cut then. */
  timeout: number;
}

export type ContextChoice = 'default' | 'new';

/**
 * How far one task of `mapPooledBrowsers` is kept apart from the next in the same browser:
 * - `'context'`: each has a context of its own, gone afterwards;
 * - `'storage'`: one context and page serve task after task, and what a site can keep in them is wiped in between;
 * - `'none'`: one page of the browser's own context serves task after task, as the last one left it.
 */
export type Isolation = 'context' | 'storage' | 'none';

/** A place in a browser for one task after another. */
export interface Workspace<Handles> {
  /** What a task gets of the library. */
  readonly handles: Handles;
  /** Makes it ready for the next task. False where that can't be done, and another workspace must follow. */
  reset(): Promise<boolean>;
  /** Closes what was opened for it. */
  close(): Promise<void>;
}

/** A browser that one lease drives. */
export interface Connection<Handles> {
  /** What the callback gets of the library: browser, page, context. */
  readonly handles: Handles;
  /** Address of the page that was handed out, as last known, without asking the browser: a later connection takes it up. */
  pageUrl?(): string;
  /** False once the driver's side has been closed, be it by the callback. */
  isConnected(): boolean;
  /** Opens a place for tasks beside the others of this lease, for `mapPooledBrowsers`. What is not closed is swept. */
  openWorkspace?(isolation: Isolation): Promise<Workspace<Handles>>;
  /** Closes the pages and contexts that this lease opened. Rejects when the browser does not follow. */
  sweep(): Promise<void>;
  /** Lets go of the browser, which lives on. */
  disconnect(): Promise<void>;
}

/**
 * Binds one automation library: it knows how to connect, open pages, sweep and disconnect, and nothing of leases.
 * `Handles` is what the callback gets of the library.
 */
export interface Connector<Handles = unknown> {
  /** The library's name, for errors and events. */
  readonly library: string;
  /** Why the library can't speak this protocol, or not isolate tasks like this over it; `undefined` when it can. */
  refusal(protocol: Protocol, isolation?: Isolation): string | undefined;
  /** Imports the library, so that this can happen while the acquire request waits. */
  load(): Promise<unknown>;
  connect(request: ConnectRequest): Promise<Connection<Handles>>;
}
