import { isBytes } from '../shared/globals.js';

/** `'cdp'`: Chrome DevTools Protocol; `'bidi'`: WebDriver BiDi. */
export type BrowserProtocol = 'cdp' | 'bidi';

/** Why a socket ended; `closed-by-us` is the expected end. */
export type SocketEnd = 'dropped' | 'closed-by-service' | 'expired' | 'closed-by-callback' | 'closed-by-us';

/** A received message. Callers need neither ws nor Node's types for this type. */
export type Frame = Uint8Array | ArrayBuffer | Uint8Array[];

/** A command, a response or an event of CDP or WebDriver BiDi. */
export interface Message {
  /** What kind of message it is, in WebDriver BiDi. */
  readonly type?: unknown;
  readonly id?: number | undefined;
  readonly method?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly result?: unknown;
  readonly error?: unknown;
  /** The session; undefined for the connection itself. */
  readonly sessionId?: string | undefined;
  /** Reads the content of a large message, which was left out. */
  readonly readContent?: (() => Message) | undefined;
}

/** A message on its way: it is read once, and passed on as it came unless a rule changes it. */
export interface WireMessage<Data extends string | Frame = Uint8Array> extends Message {
  readonly data: Data;
  /** Why it is no message: a part of it is not what the protocol says. */
  readonly malformed?: Error | undefined;
}

/**
 * Who is at the other side of a connection: the automation library of the callback, a further client of a proxy or of a loopback
 * address, or this library itself, whose messages no layer sees.
 */
export type ClientKind = 'library' | 'further' | 'own';

/** A client, for those who only look at it. */
export interface AnyClient {
  readonly kind: ClientKind;
  /** The session of the browser that it has; undefined for the connection itself. */
  readonly root: string | undefined;
  /** Resolves when the client can no longer use its connection. */
  readonly detached: Promise<void>;
  /** Passes a message of the browser, or of a layer, to the client. */
  receive(message: WireMessage): unknown;
}

/** A carrier of commands of our own: a client of a wire, or of a browser that this machine has started. */
export interface CdpPort {
  /** Resolves when no command is answered any longer. */
  readonly ended: Promise<unknown>;
  /** Sends a command. @param settle Receives the response; undefined if its session has ended. */
  request(command: Message, settle: (response: WireMessage | undefined) => void): void;
  /** Sends a command in parts, each when the one before was handed to the network. Other messages wait. */
  requestParts?(
    command: Message,
    parts: Iterable<Uint8Array>,
    settle: (response: WireMessage | undefined) => void,
  ): void;
  /** True if it passes only the responses. */
  readonly hasNoEvents?: boolean;
  listen(onEvent: (event: WireMessage) => void): void;
  close(): void;
}

/** A connection of our own to the browser. */
export interface OwnClient extends CdpPort, AnyClient {
  /** Resolves when its connection has ended, with the first reason. */
  readonly ended: Promise<SocketEnd>;
  /** Closes the connection at once. */
  cut(reason?: SocketEnd): void;
}

/** Opens a further connection of our own to the browser. */
export type OpenCdp = (signal: AbortSignal) => Promise<OwnClient>;

/** The first id of our own commands, above those of every library. Chromium accepts ids of 32 bits, and does not answer others. */
export const FIRST_ID = 2 ** 30;

/** Decodes a message, or a part of it. */
export function textOf(data: string | Frame, from = 0, to?: number): string {
  if (typeof data === 'string') return data.slice(from, to);
  if (!isBytes(data)) return '';
  const { buffer, byteOffset, byteLength } = data.subarray(from, to);
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
