import { isBytes } from '../shared/globals.js';
/** `'cdp'`: Chrome DevTools Protocol; `'bidi'`: WebDriver BiDi. */
export type Protocol = 'cdp' | 'bidi';

/** A received message. Callers need neither ws nor Node's types for this type. */
export type Frame = Uint8Array | ArrayBuffer | Uint8Array[];

/** A command, a response or an event of CDP or WebDriver BiDi. */
export interface Message {
  /** Of WebDriver BiDi. */
  readonly type?: unknown;
  readonly id?: number | undefined;
  readonly method?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly result?: unknown;
  readonly error?: unknown;
  /** Undefined for the connection itself. */
  readonly sessionId?: string | undefined;
  /** Reads the content of a large message, which was left out. */
  readonly readContent?: (() => Message) | undefined;
}

/** A message on its way: it is read once, and passed on as it came unless a rule changes it. */
export interface WireMessage<Data extends string | Frame = Uint8Array> extends Message {
  readonly data: Data;
  /** Why it is no message: a part of it is not what the protocol says. */
  readonly misfit?: Error | undefined;
}

/** The part of a socket that carries commands. */
export interface CdpCarrier {
  /** Resolves when the socket has ended. */
  readonly ended: Promise<unknown>;
  send(command: Message): void;
  /** Sends a message in parts, each when the one before was handed to the network. Other messages wait. */
  sendParts?(parts: Iterable<Uint8Array>): Promise<void>;
  /** Passes each message to this function. */
  listen(onMessage: (message: Message) => void): void;
}

/** Decodes a message, or a part of it. */
export function textOf(data: string | Frame, from = 0, to?: number): string {
  if (typeof data === 'string') return data.slice(from, to);
  if (!isBytes(data)) return '';
  const { buffer, byteOffset, byteLength } = data.subarray(from, to);
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}
