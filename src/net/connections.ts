import type { Duplex } from 'node:stream';
import type { Dispatcher, Pool } from 'undici/index.js';
import { LinkedAbort, onAbort } from '../shared/abort.js';
import { hasFakeTimers, nextMacrotask } from '../shared/clock.js';
import { hasFakeMicrotasks } from '../shared/globals.js';
import { encode, LARGEST_HEADERS, type HttpRequest } from './http.js';
import type { Reachability } from './reachability.js';
import type { OpenResponse } from './response.js';

/** What is used of undici. */
interface Undici {
  readonly Pool: typeof Pool;
}

/** How to send a request. */
interface ConnectionSendOptions {
  /** Ends the request, and the reading of its response. */
  readonly signal: AbortSignal;
  /** Ends the request before it is written, for example while its connection is opened. */
  readonly unsentSignal?: AbortSignal | undefined;
  /** Called before the request is written. */
  readonly onWrite?: (() => void) | undefined;
  /** Milliseconds without data after which the body fails. The default is no limit. */
  readonly pause?: number | undefined;
}

/**
 * The connections to one service. An unused one serves the next request. undici sends the requests; the four things in which it
 * differs from what a lease needs are in this file: its timeouts, aborts before a request is written, idle connections and the end
 * under fake timers, and a `100 Continue`.
 */
export class Connections {
  /** Resolves when the first connection is open and the requests that waited for it are sent. */
  readonly connected: Promise<void>;
  readonly #pool: Pool;
  readonly #withoutIdle: Pool;

  /** @param open Opens a connection. The first request calls it. */
  constructor(
    { Pool: UndiciPool }: Undici,
    origin: string,
    open: () => Promise<Duplex>,
    reachability: Reachability,
  ) {
    let onConnected!: () => void;
    this.connected = new Promise((resolve) => {
      onConnected = resolve;
    });
    const connect: Pool.Options['connect'] = (_settings, callback) => {
      const onOpen = (connection: Duplex) => {
        reachability.connected();
        callback(null, acceptContinue(connection) as never);
        void nextMacrotask().then(onConnected);
      };
      const onError = (error: Error) => {
        reachability.failed(error);
        callback(error, null);
      };
      open().then(onOpen, onError);
    };
    // Each request has its own timeout. undici's timeouts of 300 s would end a long poll too early.
    const options = { connect, headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: LARGEST_HEADERS };
    this.#pool = new UndiciPool(origin, options);
    this.#withoutIdle = new UndiciPool(origin, { ...options, pipelining: 0 });
  }

  /** Sends a request. It follows no redirect. Rejects if no response arrives. */
  send(
    message: HttpRequest,
    { signal, unsentSignal, onWrite, pause = 0 }: ConnectionSendOptions,
  ): Promise<OpenResponse> {
    const { url, method = 'GET' } = message;
    const { headers, text } = encode(message);
    // Before undici uses an idle connection again, it waits for the global `setImmediate`, which a test can have replaced.
    const pool = hasFakeTimers() ? this.#withoutIdle : this.#pool;
    const abort = new LinkedAbort(signal);
    return new Promise((resolve, reject) => {
      const stopListening = onAbort(unsentSignal, () => {
        abort.abort(unsentSignal!.reason);
        // undici rejects when the connection is open.
        reject(unsentSignal!.reason);
      });
      const write = () => {
        stopListening();
        if (!abort.signal.aborted) onWrite?.();
      };
      const request = {
        method,
        path: url.pathname + url.search,
        headers,
        body: text ?? null,
        signal: abort.signal,
        bodyTimeout: pause,
      };
      pool.compose(noting(write)).request(request).then(resolve, reject).finally(stopListening);
    });
  }

  async close(): Promise<void> {
    const closed = Promise.all([this.#pool.close(), this.#withoutIdle.close()]);
    // undici closes the idle connections at once, and says so with the global `queueMicrotask`, which a test can have replaced.
    if (!hasFakeMicrotasks()) await closed;
  }
}

/** Calls a function before a request is written. */
function noting(onWrite: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) => {
    // Not undici's DecoratorHandler, which fails after an informational response. The handler of a request has the older name.
    const name = handler.onRequestStart ? 'onRequestStart' : 'onConnect';
    const start = Reflect.get(handler, name) as (...args: unknown[]) => void;
    Reflect.set(handler, name, (...args: unknown[]) => {
      onWrite();
      Reflect.apply(start, handler, args);
    });
    return dispatch(options, handler);
  };
}

const CONTINUE = /^HTTP\/1\.\d 100$/;
const STATUS_END = 'HTTP/1.1 100'.length;

/**
 * Some gateways send a `100 Continue` that the request did not ask for. undici would close the connection, and with it lose
 * the browser in the response that follows. It skips a 102, so the last digit is changed.
 */
function acceptContinue(socket: Duplex): Duplex {
  let head = '';
  const push = socket.push.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  // What arrives first after a request is the head of its response.
  socket.write = (...args: unknown[]) => {
    head = '';
    return write(...args);
  };
  socket.push = (chunk: Buffer | null) => {
    const missing = STATUS_END - head.length;
    if (missing > 0) head += chunk?.toString('latin1', 0, missing) ?? '';
    if (missing > 0 && CONTINUE.test(head)) chunk![missing - 1] = '2'.charCodeAt(0);
    return push(chunk);
  };
  return socket;
}
