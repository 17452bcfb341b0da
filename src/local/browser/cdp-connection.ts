import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';
import { isRecord } from '../../shared/json.js';

/** The address of a browser's DevTools server. Only this file connects to the server. */
export interface DevToolsAddress {
  /** TCP port on 127.0.0.1. */
  readonly port: number;
  /** Path of the browser's WebSocket, such as `/devtools/browser/…`. */
  readonly path: string;
}

/** An event from Chromium. `sessionId` is undefined for events of the browser itself. */
export interface CdpEvent {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly sessionId: string | undefined;
}

/** Chromium answered a command with an error. */
export class CdpFault extends Error {
  readonly code: number;

  constructor({ code, message }: { code: number; message: string }) {
    super(message);
    this.code = code;
  }
}

/** The command's session ended before Chromium answered. */
export class CdpSessionGone extends Error {}

interface Pending {
  readonly sessionId: string | undefined;
  readonly resolve: (result: Record<string, unknown>) => void;
  readonly reject: (error: Error) => void;
}

/** A CDP client over a WebSocket of its own, with flattened sessions. */
export class CdpConnection {
  /** Resolves when either side has closed the WebSocket. */
  readonly closed: Promise<void>;
  readonly #socket: WebSocket;
  readonly #onEvent: (event: CdpEvent) => void;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  private constructor(socket: WebSocket, onEvent: (event: CdpEvent) => void) {
    this.#socket = socket;
    this.#onEvent = onEvent;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => socket.terminate());
    socket.on('message', (data: Buffer) => this.#receive(data));
  }

  static async open(
    { port, path }: DevToolsAddress,
    onEvent: (event: CdpEvent) => void = () => {},
  ): Promise<CdpConnection> {
    const options = { perMessageDeflate: false, maxPayload: 0, handshakeTimeout: 10_000 };
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, options);
    await new Promise((resolve, reject) => {
      socket.once('open', resolve).once('error', reject);
    });
    return new CdpConnection(socket, onEvent);
  }

  /** Sends a command. After the connection has closed, the promise never settles: see `closed`. */
  ask(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { sessionId, resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params, sessionId }), () => {});
    });
  }

  /** Closes the WebSocket. Chromium then undoes what this client set up, and resumes what it paused. */
  close(): void {
    this.#pending.clear();
    this.#socket.removeAllListeners('message');
    this.#socket.terminate();
  }

  #receive(data: Buffer): void {
    const message: unknown = JSON.parse(data.toString());
    if (!isRecord(message)) return;
    const { id, method, params, sessionId } = message;
    if (typeof id === 'number') return this.#settle(id, message);
    const event = {
      method: String(method),
      params: isRecord(params) ? params : {},
      sessionId: typeof sessionId === 'string' ? sessionId : undefined,
    };
    this.#onEvent(event);
    if (method === 'Target.detachedFromTarget') this.#rejectSession(event.params['sessionId']);
  }

  #settle(id: number, { error, result }: Record<string, unknown>): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) pending?.reject(new CdpFault(error as { code: number; message: string }));
    else pending?.resolve(isRecord(result) ? result : {});
  }

  /** Chromium never answers the pending commands of a detached session. */
  #rejectSession(sessionId: unknown): void {
    for (const [id, pending] of this.#pending) {
      if (pending.sessionId !== sessionId) continue;
      this.#pending.delete(id);
      pending.reject(new CdpSessionGone('The CDP session is gone.'));
    }
  }
}

/**
 * Opens a TCP connection to the browser and forwards a client's WebSocket upgrade. The request is written anew:
 * Chromium refuses a foreign Host or Origin, and must not receive the client's cookies and authorization.
 */
export function forwardUpgrade({ port, path }: DevToolsAddress, { headers }: IncomingMessage): Socket {
  const websocket = Object.entries(headers).filter(([name]) => name.startsWith('sec-websocket-'));
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    ...websocket.map(([name, value]) => `${name}: ${String(value)}`),
  ];
  const upstream = connect({ host: '127.0.0.1', port, noDelay: true });
  upstream.once('connect', () => upstream.write(`${lines.join('\r\n')}\r\n\r\n`));
  return upstream;
}
