import type { AnyClient, CdpPort, ClientKind, Frame, Message, SocketEnd, WireMessage } from './forms.js';
import { contentOf, parseMessage, writtenMessage } from './message.js';
import { textOf } from './forms.js';
import type { CdpClient } from './cdp-client.js';
import type { Flight } from './flight.js';
import type { BrowserSocket } from './socket.js';

export type { CdpPort, ClientKind } from './forms.js';

/** Longest end of a message with the id of its session, in bytes. */
const LONGEST_END = 100;
/** Chromium writes the session id last. */
const SESSION_END = /,"sessionId":"([\w-]+)"\}\s*$/;

/** The wire, for its clients. */
interface Carrier {
  readonly socket: BrowserSocket;
  readonly flight: Flight;
  readonly ended: Promise<SocketEnd>;
  fromClient(
    client: Client,
    command: WireMessage<string | Frame>,
    isBinary: boolean,
    settle?: (response: WireMessage | undefined) => void,
  ): void;
  requestParts(
    client: Client,
    command: Message,
    parts: Iterable<Uint8Array>,
    settle: (response: WireMessage | undefined) => void,
  ): void;
  openOwn(): Promise<CdpClient>;
  clientOf(sessionId: string, kind: ClientKind): Client;
  endSession(client: Client): void;
}

/** One client of a wire. It has the connection itself, or a session of the browser, whose id its messages do not have. */
export class Client implements CdpPort, AnyClient {
  readonly wire: Carrier;
  readonly kind: ClientKind;
  /** The session of the browser that it has; undefined for the connection itself. */
  readonly root: string | undefined;
  /** Resolves with the reason why the connection has ended. */
  readonly ended: Promise<SocketEnd>;
  /** Resolves when the client can no longer use its connection: at its end, or when it was taken from the client. */
  readonly detached: Promise<void>;
  /** Only of a client that has the connection itself. */
  readonly requestParts?: NonNullable<CdpPort['requestParts']>;
  isDetached = false;
  /** Receives each message: the last one that was set of these two. */
  #onData: (data: Frame, isBinary: boolean) => unknown = () => {};
  #onEvent: ((event: WireMessage) => unknown) | undefined;
  #detach = () => {};

  constructor(wire: Carrier, kind: ClientKind, root?: string) {
    this.wire = wire;
    this.kind = kind;
    this.root = root;
    this.ended = wire.ended;
    if (root === undefined)
      this.requestParts = (command, parts, settle) => wire.requestParts(this, command, parts, settle);
    this.detached = new Promise((resolve) => (this.#detach = resolve));
    void wire.ended.then(() => this.detach());
  }

  /** Sends a message of the client. After its end it is dropped. */
  send(data: string | Frame, isBinary = false): void {
    if (!this.isDetached) this.wire.fromClient(this, this.#inRoot(parseMessage(data)), isBinary);
  }

  /** Sends a command of this library, which the layers see if they see those of the client. */
  request(command: Message, settle: (response: WireMessage | undefined) => void): void {
    if (this.isDetached) return settle(undefined);
    const { sessionId = this.root } = command;
    this.wire.fromClient(this, writtenMessage({ ...command, sessionId }), false, settle);
  }

  listen(onEvent: (event: WireMessage) => void): void {
    this.#onEvent = onEvent;
  }

  /** Receives each message. Set it before you send the first message. */
  set onMessage(receive: (data: Frame, isBinary: boolean) => unknown) {
    this.#onData = receive;
    this.#onEvent = undefined;
  }

  /** Passes a message of the browser, or of a layer, to the client. */
  receive(message: WireMessage, isBinary = false): unknown {
    if (this.isDetached) return undefined;
    // Who has the connection itself receives everything as it came.
    const own = this.root === undefined ? message : withoutRoot(message, this.root);
    return this.#onEvent ? this.#onEvent(own) : this.#onData(own.data, isBinary);
  }

  onSent(call: () => void): void {
    void this.detached.then(this.wire.socket.onSent(call));
  }

  get unsent(): number {
    return this.wire.socket.unsent;
  }

  pause(): void {
    this.wire.socket.pause();
  }

  resume(): void {
    this.wire.socket.resume();
  }

  /** The methods of its commands that have no response yet, in their order. */
  get methodsInFlight(): readonly string[] {
    return this.wire.flight.methodsOf(this);
  }

  /** Closes what the client has: the connection with its closing handshake, or its session. */
  close(reason: SocketEnd = 'closed-by-us'): void {
    if (this.isDetached) return;
    if (this.root === undefined && this.kind !== 'own') this.wire.socket.close(reason);
    else this.cut(reason);
  }

  /** Closes it at once: no further message reaches the browser. */
  cut(reason: SocketEnd = 'closed-by-us'): void {
    if (this.root === undefined) this.wire.socket.cut(reason);
    else this.wire.endSession(this);
  }

  /** The client receives nothing more, and what it sends or closes has no effect. */
  detach(): void {
    this.isDetached = true;
    this.#detach();
  }

  #inRoot(command: WireMessage<string | Frame>): WireMessage<string | Frame> {
    if (this.root === undefined || command.sessionId !== undefined) return command;
    return writtenMessage({ ...contentOf(command), sessionId: this.root });
  }
}

/** A message as the client of a session receives it, without the id of the session. */
function withoutRoot(message: WireMessage, root: string): WireMessage {
  if (message.sessionId !== root) return message;
  const { data } = message;
  const end = SESSION_END.exec(textOf(data, -LONGEST_END))?.[0];
  if (end === undefined) return writtenMessage({ ...contentOf(message), sessionId: undefined });
  const rest = Buffer.concat([data.subarray(0, -end.length), Buffer.from('}')]);
  return { ...message, sessionId: undefined, data: rest };
}
