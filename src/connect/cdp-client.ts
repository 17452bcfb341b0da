import type { Frame } from './socket.js';

/**
 * Above the ids of every library: a late answer to a command of the library has another id. Chromium accepts ids of 32 bits, and
 * does not answer others.
 */
const FIRST_ID = 2 ** 30;

/** An event of the browser, as it arrived and as it was read. */
type OnEvent = (data: Frame, event: CdpEvent) => void;

/** An event of the browser, or of the target of a session. */
export interface CdpEvent {
  method?: string;
  params?: unknown;
  sessionId?: string;
}

/** A page, a frame of another site, or a worker. */
export interface Target {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
  readonly browserContextId?: string;
}

interface Message extends CdpEvent {
  id?: number;
  result?: unknown;
  error?: { message?: string };
}

/** The part of a socket that carries commands. */
export interface CdpCarrier {
  /** Resolves when the socket has ended. */
  readonly ended: Promise<unknown>;
  send(message: string): void;
  /** Passes each message to this function. */
  listen(onMessage: (data: Frame) => void): void;
}

/** A minimal client of the Chrome DevTools Protocol, for what needs no automation library. */
export class CdpClient {
  readonly #carrier: CdpCarrier;
  readonly #onEvent: OnEvent;
  readonly #pending = new Map<
    number,
    { resolve: (result: unknown) => void; reject: (error: Error) => void }
  >();
  #lastId = FIRST_ID;
  #hasEnded = false;

  /** @param onEvent Receives each message that is no response. */
  constructor(carrier: CdpCarrier, onEvent: OnEvent = () => {}) {
    this.#carrier = carrier;
    this.#onEvent = onEvent;
    carrier.listen((data) => this.#receive(data));
    void carrier.ended.then(() => {
      this.#hasEnded = true;
      for (const { reject } of this.#pending.values()) reject(new Error('The WebSocket has ended.'));
    });
  }

  /** Sends a command. Rejects if it fails, or if the socket ends. */
  async send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    if (this.#hasEnded) throw new Error('The WebSocket has ended.');
    const id = ++this.#lastId;
    const result = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#carrier.send(JSON.stringify({ id, method, params, sessionId }));
    return (await result) as Result;
  }

  /** Lists the targets of the browser. */
  async targets(): Promise<readonly Target[]> {
    return (await this.send<{ targetInfos: Target[] }>('Target.getTargets')).targetInfos;
  }

  /** Opens a blank page. Resolves to the id of its target. */
  async openPage(options: object = {}): Promise<string> {
    const params = { url: 'about:blank', ...options };
    return (await this.send<{ targetId: string }>('Target.createTarget', params)).targetId;
  }

  /** Opens a session of a target. Resolves to its id. */
  async attach(targetId: string): Promise<string> {
    const params = { targetId, flatten: true };
    return (await this.send<{ sessionId: string }>('Target.attachToTarget', params)).sessionId;
  }

  #receive(data: Frame): void {
    const message = JSON.parse(String(data)) as Message;
    const { id, result, error } = message;
    if (id === undefined) return this.#onEvent(data, message);
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    if (error) pending.reject(new Error(error.message ?? 'The command failed.'));
    else pending.resolve(result ?? {});
  }
}
