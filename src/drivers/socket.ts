import type { CdpClient } from '../wire/cdp-client.js';
import type { CdpPort, Frame, BrowserProtocol, SocketEnd } from '../wire/forms.js';

export type { SocketEnd } from '../wire/forms.js';

/** A connection to a browser for a client that speaks a protocol by itself: the whole WebSocket, or one session within it. */
export interface ClientSocket {
  /** Resolves with the first reason why the connection ended. */
  readonly ended: Promise<SocketEnd>;
  /** Resolves when the client can no longer use the connection: at its end, or when it was taken over. */
  readonly detached: Promise<void>;
  /** Receives each message. Set it before you send the first message. */
  onMessage: (data: Frame, isBinary: boolean) => unknown;
  /** Number of bytes that wait for a slow network or browser. */
  readonly unsent: number;
  /** Sends a message. After the end it is dropped. */
  send(data: string | Frame, isBinary?: boolean): void;
  /** Adds a function that is called each time a message was handed to the network. */
  onSent(call: () => void): void;
  /** Receives no more until `resume`, so that a slow receiver slows the browser. */
  pause(): void;
  /** Receives again. */
  resume(): void;
  /** Closes the connection with its closing handshake, or its session. */
  close(reason?: SocketEnd): void;
  /** Closes the connection at once: no further message reaches the browser. */
  cut(reason?: SocketEnd): void;
  /** @internal The methods of the commands without a response. */
  readonly methodsInFlight: readonly string[];
  /** @internal */
  request: CdpPort['request'];
  /** @internal */
  readonly wire: { openOwn(): Promise<CdpClient> };
  /** @internal */
  listen: CdpPort['listen'];
}

/** Opens a connection for a further client of the browser, whose messages pass the layers of the lease. Default: its protocol. */
export type OpenClient = (signal: AbortSignal, protocol?: BrowserProtocol) => Promise<ClientSocket>;
