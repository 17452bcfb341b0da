import type { Protocol } from './protocol.js';
import type { Socket } from './socket.js';

/** What a lease asks of a connector. */
export interface ConnectRequest {
  /** An open websocket to the browser. The connector speaks over it. */
  socket: Socket;
  protocol: Protocol;
  /** `'default'`: the browser's own context; `'new'`: a fresh one, gone afterwards. */
  context: ContextChoice;
  /** The automation library's own connect options. */
  driver: object;
  /** Milliseconds until a page must be usable. */
  timeout: number;
}

export type ContextChoice = 'default' | 'new';

/** A browser that one lease drives. */
export interface Connection<Handles> {
  /** What the callback gets of the library: browser, page, context. */
  readonly handles: Handles;
  /** False once the driver's side has been closed, be it by the callback. */
  isConnected(): boolean;
  /** Closes the pages and contexts that this lease opened. Rejects when the browser does not follow. */
  sweep(): Promise<void>;
  /** Lets go of the browser, which lives on. */
  disconnect(): Promise<void>;
}

/**
 * Binds one automation library: it knows how to connect, sweep and disconnect, and nothing of leases.
 * `Handles` is what the callback gets of the library.
 */
export interface Connector<Handles = unknown> {
  /** The library's name, for errors and events. */
  readonly library: string;
  /** Why the library can't speak this protocol; `undefined` when it can. */
  refusal(protocol: Protocol): string | undefined;
  /** Imports the library, so that this can happen while the acquire request waits. */
  load(): Promise<unknown>;
  connect(request: ConnectRequest): Promise<Connection<Handles>>;
}
