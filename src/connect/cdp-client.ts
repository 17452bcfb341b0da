import {
  contentOf,
  isRead,
  MisfitError,
  readEvent,
  readResult,
  type EventName,
  type EventParams,
  type ResultOf,
} from './message.js';
import type { CdpCarrier, Message } from './wire.js';
import { raceTimeout } from '../shared/abort.js';
import { duration } from '../shared/errors.js';
import { excerpt } from '../shared/redact.js';

/**
 * Above the ids of every library: a late answer to a command of the library has another id. Chromium accepts ids of 32 bits, and
 * does not answer others.
 */
export const FIRST_ID = 2 ** 30;

/** A page, a frame of another site, or a worker. */
export type Target = ResultOf<'Target.getTargets'>['targetInfos'][number];

/** What receives the events of a browser, by their names. An event that does not fit its name is dropped. */
export type EventListeners = {
  readonly [Name in EventName]?: (params: EventParams<Name>, sessionId: string | undefined) => void;
};

/** The browser answered a command with an error. */
export class CommandError extends Error {}

interface Pending {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A minimal client of the Chrome DevTools Protocol and of WebDriver BiDi, for what needs no automation library. */
export class CdpClient {
  /** Resolves when the connection has ended. */
  readonly ended: Promise<unknown>;
  readonly #carrier: CdpCarrier;
  readonly #listeners: EventListeners;
  readonly #pending = new Map<number, Pending>();
  readonly #timeout: number;
  #hasEnded = false;

  /** @param timeout Milliseconds after which `send` rejects without an answer. Default: none. */
  constructor(carrier: CdpCarrier, listeners: EventListeners = {}, timeout = Infinity) {
    this.#carrier = carrier;
    this.ended = carrier.ended;
    this.#listeners = listeners;
    this.#timeout = timeout;
    carrier.listen((message) => void this.receive(message));
    void carrier.ended.then(() => {
      this.#hasEnded = true;
      for (const { reject } of this.#pending.values()) reject(new Error('The WebSocket has ended.'));
    });
  }

  /** Sends a command. Rejects if it fails, if its result is not what the protocol says, or if the socket ends. */
  async send<Method extends string>(
    method: Method,
    params: object = {},
    sessionId?: string,
  ): Promise<ResultOf<Method>> {
    const { id, result } = this.#begin(method);
    const late = () => {
      this.#pending.delete(id);
      return new Error(`The browser did not respond within ${duration(this.#timeout)}.`);
    };
    this.#carrier.send({ id, method, params: params as Message['params'], sessionId });
    return (await raceTimeout(this.#timeout, () => result, late)) as ResultOf<Method>;
  }

  /**
   * Sends a command whose last parameter is a text of base64, which can be large: over a connection of its own, the whole
   * message never exists at once. The parts are dropped as they are sent.
   */
  async sendWithBody(method: string, params: object, name: string, body: Buffer[]): Promise<void> {
    const size = body.reduce((sum, { length }) => sum + length, 0);
    if (!this.#carrier.sendParts || size < LARGE) {
      await this.send(method, { ...params, [name]: Buffer.concat(body).toString('base64') });
      return;
    }
    const { id, result } = this.#begin(method);
    const [head, tail] = JSON.stringify({ id, method, params: { ...params, [name]: '' } }).split(
      /(?<=")(?="\}\}$)/,
    );
    void this.#carrier.sendParts(partsOf(head!, body, tail!));
    await result;
  }

  /**
   * Begins to wait for the result of a command. Its id is random: no other client of the connection can give it to a command of its own,
   * whose response would be taken for ours.
   */
  #begin(method: string): { id: number; result: Promise<unknown> } {
    if (this.#hasEnded) throw new Error('The WebSocket has ended.');
    let id: number;
    do {
      const [random = 0] = globalThis.crypto.getRandomValues(new Uint32Array(1));
      id = FIRST_ID + 1 + (random % (FIRST_ID - 1));
    } while (this.#pending.has(id));
    const result = new Promise<unknown>((resolve, reject) =>
      this.#pending.set(id, { method, resolve, reject }),
    );
    return { id, result };
  }

  /** Lists the targets of the browser. */
  async targets(): Promise<readonly Target[]> {
    return (await this.send('Target.getTargets')).targetInfos;
  }

  /** Opens a blank page. Resolves to the id of its target. */
  async openPage(options: object = {}): Promise<string> {
    return (await this.send('Target.createTarget', { url: 'about:blank', ...options })).targetId;
  }

  /** Opens a session of a target. Resolves to its id. */
  async attach(targetId: string): Promise<string> {
    return (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  }

  /** Returns false for a message that is not for this client. */
  receive(message: Message): boolean {
    const { id, method, sessionId } = message;
    if (id === undefined) {
      const listener = isRead(method) && this.#listeners[method];
      if (!listener) return false;
      try {
        (listener as (...event: unknown[]) => void)(readEvent(method, contentOf(message).params), sessionId);
      } catch (error) {
        if (!(error instanceof MisfitError)) throw error;
      }
      return true;
    }
    const pending = this.#pending.get(id);
    if (!pending) return false;
    this.#pending.delete(id);
    const { error, result } = contentOf(message);
    try {
      if (error !== undefined) pending.reject(new CommandError(messageOf(error)));
      else pending.resolve(readResult(pending.method, result ?? {}));
    } catch (misfit) {
      pending.reject(misfit as Error);
    }
    return true;
  }
}

/** Size in bytes of a body from which it is sent in parts, and of a part. Bytes in threes need no padding. */
const LARGE = 3 * 1024 * 1024;
const PART = 3 * 256 * 1024;

function* partsOf(head: string, body: Buffer[], tail: string): Iterable<Buffer> {
  yield Buffer.from(head);
  let waiting: Buffer[] = [];
  let size = 0;
  while (body.length > 0) {
    const next = body.shift()!;
    waiting.push(next);
    size += next.length;
    if (size < PART) continue;
    const bytes = Buffer.concat(waiting);
    const end = size - (size % 3);
    yield Buffer.from(bytes.toString('base64', 0, end), 'latin1');
    waiting = [bytes.subarray(end)];
    size -= end;
  }
  yield Buffer.from(Buffer.concat(waiting).toString('base64') + tail);
}

function messageOf(error: unknown): string {
  // The error code of WebDriver BiDi.
  if (typeof error === 'string') return `The command failed: ${excerpt(error, 1000)}.`;
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? excerpt(message, 1000) : 'The command failed.';
}
