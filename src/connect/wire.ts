/** `'cdp'`: Chrome DevTools Protocol; `'bidi'`: WebDriver BiDi. */
export type Protocol = 'cdp' | 'bidi';

/** A received message. Callers need neither ws nor Node's types for this type. */
export type Frame = Uint8Array | ArrayBuffer | Uint8Array[];

/** The part of a socket that carries commands. */
export interface CdpCarrier {
  /** Resolves when the socket has ended. */
  readonly ended: Promise<unknown>;
  send(message: string): void;
  /** Sends a message in parts, each when the one before was handed to the network. Other messages wait. */
  sendParts?(parts: Iterable<Uint8Array>): Promise<void>;
  /** Passes each message to this function. */
  listen(onMessage: (data: Frame) => void): void;
}

/** Reads a part of a message, without decoding what is not ASCII. */
export function partOf(data: string | Frame, from: number, to?: number): string {
  if (typeof data === 'string') return data.slice(from, to);
  if (!(data instanceof Uint8Array)) return '';
  const { buffer, byteOffset, byteLength } = data.subarray(from, to);
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
}
