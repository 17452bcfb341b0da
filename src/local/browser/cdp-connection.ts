import { WebSocket } from 'ws';
import { isRecord } from '../../shared/json.js';

/** Where a browser's DevTools server is. */
export interface DevToolsAddress {
  /** TCP port on 127.0.0.1. */
  readonly port: number;
  /** Path of the browser's websocket, such as `/devtools/browser/…`. */
  readonly path: string;
}

/** An event from Chromium; `sessionId` is missing where it concerns the browser itself. */
export interface CdpEvent {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly sessionId: string | undefined;
}

/** Chromium's answer to a command was an error. */
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

/** One CDP websocket to a browser, with flattened sessions. */
export class CdpConnection {
  /** Resolves when the socket is closed, by whichever side. */
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
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
      perMessageDeflate: false,
      maxPayload: 0,
      handshakeTimeout: 10_000,
    });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve).once('error', reject);
    });
    return new CdpConnection(socket, onEvent);
  }

  /** Sends a command. Once the connection is closed its promise never settles: see `closed`. */
  ask(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { sessionId, resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params, sessionId }), () => {});
    });
  }

  /** Chromium undoes what this connection set up, resumes what it had paused, and stays. */
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
    if (method === 'Target.detachedFromTarget') this.#forget(event.params['sessionId']);
  }

  #settle(id: number, { error, result }: Record<string, unknown>): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) pending?.reject(new CdpFault(error as { code: number; message: string }));
    else pending?.resolve(isRecord(result) ? result : {});
  }

  /** Chromium leaves the commands of a session that is gone without an answer. */
  #forget(sessionId: unknown): void {
    for (const [id, pending] of this.#pending) {
      if (pending.sessionId !== sessionId) continue;
      this.#pending.delete(id);
      pending.reject(new CdpSessionGone('The CDP session is gone.'));
    }
  }
}
