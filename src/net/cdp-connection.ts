import { isRecord } from '../shared/json.js';

/** A command of a client; a response of the browser, which has the id of its command; or an event. */
export type CdpMessage = Readonly<Record<string, unknown>>;

/** Receives what the browser sends to a client. */
export interface CdpReceiver {
  /** A response or an event. */
  onMessage(message: CdpMessage): void;
  /** Receives a large message as JSON. Without this function, also those are parsed. */
  onLarge?(json: Buffer): void;
  /** The browser has ended. */
  onEnd(): void;
}

/** A browser that accepts CDP clients. */
export interface CdpBrowser {
  /** Adds a client. Rejects when the browser has ended. */
  connect(receiver: CdpReceiver): Promise<CdpChannel>;
}

/** The way of one client to its browser. */
export interface CdpChannel {
  send(command: CdpMessage): void;
  /** Ends the client. The browser then undoes what the client set up, and resumes what it paused. */
  close(): void;
}

/** An event from Chromium. `sessionId` is undefined for events of the browser itself. */
export interface CdpEvent {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly sessionId: string | undefined;
}

/** The browser answered a command with an error. */
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

/**
 * A CDP client of a browser that this machine started, with flattened sessions. It checks no message: what a leased browser sends is for
 * `CdpClient` of `connect/`, which checks each, and ends with its connection.
 */
export class CdpConnection {
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>;
  readonly #onEvent: (event: CdpEvent) => void;
  readonly #pending = new Map<number, Pending>();
  #channel!: CdpChannel;
  #onClosed!: () => void;
  #lastId = 0;

  private constructor(onEvent: (event: CdpEvent) => void) {
    this.#onEvent = onEvent;
    this.closed = new Promise((resolve) => (this.#onClosed = resolve));
  }

  /** Rejects when the browser has ended. */
  static async open(
    browser: CdpBrowser,
    onEvent: (event: CdpEvent) => void = () => {},
  ): Promise<CdpConnection> {
    const connection = new CdpConnection(onEvent);
    connection.#channel = await browser.connect({
      onMessage: (message) => connection.#receive(message),
      onEnd: () => connection.#onClosed(),
    });
    return connection;
  }

  /** Sends a command. After the connection has closed, the promise never settles: see `closed`. */
  ask(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { sessionId, resolve, reject });
      this.#channel.send({ id, method, params, sessionId });
    });
  }

  /** Opens a session with a page. */
  async attach(targetId: unknown): Promise<CdpSession> {
    const { sessionId } = await this.ask('Target.attachToTarget', { targetId, flatten: true });
    return new CdpSession(this, String(sessionId));
  }

  /** Ends the connection. Chromium then undoes what this client set up, and resumes what it paused. */
  close(): void {
    this.#pending.clear();
    this.#channel.close();
    this.#onClosed();
  }

  #receive(message: CdpMessage): void {
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

  #settle(id: number, { error, result }: CdpMessage): void {
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

/** A session of a connection with one page. */
export class CdpSession {
  readonly id: string;
  readonly #connection: CdpConnection;

  constructor(connection: CdpConnection, id: string) {
    this.#connection = connection;
    this.id = id;
  }

  /** Sends a command to the page. */
  ask(method: string, params?: object): Promise<Record<string, unknown>> {
    return this.#connection.ask(method, params, this.id);
  }

  /** Sends a command, and ignores a failure: the page is closing. */
  send(method: string, params?: object): void {
    this.ask(method, params).catch(() => {});
  }

  /** Ends the session, and what it set up in the page. */
  detach(): void {
    this.#connection.ask('Target.detachFromTarget', { sessionId: this.id }).catch(() => {});
  }
}
