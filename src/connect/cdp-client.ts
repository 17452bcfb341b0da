import {
  isRead,
  MisfitError,
  readEvent,
  readMessage,
  readResult,
  type EventName,
  type EventParams,
  type ResultOf,
} from './message.js';
import type { CdpCarrier, Frame } from './wire.js';
import { excerpt } from '../shared/redact.js';

/**
 * Above the ids of every library: a late answer to a command of the library has another id. Chromium accepts ids of 32 bits, and
 * does not answer others.
 */
export const FIRST_ID = 2 ** 30;
/** The clients of one connection have different ids. */
let lastId = FIRST_ID;

/** A page, a frame of another site, or a worker. */
export type Target = ResultOf<'Target.getTargets'>['targetInfos'][number];

/** What receives the events of a browser, by their names. An event that does not fit its name is dropped. */
export type EventListeners = {
  readonly [Name in EventName]?: (params: EventParams<Name>, data: Frame) => void;
};

interface Pending {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A minimal client of the Chrome DevTools Protocol, for what needs no automation library. */
export class CdpClient {
  readonly #carrier: CdpCarrier;
  readonly #listeners: EventListeners;
  readonly #pending = new Map<number, Pending>();
  #hasEnded = false;

  constructor(carrier: CdpCarrier, listeners: EventListeners = {}) {
    this.#carrier = carrier;
    this.#listeners = listeners;
    carrier.listen((data) => void this.receive(data));
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
    if (this.#hasEnded) throw new Error('The WebSocket has ended.');
    const id = ++lastId;
    const result = new Promise<unknown>((resolve, reject) =>
      this.#pending.set(id, { method, resolve, reject }),
    );
    this.#carrier.send(JSON.stringify({ id, method, params, sessionId }));
    return (await result) as ResultOf<Method>;
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

  /** Reads a message. Returns false for one that is not for this client. */
  receive(data: Frame): boolean {
    try {
      return this.#receive(data);
    } catch (error) {
      // Of a command, the error is passed on; an event is dropped.
      if (error instanceof MisfitError || error instanceof SyntaxError) return false;
      throw error;
    }
  }

  #receive(data: Frame): boolean {
    const { id, method, params, result, error } = readMessage(data);
    if (id === undefined) {
      const listener = isRead(method) && this.#listeners[method];
      if (!listener) return false;
      (listener as (params: unknown, data: Frame) => void)(readEvent(method, params), data);
      return true;
    }
    const pending = this.#pending.get(id);
    if (!pending) return false;
    this.#pending.delete(id);
    try {
      if (error !== undefined) pending.reject(new Error(messageOf(error)));
      else pending.resolve(readResult(pending.method, result ?? {}));
    } catch (misfit) {
      pending.reject(misfit as Error);
    }
    return true;
  }
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? excerpt(message, 1000) : 'The command failed.';
}
