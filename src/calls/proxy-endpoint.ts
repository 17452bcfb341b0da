import type { IncomingMessage } from 'node:http';
import type { Channel } from '../drivers/relay.js';
import type { ClientSocket } from '../drivers/socket.js';

/** A further address of a proxy, for clients with a protocol that the browser does not have. */
export interface ProxyEndpoint {
  /** First part of the paths below the secret: `/<path>` and `/<path>/NAME`. No browser can have this name. */
  readonly path: string;
  /**
   * Why nobody can connect, with the HTTP status of the answer. Undefined if clients can.
   *
   * @param hasSecret Whether the address has a secret.
   */
  fault(hasSecret: boolean): EndpointFault | undefined;
  /** Why a client can't connect. Asked before a browser is leased. */
  refuses(request: IncomingMessage): EndpointFault | undefined;
  /** Opens the way between a client and a leased browser. @param browser A connection that nobody else uses. */
  open(browser: ClientSocket, how: OpenRouteOptions): Promise<ProxyRoute>;
}

export interface EndpointFault {
  readonly status: number;
  readonly reason: string;
}

export interface OpenRouteOptions {
  /** The browser has a name: a later client finds what this one leaves in the browser's own context. */
  readonly isNamed: boolean;
  /** The hosts to which this machine may send requests for the client. Undefined: all. */
  readonly allowed: RegExp | undefined;
  readonly signal: AbortSignal;
}

/** The other end of a client's route, which receives the messages of the client. */
export type Upstream = Pick<
  ClientSocket,
  'onSent' | 'unsent' | 'pause' | 'resume' | 'detached' | 'methodsInFlight'
>;

/** The way between one client and its browser. */
export interface ProxyRoute {
  readonly upstream: Upstream;
  readonly channel: Channel;
  /** Ends it, and what it has opened in the browser. Never rejects. */
  close(this: void): Promise<void>;
}
